#include "show/page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "compiler/layout/print.h"

namespace tilepilot::embedded {
extern const char tilepilot_show_page[];
}

namespace tilepilot::show {
namespace {

constexpr size_t kMostSourceBytes = size_t{256} << 10;
constexpr size_t kMostChoices = 12;  // of a line

std::string paragraph(const std::string& text, std::string_view style = "soft") {
  return fmt::format("<p class=\"{}\">{}</p>\n", style, escaped(text));
}

// Draws until the page is full.
class PageWriter {
 public:
  PageWriter(const Picture& picture, const DrawingLimits& limits, size_t room)
      : picture_(picture), limits_(limits), room_(room) {}

  std::string body() {
    std::string text = fmt::format(
        "<header><h1>{}</h1>\n{}</header>\n", escaped(picture_.file),
        paragraph(fmt::format("{}target {}", picture_.call.empty() ? "" : picture_.call + ", ", picture_.target)));
    if (picture_.kernels.size() > 1) {
      text += "<nav>kernels:\n";
      for (size_t k = 0; k < picture_.kernels.size(); ++k)
        text += fmt::format("<a href=\"#k{}\">{}</a>\n", k, escaped(picture_.kernels[k].name));
      text += "</nav>\n";
    }
    text += "<div class=\"columns\">\n" + source() + "<main>\n";
    room_ -= std::min(room_, text.size());
    for (size_t k = 0; k < picture_.kernels.size(); ++k) text += kernel(picture_.kernels[k], k);
    return text + "</main></div>\n";
  }
  // Drawings that there was no room for.
  int left_out() const { return left_out_; }

 private:
  const Picture& picture_;
  const DrawingLimits limits_;
  size_t room_;
  int left_out_ = 0;

  std::string source() const {
    std::map<int, std::string> became;
    for (const KernelPicture& kernel : picture_.kernels) {
      std::map<int, size_t> counts;
      for (const ChoicePicture& choice : kernel.choices) {
        if (++counts[choice.line] > kMostChoices) continue;
        became[choice.line] += fmt::format("<li>{}: {}", escaped(choice.what), escaped(choice.chosen));
        for (const std::string& obstacle : choice.obstacles)
          became[choice.line] += fmt::format("<br><span class=\"soft\">{}</span>", escaped(obstacle));
        became[choice.line] += "</li>\n";
      }
      for (const auto& [line, count] : counts)
        if (count > kMostChoices) became[line] += fmt::format("<li>and {} more</li>\n", count - kMostChoices);
    }
    std::string text = "<section class=\"source\" aria-label=\"program\"><h2>Program</h2>\n";
    text += paragraph("A line that opens tells what it became, and marks its places in the drawings.");
    text += "<div class=\"scroll code\">\n";
    size_t at = 0;
    const std::string shown = picture_.text.substr(0, kMostSourceBytes);
    for (int line = 1; at < shown.size(); ++line) {
      const size_t end = std::min(shown.find('\n', at), shown.size());
      text += source_line(line, shown.substr(at, end - at), became);
      at = end + 1;
    }
    if (shown.size() < picture_.text.size()) text += paragraph("The rest of the file is left out here.");
    text += "</div>\n";
    if (const auto none = became.find(0); none != became.end())
      text += fmt::format("<details><summary>of no line of this file</summary><ul>{}</ul></details>\n", none->second);
    return text + "</section>\n";
  }

  static std::string source_line(int line, const std::string& content, const std::map<int, std::string>& became) {
    const std::string words = fmt::format("<span class=\"n\">{}</span><code>{}</code>", line, escaped(content));
    const auto found = became.find(line);
    if (found == became.end()) return fmt::format("<div id=\"L{}\" class=\"line\">{}</div>\n", line, words);
    return fmt::format(
        "<details id=\"L{0}\" class=\"line\" data-n=\"{0}\"><summary>{1}</summary><ul>{2}</ul></details>\n", line,
        words, found->second);
  }

  std::string kernel(const KernelPicture& kernel, size_t number) {
    std::string text = fmt::format("<article id=\"k{}\"><h2>{}</h2>\n", number, escaped(kernel.name));
    std::vector<std::string> facts = kernel.facts;
    if (kernel.line > 0) facts.push_back(fmt::format("line {}", kernel.line));
    text += paragraph(fmt::format("{}", fmt::join(facts, ", ")));
    for (const std::string& note : kernel.notes) text += paragraph(note);
    for (const std::string& defect : kernel.defects) text += paragraph("the emulator found: " + defect, "bad");
    text += "<h3>Timeline of a block</h3>\n";
    text += kernel.timeline ? figure(draw(*kernel.timeline, limits_)) + shares(*kernel.timeline)
                            : paragraph(kernel.no_timeline);
    text += "<h3>Roofline</h3>\n";
    if (kernel.roofline) text += figure(draw(*kernel.roofline));
    if (!kernel.no_roofline.empty()) text += paragraph(kernel.no_roofline);
    text += "<h3>Shared memory</h3>\n";
    for (const SharedPicture& tile : kernel.shared) text += figure(draw(tile, limits_)) + accesses(tile);
    if (!kernel.no_shared.empty()) text += paragraph(kernel.no_shared);
    text += "<h3>Registers</h3>\n";
    for (const RegisterTile& tile : kernel.registers) text += figure(draw(tile, limits_));
    if (!kernel.no_registers.empty()) text += paragraph(kernel.no_registers);
    return text + "</article>\n";
  }

