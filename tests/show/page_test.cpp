// The page and the drawings as files: well-formed, complete, of a bounded size, with every text escaped.
#include "show/page.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "compiler/runtime/process.h"
#include "tests/show/pictures.h"

namespace tilepilot::show::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class Page : public ::testing::Test {
 protected:
  Page() : folder_(std::filesystem::temp_directory_path() / fmt::format("tilepilot-show-{}", getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~Page() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  static std::string browser() {
    for (const char* name : {"chromium", "chromium-browser", "google-chrome", "chrome"})
      for (const char* folder : {"/usr/bin/", "/usr/local/bin/", "/snap/bin/"})
        if (std::filesystem::exists(folder + std::string(name))) return folder + std::string(name);
    return "";
  }

  std::filesystem::path folder_;
};

constexpr const char* kReadsXml = R"(
import os, sys, xml.dom.minidom
for name in sorted(os.listdir(sys.argv[1])):
    tree = xml.dom.minidom.parse(os.path.join(sys.argv[1], name)).documentElement
    assert tree.tagName == "svg", name
    print(name, tree.getAttribute("aria-label"))
)";

TEST_F(Page, HasDrawingsThatAreXml) {
  Picture picture = shown({.text = product("128, 128, 32", 2, 128)});
  picture.kernels[0].shared[0].name = "a<b>&\"\x01";
  for (const auto& [name, content] : svg_files(picture)) write(name, content);
  const auto read = runtime::run_process({"python3", "-c", kReadsXml, folder_.string()});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->exit_code, 0) << read->err;
  for (const char* name : {"timeline.svg", "roofline.svg", "shared_b.svg", "registers_c.svg", "shared_a_b____.svg"})
    EXPECT_THAT(read->out, HasSubstr(name));
}

TEST_F(Page, EscapesWhatProgramsName) {
  const std::string evil = "</script><script>alert(1)</script>";
  Picture picture = shown({.text = product("64, 64, 32", 2, 128)});
  picture.file = picture.call = picture.kernels[0].name = evil;
  picture.text += evil + "\n";
  picture.kernels[0].notes.push_back(evil);
  picture.kernels[0].choices.push_back({1, evil, evil, {evil}});
  picture.kernels[0].registers[0].name = evil;
  picture.kernels[0].timeline->rows[0].label = evil;
  const std::string text = page(picture);
  EXPECT_THAT(text, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(text, HasSubstr("&lt;script&gt;alert(1)"));
  for (const auto& [name, content] : svg_files(picture)) EXPECT_THAT(content, Not(HasSubstr("<script"))) << name;
}

// Marks of the template in a program stay the program's.
TEST_F(Page, TakesNoTextForItsTemplate) {
  Picture picture = shown({.text = "# @STYLE@ @BODY@ @TITLE@\n" + product("64, 64, 32", 2, 128), .executes = false});
  EXPECT_THAT(page(picture), HasSubstr("# @STYLE@ @BODY@ @TITLE@"));
}

TEST_F(Page, StaysBelowItsLimit) {
  Picture picture = shown({.text = product("128, 128, 64", 3, 256), .target = "emulate:sm_90a"});
  EXPECT_LT(page(picture).size(), kMostPageBytes);
  EXPECT_THAT(page(picture), Not(HasSubstr("left out")));
  for (int copy = 0; copy < 40; ++copy) {
    picture.kernels[0].registers.push_back(picture.kernels[0].registers[0]);
    picture.kernels[0].shared.push_back(picture.kernels[0].shared[0]);
  }
  EXPECT_LT(page(picture).size(), kMostPageBytes);
  for (int kernel = 0; kernel < 5; ++kernel) picture.kernels.push_back(picture.kernels[0]);
  picture.text += std::string(1 << 20, 'x');
  const std::string text = page(picture);
  EXPECT_LT(text.size(), kMostPageBytes);
  EXPECT_THAT(text, HasSubstr("This drawing is left out"));
  EXPECT_THAT(text, HasSubstr("The rest of the file is left out"));
}

TEST_F(Page, SaysWhatIsCropped) {
  const Picture picture = shown({.text = product("128, 128, 64", 3, 256), .target = "emulate:sm_90a"});
  const std::string text = page(picture);
  EXPECT_THAT(text, HasSubstr("rows 0 to 15 of 128, columns 0 to 31 of 128"));
  EXPECT_THAT(text, HasSubstr("the first 16 of 384 rows of banks"));
}

// TILEPILOT_SCREENSHOTS names a folder to keep what was seen in.
TEST_F(Page, IsReadableAtTwoWidthsLightAndDark) {
  if (browser().empty()) GTEST_SKIP() << "there is no Chromium here";
  const Picture picture = shown({.text = product("128, 128, 64", 3, 256), .target = "emulate:sm_90a"});
  write("page.html", page(picture));
  std::vector<std::string> command = {"python3", TILEPILOT_SOURCE_DIR "/tests/show/look_at_page.py", browser(),
                                      (folder_ / "page.html").string()};
  if (const char* screenshots = std::getenv("TILEPILOT_SCREENSHOTS")) command.emplace_back(screenshots);
  const auto looked = runtime::run_process(command, {.time_limit_s = 100});
  ASSERT_TRUE(looked.ok());
  ASSERT_EQ(looked->exit_code, 0) << looked->err;
  const json seen = json::parse(looked->out);
  EXPECT_EQ(seen["errors"], json::array());
  EXPECT_EQ(seen["requests"], json::array());
  ASSERT_EQ(seen["views"].size(), 4u);
  for (const json& view : seen["views"]) {
    const std::string which = view["width"].dump() + " " + view["scheme"].get<std::string>();
    EXPECT_GE(view["drawings"], 5) << which;
    for (const char* state : {"folded", "open"}) {
      EXPECT_LE(view[state]["page"], view["width"]) << which << " " << view[state].dump();
      EXPECT_EQ(view[state]["wide"], json::array()) << which;
    }
    const json& keys = view["keys"];
    EXPECT_TRUE(keys["focused"]) << which;
    EXPECT_NE(keys["texts"][0], keys["texts"][1]) << which;
    EXPECT_NE(keys["texts"][1], keys["texts"][2]) << which;
    EXPECT_GT(view["lines"]["lines"], 2) << which;
    EXPECT_GT(view["lines"]["hot"], 0) << which;
    EXPECT_GE(view["lines"]["hot"], view["lines"]["others"]) << which;
    EXPECT_GE(view["contrast"]["least"].get<double>(), 4.5) << which << " " << view["contrast"].dump();
  }
}

}  // namespace
}  // namespace tilepilot::show::testing
