// Random generator functions, and what a program does with them step by step.
#include "tests/stage/random_generators.h"

#include <fmt/format.h>

namespace tilepilot::stage {
namespace {

constexpr int kFunctions = 3;

}  // namespace

std::string RandomGenerators::program() {
  std::string text =
      "import contextlib\n"
      "@contextlib.contextmanager\n"
      "def context(name):\n"
      "    print('enter', name)\n"
      "    try:\n"
      "        yield name\n"
      "    except KeyError:\n"
      "        print('swallowed')\n"
      "    finally:\n"
      "        print('leave', name)\n";
  // A function delegates only to those before it: no recursion.
  for (function_ = 0; function_ < kFunctions; ++function_)
    text += fmt::format("def g{}(n):\n{}", function_, body(1, 3));
  const std::string last = fmt::format("g{}", kFunctions - 1);
  text += fmt::format("g = {}({})\n", last, below(4));
  for (size_t steps = 2 + below(6); steps > 0; --steps) text += step();
  text += "del g\nprint('left')\n";
  text += fmt::format("for v in {}({}):\n    print('loop', v)\n{}", last, below(4), chance(2) ? "    break\n" : "");
  text += fmt::format("print(list(x * 2 for x in {}(1)), sum(1 for _ in {}(2)))\n", last, last);
  return text;
}

// One use of the generator `g`, with whatever it raises.
std::string RandomGenerators::step() {
  static const char* const kUses[] = {"print('next', next(g))",
                                      "print('default', next(g, 'end'))",
                                      "print('send', g.send(7))",
                                      "print('thrown', g.throw(ValueError('v')))",
                                      "print('thrown', g.throw(KeyError('k')))",
                                      "g.close()",
                                      "print('first', [v for _, v in zip(range(2), g)])"};
  return fmt::format(
      "try:\n    {}\nexcept StopIteration as e:\n    print('stop', e.value)\nexcept Exception as e:\n"
      "    print(type(e).__name__, e)\n",
      kUses[below(std::size(kUses))]);
}

std::string RandomGenerators::body(int depth, size_t longest) {
  std::string text;
  for (size_t count = 1 + below(longest); count > 0; --count) text += statement(depth);
  return text + std::string(static_cast<size_t>(depth) * 4, ' ') + "yield n\n";
}

std::string RandomGenerators::statement(int depth) {
  const std::string pad(static_cast<size_t>(depth) * 4, ' ');
  const bool deep = depth >= 4;
  switch (below(deep ? 5 : 9)) {
    case 0:
      return pad + fmt::format("print('at', n + {})\n", below(9));
    case 1:
      return pad + fmt::format("x = yield n * {}\n", below(9)) + pad + "print('got', x)\n";
    case 2:
      return pad + fmt::format("if n > {}:\n", below(4)) + pad + fmt::format("    return n - {}\n", below(5));
    case 3:
      return pad + fmt::format("yield from [n, {}]\n", below(9));
    case 4:
      if (function_ == 0) return pad + "yield 'first'\n";
      return pad + fmt::format("print('result', (yield from g{}(n + 1)))\n", below(static_cast<size_t>(function_)));
    case 5:
      return pad + "try:\n" + body(depth + 1, 2) + pad + "except ValueError as e:\n" + pad +
             "    print('caught', e)\n" + body(depth + 1, 1) +
             (chance(2) ? pad + "finally:\n" + pad + "    print('end')\n" : "");
    case 6:
      return pad + "try:\n" + body(depth + 1, 2) + pad + "finally:\n" + pad + "    print('finally', n)\n";
    case 7:
      return pad + fmt::format("with context('c{}') as c:\n", below(9)) + body(depth + 1, 2);
    default:
      return pad + "for i in range(2):\n" + body(depth + 1, 2);
  }
}

}  // namespace tilepilot::stage
