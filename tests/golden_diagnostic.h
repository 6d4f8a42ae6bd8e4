// Golden files of diagnostics whose cause is not a source file: missing programs, full disks, refused keys.
#pragma once

#include <unistd.h>

#include "compiler/diagnostics/render.h"
#include "compiler/diagnostics/result.h"
#include "tests/golden.h"

namespace tilepilot::testing {

// A test with an empty folder of its own, which diagnostics show as FOLDER.
class DiagnosticTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "tilepilot-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }

  // A program that is a shell script.
  std::string script(const std::string& name, const std::string& text) const {
    std::filesystem::path path = write(name, "#!/bin/sh\n" + text + "\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path.string();
  }

  // Compares a rendered diagnostic with tests/diagnostics/golden/KIND.txt.
  void expect_diagnostic(const std::string& kind, std::string text) const {
    EXPECT_NE(text.find("[" + kind + "]"), std::string::npos) << text;
    for (size_t at; (at = text.find(folder_.string())) != std::string::npos;) {
      text.replace(at, folder_.string().size(), "FOLDER");
    }
    expect_golden("diagnostics/golden/" + kind + ".txt", text);
  }
  template <class T>
  void expect_diagnostic(const std::string& kind, const Result<T>& result) const {
    ASSERT_FALSE(result.ok()) << "no `" << kind << "`";
    expect_diagnostic(kind, render(sources_, result.error()));
  }

  std::filesystem::path folder_;
  SourceMap sources_;
};

}  // namespace tilepilot::testing
