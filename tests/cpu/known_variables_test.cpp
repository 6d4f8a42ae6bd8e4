// What is known of a variable, its name or its range, is never another one's, though that may lie where the first one
// lay before it was dropped.
#include <gtest/gtest.h>

#include "compiler/targets/c/integer_facts.h"
#include "compiler/targets/c/names.h"

namespace tilepilot::targets::c {
namespace {

constexpr int kTries = 200;  // of which some get memory that was given back

TEST(NamesInC, AreNeitherWordsNorMacros) {
  for (const char* word : {"bitand", "not_eq", "nullptr", "thread_local", "INT64_MAX", "UINT8_MAX", "SIZE_MAX", "NULL",
                           "errno", "EOF", "consteval", "M_PI", "noreturn"}) {
    Names names("");
    EXPECT_EQ(names.of(ir::make_var(word, ir::kInt32)), std::string(word) + "_");
  }
  Names names("");
  EXPECT_EQ(names.of(ir::make_var("_Complex", ir::kInt32)), "v_Complex");
  EXPECT_EQ(names.of(ir::make_var("INPUT", ir::kInt32)), "INPUT");
  EXPECT_EQ(names.of(ir::make_var("S_MAX", ir::kInt32)), "S_MAX");
}

TEST(KnownVariables, KeepTheirNames) {
  Names names("");
  ir::Var first = ir::make_var("x", ir::kInt32);
  const std::string name = names.of(first);
  first.reset();
  for (int k = 0; k < kTries; ++k) EXPECT_NE(names.of(ir::make_var("x", ir::kInt32)), name);
}

TEST(KnownVariables, KeepTheirRangesAndValues) {
  IntegerFacts facts;
  for (int k = 0; k < kTries; ++k) {
    const ir::Var known = ir::make_var("known", ir::kInt32), named = ir::make_var("named", ir::kInt32);
    facts.set_range(known, {0, 3});
    facts.set_value(named, ir::int_imm(1));
  }
  for (int k = 0; k < kTries; ++k) {
    const ir::Expr unknown = ir::var_ref(ir::make_var("unknown", ir::kInt32));
    EXPECT_FALSE(facts.is_never_negative(unknown));
    EXPECT_FALSE(facts.in_bounds(unknown, ir::int_imm(8)));
  }
}

}  // namespace
}  // namespace tilepilot::targets::c
