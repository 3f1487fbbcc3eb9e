// What is fuzzed: everything from the bytes of a file to the plan.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "driver/options.h"
#include "onnx/onnx_pb.h"

namespace sgtc::fuzz {

/// How far the compiler came with a file.
enum class Reached { kRefused, kAutodiff, kPlan };

/// How often it came how far.
struct Counts {
  int64_t refused = 0, autodiff = 0, plan = 0;

  void add(Reached reached);
  int64_t total() const { return refused + autodiff + plan; }
  /// The part of the inputs that were imported, so that their gradients were asked for.
  double share_of_autodiff() const;
  /// "100 inputs: 60 refused by the import, 40 (40.0%) reached autodiff, 30 (30.0%) a plan".
  std::string text() const;
};

/// Compiles files as sgtc does, up to the plan: models, and checkpoints of ONNX Runtime with a
/// small model for which they can be. What computes for more than ten seconds of a processor gets
/// the signal SIGPROF; time in which the program is stopped does not count. The folder that they
/// lie in is removed at the end of the program; after a crash it still holds the last one.
class ModelCompiler {
 public:
  ModelCompiler();
  ~ModelCompiler();
  ModelCompiler(const ModelCompiler&) = delete;
  ModelCompiler& operator=(const ModelCompiler&) = delete;

  /// Refusals of the model are results; anything else is a fault of sgtc and is thrown. What is
  /// refused is compiled again to see by which stage.
  Reached compile(std::span<const uint8_t> file) const;
  /// Compiles once; whether there is a plan.
  bool plans(std::span<const uint8_t> file) const;

  /// The file that is being compiled.
  std::string path() const { return folder_ + "/model.onnx"; }

 private:
  std::string trained_model() const { return folder_ + "/trained.onnx"; }
  Options write(std::span<const uint8_t> file) const;
  Options options_for_checkpoint() const;

  std::string folder_;
};

/// The options for a file: one of a few meshes, targets and precisions, chosen by its
/// `model_version`, so that mutations change the options too; symbolic dimensions get sizes.
Options options_for(const onnx::ModelProto& model);

/// How many choices of options there are.
int64_t option_choices();

}  // namespace sgtc::fuzz
