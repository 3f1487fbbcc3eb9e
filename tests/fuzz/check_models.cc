// Compiles the models of a folder and random changes of them, up to the plan, without libFuzzer and
// without sanitizers: a test that the compiler refuses what is wrong and survives it.
//
//   check_models FOLDER MUTATIONS SEED
//
// Ends with 1 when fewer than a tenth of the mutations reach autodiff, and by a signal when the
// compiler breaks or computes for more than ten seconds; the input is then still in the file that
// the first line names.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/compile_model.h"
#include "fuzz/mutate_model.h"

namespace sgtc::fuzz {
namespace {
namespace fs = std::filesystem;

constexpr double kLeastShare = 0.1;
// Mutations of mutations, as the corpus of a fuzzer grows them.
constexpr int kMostRounds = 4;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Reached compile(const ModelCompiler& compiler, const std::string& file) {
  return compiler.compile({reinterpret_cast<const uint8_t*>(file.data()), file.size()});
}

int run(const std::string& folder, int64_t mutations, uint32_t seed) {
  const ModelCompiler compiler;
  std::printf("input: %s\n", compiler.path().c_str());
  std::fflush(stdout);
  std::vector<fs::path> paths(fs::directory_iterator(folder), fs::directory_iterator{});
  std::sort(paths.begin(), paths.end());
  Counts corpus, mutated;
  std::vector<std::string> files;
  for (const fs::path& path : paths) {
    files.push_back(read(path));
    corpus.add(compile(compiler, files.back()));
  }
  std::printf("corpus: %s\n", corpus.text().c_str());
  if (files.empty()) return 1;
  std::mt19937 random(seed);
  for (int64_t i = 0; i < mutations; ++i) {
    onnx::ModelProto model, other;
    if (!model.ParseFromString(files[random() % files.size()])) continue;
    ModelMutator mutator(static_cast<uint32_t>(random()));
    if (random() % 4 == 0 && other.ParseFromString(files[random() % files.size()])) {
      mutator.cross(model, other);
    }
    for (unsigned rounds = random() % kMostRounds + 1; rounds > 0; --rounds) mutator.mutate(model);
    mutated.add(compile(compiler, model.SerializeAsString()));
  }
  std::printf("mutations: %s\n", mutated.text().c_str());
  return mutated.share_of_autodiff() >= kLeastShare ? 0 : 1;
}

}  // namespace
}  // namespace sgtc::fuzz

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: check_models FOLDER MUTATIONS SEED\n");
    return 2;
  }
  return sgtc::fuzz::run(argv[1], std::atoll(argv[2]),
                         static_cast<uint32_t>(std::strtoul(argv[3], nullptr, 10)));
}
