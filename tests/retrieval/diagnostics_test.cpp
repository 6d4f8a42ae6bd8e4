#include "retrieval/corpus.h"
#include "tests/golden_diagnostic.h"

namespace tilepilot::retrieval {
namespace {

using Diagnostics = testing::DiagnosticTest;

TEST_F(Diagnostics, StoreUnusable) {
  auto file = write("corpus.db", "this is a text file that is long enough to be taken for something else\n");
  expect_diagnostic("store_unusable", open_corpus(file));
}

}  // namespace
}  // namespace tilepilot::retrieval
