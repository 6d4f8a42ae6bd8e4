#include "cli/manual/manual_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace tilepilot::cli {
namespace {

// Text that man prints as it is.
std::string roff(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const char each = text[i];
    if ((each == '.' || each == '\'') && (i == 0 || text[i - 1] == '\n')) result += "\\&";  // no request
    if (each == '\\')
      result += "\\e";
    else if (each == '-')
      result += "\\-";
    else if (each == '\'')
      result += "\\(aq";
    else if (each == '`')
      result += "\\(ga";
    else if (each == '^')
      result += "\\(ha";
    else if (each == '~')
      result += "\\(ti";
    else
      result += each;
  }
  return result;
}

std::string roff_bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string roff_italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

// A paragraph in lines of less than 80 characters, as man's sources are written.
std::string filled(std::string_view text) {
  std::string result, line;
  for (const std::string& word : CLI::detail::split(std::string(text), ' ')) {
    if (!line.empty() && line.size() + 1 + roff(word).size() > 78) result += std::exchange(line, "") + "\n";
    // `roff` looks at beginnings of lines, and every word may come to stand at one.
    const std::string next = line.empty() ? roff(word) : roff("x" + word).substr(1);
    line += line.empty() ? next : " " + next;
  }
  return result + line;
}

// The footers of commands are lines: those of examples are indented.
std::string footer_text(const std::string& footer) {
  std::string result, paragraph;
  bool is_example = false;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) result += ".PP\n" + filled(std::exchange(paragraph, "")) + "\n";
  };
  for (const std::string& line : CLI::detail::split(footer, '\n')) {
    const bool indented = line.starts_with("  ");
    // What ends with a colon announces an example.
    if (indented || (line.ends_with(':') && !line.empty())) end_paragraph();
    if (indented && !is_example) result += ".PP\n.nf\n.RS\n";
    if (!indented && is_example) result += ".RE\n.fi\n";
    is_example = indented;
    if (indented)
      result += roff(line.substr(2)) + "\n";
    else
      paragraph += (paragraph.empty() ? "" : " ") + line;
    if (line.ends_with(':')) end_paragraph();
  }
  end_paragraph();
  return result + (is_example ? ".RE\n.fi\n" : "");
}

std::string explained(const OptionRow& row) {
  std::string text = row.help;
  if (!row.choices.empty()) text += fmt::format("; one of {}", fmt::join(row.choices, ", "));
  if (!row.usual.empty()) text += fmt::format(" (default: {})", row.usual);
  return filled(text);
}

void add_option_page(const OptionRow& row, std::string& page) {
  std::vector<std::string> flags;
  for (const std::string& flag : row.flags) flags.push_back(roff_bold(flag));
  page += fmt::format(".TP\n{}{}\n{}\n", fmt::join(flags, ", "), row.type.empty() ? "" : " " + roff_italic(row.type),
                      explained(row));
}

std::string usage_of(const CommandRow& command) {
  std::string usage = roff_bold(fmt::format("tilepilot {}", fmt::join(command.words, " ")));
  if (!command.options.empty()) usage += " [" + roff_italic("options") + "]";
  for (const OptionRow& row : command.arguments) {
    const std::string name = roff_italic(row.flags.front()) + (row.repeats ? " ..." : "");
    usage += " " + (row.required ? name : "[" + name + "]");
  }
  return usage;
}

void add_command_page(const CommandRow& command, std::string& page) {
  for (const CommandRow& below : command.commands) add_command_page(below, page);
  if (!command.commands.empty()) return;  // what does something are its commands
  page += fmt::format(".SS {}\n{}.\n.PP\n{}\n", roff(fmt::format("tilepilot {}", fmt::join(command.words, " "))),
                      filled(command.help), usage_of(command));
  for (const OptionRow& row : command.arguments)
    page += fmt::format(".TP\n{}\n{}\n", roff_italic(row.flags.front()), explained(row));
  for (const OptionRow& row : command.options)
    if (row.flags.back() != "--help") add_option_page(row, page);
  page += footer_text(command.footer);
}

}  // namespace

std::string manual_page(const CommandRow& program, const std::string& version, const std::string& date) {
  std::string page = fmt::format(
      ".TH TILEPILOT 1 \"{}\" \"tilepilot {}\" \"TilePilot\"\n.SH NAME\ntilepilot \\- faster, verified programs for "
      "PyTorch models\n.SH SYNOPSIS\n\\fBtilepilot\\fR \\fIcommand\\fR [\\fIoptions\\fR] [\\fIarguments\\fR]\n",
      date, roff(version));
  page += ".SH DESCRIPTION\n" + filled(program.help) + "\n" + footer_text(program.footer);
  page += ".SH COMMANDS\n";
  for (const CommandRow& command : program.commands) add_command_page(command, page);
  page += ".SH OPTIONS OF EVERY COMMAND\n";
  for (const OptionRow& row : program.options) add_option_page(row, page);
  return page;
}

}  // namespace tilepilot::cli
