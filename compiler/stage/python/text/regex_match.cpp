// The backtracking matcher.
#include <algorithm>

#include "compiler/stage/python/text/regex.h"
#include "compiler/syntax/unicode.h"

namespace tilepilot::stage::regex {

namespace {

constexpr size_t kMostFrames = 4'000'000;

bool in_category(Category category, char32_t c, bool ascii) {
  switch (category) {
    case Category::digit:
      return c >= '0' && c <= '9';
    case Category::not_digit:
      return !(c >= '0' && c <= '9');
    case Category::space:
      return is_space(c, ascii);
    case Category::not_space:
      return !is_space(c, ascii);
    case Category::word:
      return is_word(c, ascii);
    default:
      return !is_word(c, ascii);
  }
}

class Matcher {
 public:
  Matcher(const Program& program, const Subject& subject, int64_t& steps_left)
      : program_(program), subject_(subject), text_(subject.text), steps_left_(steps_left) {}

  Outcome at(size_t start) {
    start_ = start;
    slots_.assign(program_.slots, -1);
    frames_.clear();
    size_t position = start;
    const bool matched = run(0, position);
    return exhausted_ ? Outcome::out_of_steps : matched ? Outcome::matched : Outcome::no_match;
  }
  std::vector<int64_t>& slots() { return slots_; }

 private:
  // What to try when the present way fails, or what to undo on the way back.
  struct Frame {
    enum class Kind : uint8_t { branch, give_back, take_more, restore } kind;
    uint32_t pc = 0;  // restore: the slot
    size_t position = 0;
    int64_t value = 0;  // give_back: the least position; take_more: how many more; restore: the old value
  };

  bool push(Frame frame) {
    if (frames_.size() >= kMostFrames) exhausted_ = true;
    frames_.push_back(frame);
    return !exhausted_;
  }

  void set(uint32_t slot, int64_t value) {
    push({Frame::Kind::restore, slot, 0, slots_[slot]});
    slots_[slot] = value;
  }

  // Goes back to the last choice above `base`; false if there is none.
  bool back(size_t base, uint32_t& pc, size_t& position) {
    while (frames_.size() > base) {
      const Frame frame = frames_.back();
      frames_.pop_back();
      switch (frame.kind) {
        case Frame::Kind::restore:
          slots_[frame.pc] = frame.value;
          break;
        case Frame::Kind::branch:
          pc = frame.pc, position = frame.position;
          return true;
        case Frame::Kind::give_back:
          position = frame.position - 1;
          if (static_cast<int64_t>(position) > frame.value) push({frame.kind, frame.pc, position, frame.value});
          pc = frame.pc;
          return true;
        case Frame::Kind::take_more:
          if (take_one(frame, pc, position)) return true;
          break;
      }
    }
    return false;
  }

  // One more round of a lazy repetition.
  bool take_one(const Frame& frame, uint32_t& pc, size_t& position) {
    const Single& single = program_.singles[program_.code[frame.pc].index];
    if (frame.position >= text_.size() || !single.matches(text_[frame.position])) return false;
    position = frame.position + 1;
    if (frame.value > 1) push({frame.kind, frame.pc, position, frame.value - 1});
    pc = frame.pc + 1;
    return true;
  }

  // Runs from `pc` to `match`; what it set stays undoable, and no choice of its own is left.
  bool run(uint32_t pc, size_t& position) {
    const size_t base = frames_.size();
    for (;;) {
      if (--steps_left_ < 0) exhausted_ = true;
      if (exhausted_) return false;
      const Instruction& now = program_.code[pc];
      if (now.op == Op::match && accepts(now, position)) break;
      if (now.op != Op::match && step(now, pc, position)) continue;
      if (!back(base, pc, position)) return false;
    }
    const auto is_choice = [](const Frame& frame) { return frame.kind != Frame::Kind::restore; };
    frames_.erase(std::remove_if(frames_.begin() + static_cast<std::ptrdiff_t>(base), frames_.end(), is_choice),
                  frames_.end());
    return true;
  }

  // The end of the whole pattern (`index` 1), where the caller may want more than a match.
  bool accepts(const Instruction& now, size_t position) const {
    if (now.index == 0) return true;
    if (subject_.anchor == Anchor::both && position != text_.size()) return false;
    return !(subject_.must_advance && start_ == subject_.start && position == start_);
  }

  bool step(const Instruction& now, uint32_t& pc, size_t& position) {
    switch (now.op) {
      case Op::single:
        if (position >= text_.size() || !program_.singles[now.index].matches(text_[position])) return false;
        ++position, ++pc;
        return true;
      case Op::repeat_single:
        return repeat(now, pc, position);
      case Op::branch:
        if (!push({Frame::Kind::branch, now.other, position, 0})) return false;
        pc = now.target;
        return true;
      case Op::jump:
        pc = now.target;
        return true;
      case Op::save:
      case Op::mark:
        set(now.index, static_cast<int64_t>(position));
        ++pc;
        return true;
      case Op::close:
        set(2 * now.index + 1, static_cast<int64_t>(position));
        set(program_.slots - 1, now.index);
        ++pc;
        return true;
      case Op::loop:
        pc = slots_[now.index] == static_cast<int64_t>(position) ? pc + 1 : now.target;
        return true;
      case Op::backreference:
        return repeat_group(now, pc, position);
      case Op::look:
      case Op::atomic:
        return look(now, pc, position);
      default:
        if (!holds(now, position)) return false;
        ++pc;
        return true;
    }
  }

