#include "tests/stage/random_python.h"

#include <fmt/format.h>

namespace tilepilot::stage {

std::string RandomPython::integer() {
  static constexpr std::string_view kSpecial[] = {
      "0",
      "1",
      "2",
      "3",
      "7",
      "10",
      "63",
      "64",
      "-1",
      "-2",
      "-7",
      "-13",
      "2147483647",
      "-2147483648",
      "4294967296",
      "9007199254740993",
      "255",
      "-255",
      "1000003",
      "9223372036854775807",
      "-9223372036854775807",
      "4611686018427387904",
      "9223372036854775808",
      "-9223372036854775808",
      "18446744073709551615",
      "0xFFFFFFFFFFFFFFFF",
      "-0x1_0000_0000_0000_0000",
      "340282366920938463463374607431768211455",
      "-1000000000000000000000000000000",
  };
  if (use_variables_ && chance(40)) return variable();
  if (chance(40)) return "(" + pick(kSpecial) + ")";
  return fmt::format("({})", static_cast<int64_t>(below(2001)) - 1000);
}

std::string RandomPython::real() {
  static constexpr std::string_view kSpecial[] = {
      "0.0",
      "-0.0",
      "0.5",
      "1.5",
      "2.5",
      "-2.5",
      "1e16",
      "1e15",
      "123456789012345680.0",
      "1e22",
      "1e-5",
      "1e-4",
      "0.1",
      "1e300",
      "-1e-300",
      "3.14159",
      "1e100",
      "2.675",
      "0.3",
      "9007199254740993.0",
      "1.0",
      "-7.25",
      "1e23",
      "5e-324",
      "1.7976931348623157e308",
  };
  if (chance(60)) return "(" + pick(kSpecial) + ")";
  return fmt::format("({}.{})", static_cast<int64_t>(below(201)) - 100, below(1000));
}

std::string RandomPython::number(int depth) {
  if (depth <= 0) return chance(70) ? integer() : real();
  static constexpr std::string_view kOperators[] = {"+", "-", "*", "/", "//", "%", "**", "<<", ">>", "&", "|", "^"};
  switch (below(12)) {
    case 0:
      return fmt::format("({}{})", pick({"-", "+", "~"}), number(depth - 1));
    case 1:
      return fmt::format("abs({})", number(depth - 1));
    case 2:
      return fmt::format("round({}, {})", number(depth - 1), static_cast<int>(below(8)) - 3);
    case 3:
      return fmt::format("round({})", number(depth - 1));
    case 4:
      return fmt::format("{}({})", pick({"int", "float", "bool"}), number(depth - 1));
    case 5:
      return fmt::format("{}({}, {})", pick({"min", "max", "divmod"}), number(depth - 1), number(depth - 1));
    case 6:
      return fmt::format("({} if {} else {})", number(depth - 1), truth(depth - 1), number(depth - 1));
    default:
      return fmt::format("({} {} {})", number(depth - 1), pick(kOperators), number(depth - 1));
  }
}

std::string RandomPython::truth(int depth) {
  static constexpr std::string_view kCompare[] = {"<", "<=", ">", ">=", "==", "!="};
  if (depth <= 0) return fmt::format("({} {} {})", integer(), pick(kCompare), real());
  switch (below(5)) {
    case 0:
      return fmt::format("(not {})", truth(depth - 1));
    case 1:
      return fmt::format("({} {} {})", truth(depth - 1), pick({"and", "or"}), truth(depth - 1));
    case 2:
      return fmt::format("({} {} {} {} {})", number(depth - 1), pick(kCompare), number(depth - 1), pick(kCompare),
                         number(depth - 1));
    default:
      return fmt::format("({} {} {})", number(depth - 1), pick(kCompare), number(depth - 1));
  }
}

std::string RandomPython::expression() {
  switch (below(10)) {
    case 0:
      return truth(2);
    case 1:
      return fmt::format("({}, {})", number(2), truth(1));
    case 2:
      return fmt::format("{} + {}", number(1), text(0));
    default:
      return number(3);
  }
}

std::string RandomPython::text(int depth) {
  static constexpr std::string_view kTexts[] = {
      "''",           "'a'",     "'abc'",  "'Hello, World'", "'  x y  '", "'aXbXc'",  "'it\\'s'",
      "'tab\\there'", "'\"q\"'", "'123'",  "'-12'",          "'日本'",    "'a,b,,c'", "'line\\nbreak'",
      "'abcabcabc'",  "'ABC'",   "'\\\\'",
  };
  if (depth <= 0) return pick(kTexts);
  switch (below(14)) {
    case 0:
      return fmt::format("({} + {})", text(depth - 1), text(depth - 1));
    case 1:
      return fmt::format("({} * {})", text(depth - 1), static_cast<int>(below(6)) - 1);
    case 2:
      return fmt::format("{}[{}]", text(depth - 1), slice());
    case 3:
      return fmt::format("{}.{}()", text(depth - 1),
                         pick({"upper", "lower", "strip", "title", "capitalize", "swapcase", "lstrip", "rstrip"}));
    case 4:
      return fmt::format("{}.replace({}, {})", text(depth - 1), text(0), text(0));
    case 5:
      return fmt::format("{}.{}({}, '*')", text(depth - 1), pick({"center", "ljust", "rjust"}), below(20));
    case 6:
      return fmt::format("{}.zfill({})", text(depth - 1), below(10));
    case 7:
      return fmt::format("{}.join({})", text(0), list(depth - 1));
    case 8:
      return fmt::format("{}.{}({})", text(depth - 1), pick({"removeprefix", "removesuffix", "strip"}), text(0));
    case 9:
      return fmt::format("str({})", number(1));
    case 10:
      return fmt::format("repr({})", text(depth - 1));
    default:
      return text(depth - 1);
  }
}

std::string RandomPython::slice() {
  auto end = [&] { return chance(30) ? std::string() : fmt::format("{}", static_cast<int>(below(17)) - 8); };
  if (chance(25)) return fmt::format("{}", static_cast<int>(below(9)) - 4);
  std::string text = end() + ":" + end();
  if (chance(50)) text += fmt::format(":{}", static_cast<int>(below(7)) - 3);
  return text;
}

std::string RandomPython::list(int depth) {
  if (depth <= 0) {
    std::string items;
    size_t count = below(5);
    for (size_t i = 0; i < count; ++i) items += (i ? ", " : "") + (chance(60) ? text(0) : integer());
    return chance(50) || count == 1 ? "[" + items + "]" : "(" + items + ")";
  }
  switch (below(10)) {
    case 0:
      return fmt::format("{}.split({})", text(depth - 1), chance(50) ? std::string() : text(0));
    case 1:
      return fmt::format("{}.{}({}, {})", text(0), pick({"split", "rsplit"}), pick({"None", "','", "'X'", "'b'"}),
                         below(4));
    case 2:
      return fmt::format("{}[{}]", list(depth - 1), slice());
    case 3:
      return fmt::format("({} + {})", list(depth - 1), list(depth - 1));
    case 4:
      return fmt::format("[x for x in range({}, {}, {})]", static_cast<int>(below(40)) - 20, below(30),
                         static_cast<int>(below(7)) - 3);
    case 5:
      return fmt::format("sorted({})", list(depth - 1));
    case 6:
      return fmt::format("list(enumerate({}))", list(depth - 1));
    case 7:
      return fmt::format("list(zip({}, {}))", list(depth - 1), list(depth - 1));
    case 8:
      return fmt::format("list(reversed({}))", list(depth - 1));
    default:
      return list(depth - 1);
  }
}

std::string RandomPython::sequence_expression() {
  switch (below(16)) {
    case 0:
      return fmt::format("{} in {}", text(0), list(1));
    case 1:
      return fmt::format("{} in {}", text(0), text(1));
    case 2:
      return fmt::format("({} {} {})", text(1), pick({"<", "==", ">=", "!="}), text(1));
    case 3:
      return fmt::format("({} {} {})", list(1), pick({"<", "==", ">=", "!="}), list(1));
    case 4:
      return fmt::format("{}.{}({})", text(1), pick({"find", "rfind", "index", "count", "startswith", "endswith"}),
                         text(0));
    case 5:
      return fmt::format("{}.{}({})", text(1), pick({"partition", "rpartition"}), text(0));
    case 6:
      return fmt::format(
          "{}.{}()", text(1),
          pick({"isdigit", "isalpha", "isupper", "islower", "isspace", "isalnum", "splitlines", "isidentifier"}));
    case 7:
      return fmt::format("{{{}: {}, {}: {}}}", text(0), number(1), text(0), text(1));
    case 8:
      return fmt::format("sorted(set({}) {} set({}))", text(0), pick({"|", "&", "-", "^"}), text(1));
    case 9:
      return fmt::format("{}({})", pick({"len", "sum", "max", "min", "any", "all"}), list(1));
    case 10:
      return fmt::format("int({})", text(1));
    case 11:
      return fmt::format("float({})",
                         pick({"'1e5'", "' 2.5 '", "'inf'", "'nan'", "'1_0'", "'abc'", "''", "'-0'", "'1e400'"}));
    case 12:
      return fmt::format("{{k: v for k, v in enumerate({})}}", list(1));
    case 13:
      return fmt::format("{{{}: 1, {}: 2, True: 3}}", integer(), real());
    case 14:
      return text(3);
    default:
      return list(2);
  }
}

std::string RandomPython::float_spec() {
  std::string spec;
  if (chance(30)) spec += pick({"<", ">", "^", "=", "*<", "_>", "x^", "0="});
  if (chance(30)) spec += pick({"+", "-", " "});
  if (chance(15)) spec += "#";
  if (chance(25)) spec += "0";
  if (chance(50)) spec += fmt::format("{}", 1 + below(18));
  if (chance(20)) spec += pick({",", "_"});
  if (chance(60)) spec += fmt::format(".{}", below(9));
  if (chance(80)) spec += pick({"f", "e", "g", "E", "G", "F", "%"});
  return spec;
}

std::string RandomPython::integer_spec() {
  std::string spec;
  if (chance(30)) spec += pick({"<", ">", "^", "=", "*<", "_>", "x^", "0="});
  if (chance(30)) spec += pick({"+", "-", " "});
  if (chance(25)) spec += "#";
  if (chance(25)) spec += "0";
  if (chance(50)) spec += fmt::format("{}", 1 + below(18));
  bool decimal = chance(60);
  if (chance(20)) spec += decimal ? pick({",", "_"}) : "_";
  if (!decimal) return spec + pick({"x", "X", "o", "b"});
  return chance(50) ? spec + "d" : spec;
}

std::string RandomPython::formatting() {
  switch (below(8)) {
    case 0:
      return fmt::format("format({}, '{}')", real(), float_spec());
    case 1:
      return fmt::format("f'{{{}:{}}}'", integer(), integer_spec());
    case 2:
      return fmt::format("f'{{{}:{}}}|{{{}!r:>{}}}'", real(), float_spec(), real(), below(20));
    case 3:
      return fmt::format("'{{0:{}}} {{1:{}}}'.format({}, {})", integer_spec(), float_spec(), integer(), real());
    case 4: {
      bool as_integer = chance(40);
      std::string value = as_integer ? integer() : real();
      std::string type =
          as_integer ? pick({"d", "i", "x", "o", "X", "s", "f"}) : pick({"f", "e", "g", "s", "r", "G", "x"});
      return fmt::format("'%{}{}{}{} %s' % ({}, {})", pick({"", "-", "0", "+", " ", "#"}), pick({"", "5", "12"}),
                         pick({"", ".0", ".3", ".8"}), type, value, integer());
    }
    case 5:
      return fmt::format("format({}, '{}{}{}')", text(0), pick({"", "<", ">", "^", "*^"}), below(15),
                         chance(40) ? fmt::format(".{}", below(6)) : "");
    case 6:
      return fmt::format("str({}) + repr({})", real(), real());
    default:
      return fmt::format("f'{{{}:{}}}'", integer(), float_spec());
  }
}

std::string RandomPython::variable() { return pick({"a", "b", "c"}); }

std::string RandomPython::block(int depth, int indent) {
  std::string text;
  size_t count = 1 + below(3);
  for (size_t i = 0; i < count; ++i) text += statement(depth, indent);
  return text;
}

std::string RandomPython::statement(int depth, int indent) {
  std::string pad(static_cast<size_t>(indent) * 2, ' ');
  if (depth <= 0 || chance(40)) {
    switch (below(5)) {
      case 0:
        return fmt::format("{}{} {}= {}\n", pad, variable(), pick({"+", "-", "*", "//", "%", "^", "|"}), number(1));
      case 1:
        return fmt::format("{}print({}, {})\n", pad, variable(), truth(1));
      case 2:
        return fmt::format("{}{}, {} = {}, {}\n", pad, variable(), variable(), variable(), number(1));
      case 3:
        return fmt::format("{}xs.append({})\n", pad, variable());
      default:
        return fmt::format("{}{} = {}\n", pad, variable(), number(2));
    }
  }
  switch (below(8)) {
    case 0:
      return fmt::format("{}if {}:\n{}{}else:\n{}", pad, truth(1), block(depth - 1, indent + 1), pad,
                         block(depth - 1, indent + 1));
    case 1:
      return fmt::format("{}for i in range({}):\n{}{}  if i == {}: {}\n{}else:\n{}", pad, below(5),
                         block(depth - 1, indent + 1), pad, below(4), pick({"break", "continue"}), pad,
                         block(depth - 1, indent + 1));
    case 2:
      return fmt::format("{0}n{3} = 0\n{0}while n{3} < {1}:\n{0}  n{3} += 1\n{2}", pad, below(4),
                         block(depth - 1, indent + 1), indent);
    case 3:
      return fmt::format("{}try:\n{}{}except ({}):\n{}{}finally:\n{}  print('finally')\n", pad,
                         block(depth - 1, indent + 1), pad,
                         pick({"ZeroDivisionError", "TypeError, ValueError", "ArithmeticError"}),
                         block(depth - 1, indent + 1), pad, pad);
    case 4:
      return fmt::format(
          "{0}def f(x, y={1}, *rest, k=1, **more):\n{0}  return (x, y, rest, k, sorted(more))\n"
          "{0}print(f({2}))\n",
          pad, integer(), pick({"1", "1, 2, 3", "*[1, 2], k=3", "x=1, z=2", "", "1, x=2", "**{'x': 5}"}));
    case 5:
      return fmt::format("{0}g = lambda x: x + {1}\n{0}print([g(v) for v in ({2}, {3}) if v != {4}])\n", pad, integer(),
                         integer(), integer(), integer());
    case 6:
      return fmt::format("{}print(sorted(xs), len(xs), xs[{}])\n", pad, slice());
    default:
      return fmt::format("{0}d = {{'a': a}}\n{0}d[{1}] = {2}\n{0}print(d, list(d.items()), d.get('q', {3}))\n", pad,
                         pick({"'a'", "'b'", "1", "1.0", "True"}), number(1), integer());
  }
}

std::string RandomPython::program() {
  use_variables_ = true;
  std::string text = "a, b, c, xs, f = 1, 2, 3, [], None\n";
  for (int i = 0; i < 5; ++i) text += statement(3, 0);
  text += "print(a, b, c, xs)\n";
  use_variables_ = false;
  return text;
}

}  // namespace tilepilot::stage
