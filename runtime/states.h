// The persistent tensors of a run: what training starts from, saves and resumes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "communication/groups.h"
#include "mapped_file.h"
#include "plan/format.h"
#include "plan_memory.h"
#include "program.h"
#include "safetensors.h"
#include "thread_pool.h"

namespace sgtc::runtime {

/// The weights of a program: embedded, or in a side file that this maps.
class Weights {
 public:
  /// Dies if the side file beside the executable is missing.
  explicit Weights(const Program& program);
  /// Dies if the weights end before `offset + bytes`.
  const unsigned char* at(int64_t offset, int64_t bytes) const;

 private:
  MappedFile file_;
  std::string name_ = "embedded weights";
  const unsigned char* data_ = nullptr;
  int64_t bytes_ = 0;
};

/// The model tensors of all positions, by name, as one file has them: their data is null.
TensorMap model_layout(const plan::Plan& plan);

/// Checks the tensors of the file `path` as initial values. All parameters have to be among them;
/// other states that are missing, and tensors that the program does not have, are warned of. Dies
/// for shapes and types that do not fit.
void check_initial_tensors(const plan::Plan& plan, const std::string& path,
                           const TensorMap& tensors);

class States {
 public:
  /// Those of one rank, whose memory is given.
  States(const plan::Plan& plan, const PlanMemory& memory, const Coordinates& coordinates);

  /// Gives every state but accumulators its initial value. Random ones are keyed by the state's
  /// name and by its own seed, or else by `seed`; the bits do not depend on the threads.
  void initialize(const Weights& weights, int64_t seed, ThreadPool& threads) const;
  /// Gives the constants their values, which checkpoints do not hold.
  void initialize_constants(const Weights& weights) const;
  /// Takes the initial values that are in `tensors`, which fit (check_initial_tensors).
  void load_initial(const TensorMap& tensors) const;

  /// Parameters, frozen parameters and statistics, by name. Of a state that several positions hold
  /// the first of them has it here, the others do not: every state is saved once.
  TensorMap model_tensors() const;
  /// The optimizer's moments, likewise. Those that replicas share out have no data.
  TensorMap optimizer_tensors() const;
  /// What this replica has of the moments that replicas share out.
  std::vector<TensorPart> optimizer_parts() const;
  /// Takes model and optimizer tensors as they were saved: all of them, by name.
  MaybeFailure restore(const std::string& path, const TensorMap& model,
                       const TensorMap& optimizer) const;

  /// What is zeroed before each step.
  std::vector<MemoryRange> accumulators() const;
  /// What keeps its contents between steps.
  std::vector<MemoryRange> lasting() const;

 private:
  struct Entry {
    const plan::State* state = nullptr;
    bool is_first_holder = true;
    unsigned char* data = nullptr;
    int64_t first = 0;  // element of the tensor
    int64_t elements = 0;
    int64_t bytes = 0;
    int64_t offset() const { return first * (elements == 0 ? 0 : bytes / elements); }
  };
  /// Elements of one state, few enough that threads have equal shares of all pieces.
  struct Piece {
    const Entry* entry = nullptr;
    uint64_t key = 0;
    int64_t first = 0;
    int64_t count = 0;
  };
  /// Appends what is to be generated; copies what the weights hold.
  static void begin(const Entry& entry, const Weights& weights, int64_t seed,
                    std::vector<Piece>& pieces);
  static void fill(const Piece& piece);
  std::vector<MemoryRange> ranges_of(bool accumulates) const;
  TensorMap tensors_of(bool (*wanted)(const std::string& role)) const;

  std::vector<Entry> entries_;
};

}  // namespace sgtc::runtime
