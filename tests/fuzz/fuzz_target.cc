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
// Of the changed inputs at least so many are planned. The parser or the import refuses most changes
// of bytes at once, so these cost little.
constexpr double kPlannedShare = 0.115;

struct Run {
  int64_t inputs = 0;
  int64_t changes = 0;
  int64_t planned = 0;  // since the first change
  Counts asked;

  bool has_planned_enough() const {
    return static_cast<double>(planned) > kPlannedShare * static_cast<double>(changes);
  }
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
  const bool kept = ++run.inputs % sgtc::fuzz::kKeepEvery == 0;
  bool planned = false;
  if (run.inputs % sgtc::fuzz::kAskEvery == 0) {
    const sgtc::fuzz::Reached reached = compiler.compile({data, size});
    planned = reached == sgtc::fuzz::Reached::kPlan;
    run.asked.add(reached);
  } else {
    planned = compiler.plans({data, size});
  }
  if (planned && run.changes > 0) ++run.planned;
  if (run.inputs % sgtc::fuzz::kReportEvery == 0) sgtc::fuzz::report();
  return kept || planned ? 0 : -1;
}

// Most changes are of bytes while enough inputs are planned, few of them otherwise.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  sgtc::fuzz::Run& run = sgtc::fuzz::run();
  ++run.changes;
  const bool of_bytes = (seed % 8 == 0) != run.has_planned_enough();
  onnx::ModelProto model;
  if (of_bytes || !model.ParseFromArray(data, static_cast<int>(size))) {
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
