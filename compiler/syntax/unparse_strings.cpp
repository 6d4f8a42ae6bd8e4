// Strings and f-strings as source: which quotes to take, and what to escape.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/syntax/literal_text.h"
#include "compiler/syntax/unparser.h"

namespace tilepilot::syntax {

void Unparser::operator()(const StringLiteral& e) {
  if (!rules_.inside_field) return write(python_literal(e.value));
  for (std::string_view mark : rules_.marks) {
    if (!fits_without_escapes(e.value, mark)) continue;
    write(mark);
    write(e.value);
    return write(mark);
  }
  possible_ = false;
}

// One character a byte: see bytes_literal.h.
void Unparser::bytes(const StringLiteral& e) {
  std::string text;
  for (size_t i = 0; i < e.value.size(); ++i) {
    auto byte = static_cast<unsigned char>(e.value[i]);
    // Of two bytes in UTF-8.
    if (byte >= 0x80)
      byte = static_cast<unsigned char>((byte << 6) | (static_cast<unsigned char>(e.value[++i]) & 0x3f));
    const bool plain = byte >= 0x20 && byte < 0x7f && byte != '\\' && byte != '"';
    text += plain ? std::string(1, static_cast<char>(byte)) : fmt::format("\\x{:02x}", byte);
  }
  const auto fits = [&](std::string_view mark) { return text.find(mark) == std::string::npos; };
  const bool is_free = !rules_.inside_field || text.find('\\') == std::string::npos;
  const auto mark = std::find_if(rules_.marks.begin(), rules_.marks.end(), fits);
  if (!is_free || mark == rules_.marks.end()) {
    possible_ = false;
    return;
  }
  write(fmt::format("b{0}{1}{0}", *mark, text));
}

void Unparser::operator()(const FormattedString& e) {
  for (std::string_view mark : rules_.marks) {
    std::optional<std::string> text = formatted(e, mark);
    if (text) return write(*text);
  }
  possible_ = false;
}

std::optional<std::string> Unparser::formatted(const FormattedString& e, std::string_view mark) const {
  std::string out = "f";
  out.append(mark);
  if (!format_parts(e.parts, mark, false, out)) return std::nullopt;
  return out.append(mark);
}

bool Unparser::format_parts(const std::vector<FormattedPart>& parts, std::string_view mark, bool is_format,
                            std::string& out) const {
  return std::all_of(parts.begin(), parts.end(), [&](const FormattedPart& part) {
    return literal_text(part.text, mark, is_format, out) && (!part.value || field(part, mark, out));
  });
}

bool Unparser::literal_text(std::string_view text, std::string_view mark, bool is_format, std::string& out) const {
  std::string braced;
  append_escaped(braced, text, mark);
  if (rules_.inside_field && braced != text) {
    if (!fits_without_escapes(text, mark)) return false;
    braced = text;  // as it is: within a field nothing may be escaped
  }
  for (char c : braced) {
    bool brace = c == '{' || c == '}';
    if (!brace) {
      out.push_back(c);
    } else if (is_format) {
      if (rules_.inside_field) return false;
      out.append(fmt::format("\\x{:02x}", static_cast<unsigned>(c)));
    } else {
      out.append(2, c);
    }
  }
  return true;
}

bool Unparser::field(const FormattedPart& part, std::string_view mark, std::string& out) const {
  out.push_back('{');
  if (!field_value(part, mark, out)) return false;
  bool implied = !part.self_text.empty() && part.conversion == 'r' && !part.format;
  if (part.conversion != 0 && !implied) {
    out.push_back('!');
    out.push_back(part.conversion);
  }
  if (part.format) {
    out.push_back(':');
    if (!format_parts(std::get<FormattedString>(part.format->node).parts, mark, true, out)) return false;
  }
  out.push_back('}');
  return true;
}

bool Unparser::field_value(const FormattedPart& part, std::string_view mark, std::string& out) const {
  if (!part.self_text.empty()) {
    if (part.self_text.find(mark) != std::string::npos) return false;
    out.append(part.self_text);
    return true;
  }
  StringRules inner{true, {}};
  for (std::string_view candidate : rules_.marks) {
    bool breaks_out = candidate.find(mark) != std::string_view::npos;
    if (!breaks_out && candidate != mark) inner.marks.push_back(candidate);
  }
  Unparser unparser(std::move(inner));
  unparser.expr(*part.value, Binding::conditional);
  if (!unparser.possible()) return false;
  std::string text = std::move(unparser).take();
  bool several_lines = text.find('\n') != std::string::npos;
  bool closes = text.find(mark) != std::string::npos;
  if (closes || (several_lines && mark.size() == 1)) return false;
  // The colon of a bare `lambda` would start the format, and `{{` is a brace.
  bool has_lambda = text.find("lambda") != std::string::npos;
  if (has_lambda) text = "(" + text + ")";
  if (text.front() == '{') out.push_back(' ');
  out.append(text);
  return true;
}

}  // namespace tilepilot::syntax
