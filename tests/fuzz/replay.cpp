// Runs a fuzz target without libFuzzer: each file of a corpus, then mutations of the files, the same ones every time.
// usage: fuzz_TARGET [--mutations N] [--seconds S] FILE_OR_FOLDER...
// It ends early after S seconds, and fails if one input takes far too long.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/fuzz/target.h"

namespace tilepilot::fuzz {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kLargest = 20'000;  // bytes of a mutant
constexpr std::chrono::seconds kLongestInput{20};

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void add_files(const std::filesystem::path& path, std::vector<std::string>& corpus) {
  if (!std::filesystem::is_directory(path)) return corpus.push_back(read_file(path));
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    const auto extension = entry.path().extension();
    if (entry.is_regular_file() && (extension == ".py" || extension == ".tir" || extension == ".ir"))
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) corpus.push_back(read_file(file));
}

class Mutator {
 public:
  explicit Mutator(const std::vector<std::string>& corpus) : corpus_(corpus) {}

  std::string next() {
    std::string text = pick();
    for (size_t edits = 1 + below(4); edits > 0; --edits) edit(text);
    if (text.size() > kLargest) text.resize(kLargest);
    return text;
  }

 private:
  size_t below(size_t bound) { return bound == 0 ? 0 : random_() % bound; }
  const std::string& pick() { return corpus_[below(corpus_.size())]; }

  void edit(std::string& text) {
    const size_t at = below(text.size() + 1);
    switch (below(6)) {
      case 0:
        text.insert(at, kWords[below(kWords.size())]);
        break;
      case 1:
        text.erase(at, 1 + below(20));
        break;
      case 2: {
        const std::string& other = pick();
        text.insert(at, other.substr(below(other.size()), below(80)));
        break;
      }
      case 3:
        text.insert(at, text.substr(below(text.size()), below(80)));
        break;
      case 4:
        text.replace(at, 1 + below(8), kWords[below(kWords.size())]);
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
    }
  }

  const std::vector<std::string>& corpus_;
  std::mt19937 random_{20261121};
};

// False if it took far too long.
bool run(const std::string& input) {
  const auto begin = Clock::now();
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  if (Clock::now() - begin < kLongestInput) return true;
  std::fprintf(stderr, "an input took longer than %d s:\n%s\n", static_cast<int>(kLongestInput.count()), input.c_str());
  return false;
}

}  // namespace
}  // namespace tilepilot::fuzz

int main(int count, char** arguments) {
  using namespace tilepilot::fuzz;
  long mutations = 0, seconds = 60;
  std::vector<std::string> corpus;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument == "--mutations" && i + 1 < count)
      mutations = std::atol(arguments[++i]);
    else if (argument == "--seconds" && i + 1 < count)
      seconds = std::atol(arguments[++i]);
    else
      add_files(argument, corpus);
  }
  if (corpus.empty()) {
    std::fprintf(stderr, "no corpus\n");
    return 2;
  }
  for (const std::string& input : corpus)
    if (!run(input)) return 1;
  Mutator mutator(corpus);
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  long done = 0;
  for (; done < mutations && Clock::now() < end; ++done)
    if (!run(mutator.next())) return 1;
  std::printf("%zu inputs, %ld mutations\n", corpus.size(), done);
  return 0;
}
