// The entry points of libFuzzer (scripts/fuzz.sh).
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "fuzz/compile_model.h"
#include "fuzz/mutate_model.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace sgtc::fuzz {
namespace {

constexpr int64_t kReportEvery = 10'000;
// To see by which stage an input is refused takes a second compilation, so only some are asked.
constexpr int64_t kAskEvery = 16;
// Most changes of a model that is refused are refused too: few of these join the corpus.
constexpr int64_t kKeepEvery = 8;

struct Run {
  int64_t inputs = 0;
  Counts asked;
};

Run& run() {
  static Run run;
  return run;
}

void report() {
  std::fprintf(stderr, "fuzz: %lld inputs, of which %s\n", static_cast<long long>(run().inputs),
               run().asked.text().c_str());
}

// libFuzzer keeps the input of a program that aborts.
void abort_slow_input(int) { std::abort(); }

// 0 when it does not fit.
size_t write(const onnx::ModelProto& model, uint8_t* data, size_t max_size) {
  const size_t size = model.ByteSizeLong();
  if (size > max_size || !model.SerializeToArray(data, static_cast<int>(size))) return 0;
  return size;
}

}  // namespace
}  // namespace sgtc::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  std::atexit(sgtc::fuzz::report);
  std::signal(SIGPROF, sgtc::fuzz::abort_slow_input);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const sgtc::fuzz::ModelCompiler compiler;
  sgtc::fuzz::Run& run = sgtc::fuzz::run();
  bool kept = ++run.inputs % sgtc::fuzz::kKeepEvery == 0;
  if (run.inputs % sgtc::fuzz::kAskEvery == 0) {
    run.asked.add(compiler.compile({data, size}));
  } else {
    kept = compiler.plans({data, size}) || kept;
  }
  if (run.inputs % sgtc::fuzz::kReportEvery == 0) sgtc::fuzz::report();
  return kept ? 0 : -1;
}

// Every other change is of bytes: most of them the parser or the import refuses at once, so
// they cost little beside those that are planned.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  onnx::ModelProto model;
  if (seed % 2 != 0 || !model.ParseFromArray(data, static_cast<int>(size))) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  sgtc::fuzz::ModelMutator(seed).mutate(model);
  const size_t written = sgtc::fuzz::write(model, data, max_size);
  return written > 0 ? written : LLVMFuzzerMutate(data, size, max_size);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* first, size_t first_size,
                                            const uint8_t* second, size_t second_size, uint8_t* out,
                                            size_t max_size, unsigned seed) {
  onnx::ModelProto model, other;
  if (!model.ParseFromArray(first, static_cast<int>(first_size)) ||
      !other.ParseFromArray(second, static_cast<int>(second_size))) {
    return 0;
  }
  sgtc::fuzz::ModelMutator(seed).cross(model, other);
  return sgtc::fuzz::write(model, out, max_size);
}