  std::string figure(const Svg& svg) {
    const std::string drawn = svg.drawn();
    if (drawn.size() > room_) {
      ++left_out_;
      room_ -= std::min(room_, size_t{200});
      return paragraph("This drawing is left out, so that the page stays below its 2 MB; --svg writes it.");
    }
    room_ -= drawn.size();
    return fmt::format(
        "<figure>{}<div class=\"scroll\">{}</div><p class=\"told\" aria-live=\"polite\">&nbsp;</p></figure>\n",
        svg.captions(), drawn);
  }

  static std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows,
                           std::string_view summary) {
    std::string text = fmt::format("<details><summary>{}</summary><div class=\"scroll\"><table><thead><tr>", summary);
    for (const std::string& cell : head) text += fmt::format("<th>{}</th>", escaped(cell));
    text += "</tr></thead><tbody>\n";
    for (const auto& row : rows) {
      text += "<tr>";
      for (const std::string& cell : row) text += fmt::format("<td>{}</td>", escaped(cell));
      text += "</tr>\n";
    }
    return text + "</tbody></table></div></details>\n";
  }

  // What the rows of a timeline spend their cycles on.
  static std::string shares(const Timeline& timeline) {
    constexpr std::array kShown = {Activity::copy,   Activity::wait,   Activity::await, Activity::product,
                                   Activity::shared, Activity::global, Activity::math};
    std::vector<std::string> head = {"row"};
    for (const Activity activity : kShown) head.emplace_back(name_of(activity));
    std::vector<std::vector<std::string>> rows;
    for (const TimelineRow& row : timeline.rows) {
      std::map<Activity, double> cycles;
      for (const Segment& segment : row.segments) cycles[segment.activity] += segment.end - segment.begin;
      rows.push_back({row.label});
      for (const Activity activity : kShown)
        rows.back().push_back(cycles.contains(activity)
                                  ? fmt::format("{:.0f} %", 100 * cycles[activity] / std::max(timeline.cycles, 1.0))
                                  : "-");
    }
    return table(head, rows, "in numbers: shares of the cycles");
  }

  static std::string accesses(const SharedPicture& tile) {
    if (tile.accesses.empty()) return "";
    std::vector<std::vector<std::string>> rows;
    for (const SharedAccess& access : tile.accesses)
      rows.push_back({access.line > 0 ? fmt::format("{}", access.line) : "-", access.what,
                      access.writes ? "write" : "read", fmt::format("{}", access.instructions),
                      fmt::format("{}", access.bytes), fmt::format("{}", access.wavefronts),
                      fmt::format("{}", access.conflicts), fmt::format("{:.2f}", access.degree())});
    return table({"line", "instruction", "", "of warps", "bytes", "wavefronts", "for conflicts", "degree"}, rows,
                 fmt::format("in numbers: accesses of {}", escaped(tile.name)));
  }
};

std::string filled(const Picture& picture, const std::string& body) {
  std::string text = embedded::tilepilot_show_page;
  const auto put = [&](std::string_view mark, std::string_view by) {
    const size_t at = text.find(mark);
    if (at != std::string::npos) text.replace(at, mark.size(), by);
  };
  put("@TITLE@", escaped(picture.file));
  put("@STYLE@", drawing_style());
  put("@BODY@", body);  // last: what it holds is no mark
  return text;
}

// Letters, digits and underscores.
std::string file_name(std::string text) {
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') c = '_';
  return text;
}

}  // namespace

std::string page(const Picture& picture) {
  const std::vector<DrawingLimits> tries = {
      {16, 32, 256, 2500}, {16, 16, 256, 2000}, {8, 16, 128, 1500}, {8, 8, 64, 1000}};
  const size_t around = filled(picture, "").size() + 1024;
  const size_t room = kMostPageBytes > around ? kMostPageBytes - around : 0;
  for (const DrawingLimits& limits : tries) {
    PageWriter writer(picture, limits, size_t{1} << 40);
    const std::string body = writer.body();
    if (body.size() <= room) return filled(picture, body);
  }
  // Words beside the drawings, and tables, have a quarter.
  return filled(picture, PageWriter(picture, tries.back(), room / 4 * 3).body());
}

std::vector<std::pair<std::string, std::string>> svg_files(const Picture& picture) {
  std::vector<std::pair<std::string, std::string>> files;
  const auto add = [&](const std::string& name, const Svg& svg) {
    const std::string first = file_name(name);
    const auto is_taken = [&](const std::string& wanted) {
      return std::any_of(files.begin(), files.end(), [&](const auto& file) { return file.first == wanted; });
    };
    std::string wanted = first + ".svg";
    for (int number = 2; is_taken(wanted); ++number) wanted = fmt::format("{}_{}.svg", first, number);
    files.emplace_back(std::move(wanted), svg.standalone());
  };
  for (size_t k = 0; k < picture.kernels.size(); ++k) {
    const KernelPicture& kernel = picture.kernels[k];
    const std::string prefix = picture.kernels.size() == 1 ? "" : fmt::format("k{}_", k);
    if (kernel.timeline) add(prefix + "timeline", draw(*kernel.timeline));
    if (kernel.roofline) add(prefix + "roofline", draw(*kernel.roofline));
    for (const SharedPicture& tile : kernel.shared) add(prefix + "shared_" + tile.name, draw(tile));
    for (const RegisterTile& tile : kernel.registers) add(prefix + "registers_" + tile.name, draw(tile));
  }
  return files;
}

}  // namespace tilepilot::show