  bool repeat(const Instruction& now, uint32_t& pc, size_t& position) {
    const Single& single = program_.singles[now.index];
    const size_t room = std::min<size_t>(text_.size() - position, now.max);
    const size_t wanted = now.greedy ? room : std::min<size_t>(room, now.min);
    size_t taken = 0;
    while (taken < wanted && single.matches(text_[position + taken])) ++taken;
    steps_left_ -= static_cast<int64_t>(taken / 16);
    if (taken < now.min) return false;
    const size_t least = position + now.min;
    position += taken;
    if (now.greedy && taken > now.min) push({Frame::Kind::give_back, pc + 1, position, static_cast<int64_t>(least)});
    if (!now.greedy && now.max > now.min) push({Frame::Kind::take_more, pc, position, int64_t{now.max} - now.min});
    ++pc;
    return true;
  }

  bool repeat_group(const Instruction& now, uint32_t& pc, size_t& position) {
    const int64_t begin = slots_[2 * now.index], end = slots_[2 * now.index + 1];
    if (begin < 0 || end < begin) return false;
    const auto size = static_cast<size_t>(end - begin);
    if (text_.size() - position < size) return false;
    for (size_t i = 0; i < size; ++i) {
      const char32_t a = text_[static_cast<size_t>(begin) + i], b = text_[position + i];
      if (a != b && !(now.ignores_case && folded(a, now.ascii) == folded(b, now.ascii))) return false;
    }
    position += size;
    ++pc;
    return true;
  }

  // As deep as the pattern nests such groups.
  bool look(const Instruction& now, uint32_t& pc, size_t& position) {
    size_t inside = position - std::min<size_t>(now.width, position);
    const size_t base = frames_.size();
    const bool matched = now.width <= position && run(pc + 1, inside);
    if (exhausted_) return false;
    if (matched && now.negated) undo(base);
    if (matched == now.negated) return false;
    if (now.op == Op::atomic) position = inside;
    pc = now.target;
    return true;
  }

  void undo(size_t base) {
    while (frames_.size() > base) {
      if (frames_.back().kind == Frame::Kind::restore) slots_[frames_.back().pc] = frames_.back().value;
      frames_.pop_back();
    }
  }

  bool holds(const Instruction& now, size_t position) const {
    const bool at_end = position == text_.size();
    switch (now.op) {
      case Op::text_begin:
        return position == 0;
      case Op::line_begin:
        return position == 0 || text_[position - 1] == '\n';
      case Op::text_end:
        return at_end;
      case Op::text_end_or_newline:
        return at_end || (position + 1 == text_.size() && text_[position] == '\n');
      case Op::line_end:
        return at_end || text_[position] == '\n';
      default:
        break;
    }
    if (text_.empty()) return false;  // neither kind, in Python
    const bool before = position > 0 && is_word(text_[position - 1], now.ascii);
    const bool after = !at_end && is_word(text_[position], now.ascii);
    return (before != after) == (now.op == Op::word_boundary);
  }

  const Program& program_;
  const Subject& subject_;
  const Text& text_;
  int64_t& steps_left_;
  std::vector<int64_t> slots_;
  std::vector<Frame> frames_;
  size_t start_ = 0;
  bool exhausted_ = false;
};

}  // namespace

bool is_word(char32_t c, bool ascii) {
  if (c < 0x80) return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
  return !ascii && syntax::is_letter(c);
}

bool is_space(char32_t c, bool ascii) {
  if (c == ' ' || (c >= '\t' && c <= '\r')) return true;
  if (ascii) return false;
  return (c >= 0x1c && c <= 0x1f) || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
         c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

// ASCII letters, and the four letters beyond that fold to one.
char32_t folded(char32_t c, bool ascii) {
  if (c >= 'A' && c <= 'Z') return c + 32;
  if (ascii || c < 0x80) return c;
  if (c == 0x130 || c == 0x131) return 'i';
  if (c == 0x17f) return 's';
  return c == 0x212a ? U'k' : c;
}

bool Single::matches(char32_t c) const {
  const auto has = [&](char32_t each) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const auto& range) { return range.first <= each && each <= range.second; }) ||
           std::any_of(categories.begin(), categories.end(),
                       [&](Category category) { return in_category(category, each, ascii); });
  };
  bool found = has(c);
  if (!found && ignores_case) {
    const char32_t lower = folded(c, ascii);
    found = has(lower) || (lower >= 'a' && lower <= 'z' && has(lower - 32));
  }
  return found != negated;
}

Outcome find(const Program& program, const Subject& subject, int64_t& steps_left, Found& found) {
  Matcher matcher(program, subject, steps_left);
  const size_t last = subject.anchor == Anchor::search ? subject.text.size() : subject.start;
  for (size_t start = subject.start; start <= last; ++start) {
    const Outcome outcome = matcher.at(start);
    if (outcome == Outcome::no_match) continue;
    found.last_group = std::max<int64_t>(matcher.slots().back(), 0);
    found.slots = std::move(matcher.slots());
    found.slots.resize(2 * (program.groups + 1));
    return outcome;
  }
  return Outcome::no_match;
}

}  // namespace tilepilot::stage::regex
