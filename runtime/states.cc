#include "states.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "element_type.h"
#include "failure.h"
#include "random.h"

namespace sgtc::runtime {
namespace {

bool is_model_role(const std::string& role) {
  return role == "parameter" || role == "frozen" || role == "statistic";
}

bool is_optimizer_role(const std::string& role) { return role == "moment"; }

std::string folder_of_executable() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return parent_folder(std::string(path, static_cast<size_t>(length > 0 ? length : 0)));
}

using Generator = void (*)(uint64_t key, double a, double b, int64_t count, double* values,
                           int64_t first_element);

void fill_constant(uint64_t, double a, double, int64_t count, double* values, int64_t) {
  std::fill(values, values + count, a);
}

// How a state's values are generated; null: it names no such way.
Generator generator_of(const plan::State& state) {
  if (state.init == "normal") return fill_normal;
  if (state.init == "uniform") return fill_uniform;
  return state.init == "fill" || state.init == "zero" ? fill_constant : nullptr;
}

int64_t first_holder(const plan::Plan& plan, const std::string& name) {
  int64_t first = static_cast<int64_t>(plan.positions.size());
  for (const plan::State& state : plan.states) {
    if (state.name == name) first = std::min(first, state.position);
  }
  return first;
}

bool fits(const TensorView& tensor, const plan::State& state) {
  return tensor.shape == state.shape && lossless_conversion(tensor.dtype, state.dtype) != nullptr;
}

std::string mismatch(const TensorView& tensor, const plan::State& state) {
  return "tensor " + state.name + ": expected " + state.dtype + " " + shape_text(state.shape) +
         ", found " + tensor.dtype + " " + shape_text(tensor.shape);
}

std::string join(const std::vector<std::string>& names) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kShown) text += format(" and %zu more", names.size() - kShown);
  return text;
}

}  // namespace

Weights::Weights(const Program& program) : data_(program.weights), bytes_(program.weights_bytes) {
  if (program.side_file.empty()) return;
  name_ = folder_of_executable() + "/" + std::string(program.side_file);
  if (MaybeFailure failure = file_.open(name_)) {
    failure->remedy = "keep the program's weights file beside it";
    die(*failure);
  }
  data_ = file_.data();
  bytes_ = file_.size();
}

const unsigned char* Weights::at(int64_t offset, int64_t bytes) const {
  if (offset < 0 || bytes < 0 || offset > bytes_ - bytes) {
    die(name_,
        format("ends after %ld bytes, expected at least %ld", static_cast<long>(bytes_),
               static_cast<long>(offset + bytes)),
        "copy it again or compile the program again");
  }
  return data_ + offset;
}

TensorMap model_layout(const plan::Plan& plan) {
  TensorMap tensors;
  for (const plan::State& state : plan.states) {
    if (!is_model_role(state.role)) continue;
    const int64_t bytes = element_count(state.shape) * size_of_element(state.dtype);
    tensors[state.name] = {state.dtype, state.shape, nullptr, bytes};
  }
  return tensors;
}

void check_initial_tensors(const plan::Plan& plan, const std::string& path,
                           const TensorMap& tensors) {
  TensorMap extra = tensors;
  std::vector<std::string> missing;
  for (const plan::State& state : plan.states) {
    if (!is_model_role(state.role) || first_holder(plan, state.name) != state.position) continue;
    const auto found = tensors.find(state.name);
    extra.erase(state.name);
    if (found == tensors.end() && state.role == "parameter") {
      missing.push_back(state.name);
    } else if (found == tensors.end()) {
      warn(path, "has no tensor " + state.name + "; it keeps the model's value");
    } else if (!fits(found->second, state)) {
      die(path, mismatch(found->second, state));
    }
  }
  if (!missing.empty()) {
    die(path, "has no tensor for the parameters " + join(missing), "tensors match by name");
  }
  std::vector<std::string> names;
  for (const auto& [name, tensor] : extra) names.push_back(name);
  if (!names.empty()) warn(path, "the program has no use for the tensors " + join(names));
}

States::States(const plan::Plan& plan, const PlanMemory& memory, const Coordinates& coordinates) {
  for (const plan::State& state : plan.states) {
    if (state.position != coordinates.pp) continue;
    const plan::Buffer& buffer = memory.buffer(state.buffer);
    Entry entry;
    entry.state = &state;
    entry.is_first_holder = first_holder(plan, state.name) == coordinates.pp;
    entry.data = memory.address(buffer);
    if (state.shards < 1 || (state.shards > 1 && !is_optimizer_role(state.role))) {
      die_of_bad_plan("state " + state.name + " has shards");
    }
    entry.elements = element_count(state.shape) / state.shards;
    if (state.shards > 1) entry.first = coordinates.dp * entry.elements;
    entry.bytes = entry.elements * size_of_element(state.dtype);
    if (entry.elements < 0 || entry.bytes > buffer.bytes || size_of_element(state.dtype) == 0) {
      die_of_bad_plan("state " + state.name + " does not fit into its buffer");
    }
    entries_.push_back(entry);
  }
}

void States::initialize(const Weights& weights, int64_t seed, ThreadPool& threads) const {
  std::vector<Piece> pieces;
  for (const Entry& entry : entries_) {
    if (entry.state->role != "accumulator") begin(entry, weights, seed, pieces);
  }
  // Neighbours cost the same, so each thread takes every n-th piece.
  int64_t parts = threads.size();
  void* const arguments[] = {&pieces, &parts};
  const auto fill_parts = [](void* const* given, int64_t begin, int64_t end, int64_t) {
    const auto& all = *static_cast<const std::vector<Piece>*>(given[0]);
    const auto stride = static_cast<size_t>(*static_cast<const int64_t*>(given[1]));
    for (int64_t part = begin; part < end; ++part) {
      for (size_t i = static_cast<size_t>(part); i < all.size(); i += stride) fill(all[i]);
    }
  };
  threads.run(fill_parts, arguments, parts, 0);
}

void States::initialize_constants(const Weights& weights) const {
  std::vector<Piece> pieces;
  for (const Entry& entry : entries_) {
    if (entry.state->role == "constant") begin(entry, weights, 0, pieces);
  }
  for (const Piece& piece : pieces) fill(piece);
}

void States::begin(const Entry& entry, const Weights& weights, int64_t seed,
                   std::vector<Piece>& pieces) {
  constexpr int64_t kPiece = 1 << 16;
  const plan::State& state = *entry.state;
  if (state.init == "data") {
    const unsigned char* source = weights.at(state.data_offset + entry.offset(), entry.bytes);
    if (entry.bytes > 0) std::memcpy(entry.data, source, static_cast<size_t>(entry.bytes));
    return;
  }
  if (!generator_of(state)) {
    die_of_bad_plan("state " + state.name + " has the initial value " + state.init);
  }
  const uint64_t key = random_key(state.seed != 0 ? state.seed : seed, state.name);
  for (int64_t first = 0; first < entry.elements; first += kPiece) {
    pieces.push_back({&entry, key, first, std::min(kPiece, entry.elements - first)});
  }
}

// Writes generated numbers, rounded to the state's type.
void States::fill(const Piece& piece) {
  const plan::State& state = *piece.entry->state;
  const int64_t size = size_of_element(state.dtype);
  unsigned char* data = piece.entry->data + piece.first * size;
  if (state.init == "zero") {
    std::memset(data, 0, static_cast<size_t>(piece.count * size));
    return;
  }
  constexpr int64_t kBlock = 1024;
  double values[kBlock];
  const Generator generator = generator_of(state);
  for (int64_t first = 0; first < piece.count; first += kBlock) {
    const int64_t length = std::min(kBlock, piece.count - first);
    generator(piece.key, state.a, state.b, length, values,
              piece.entry->first + piece.first + first);
    for (int64_t i = 0; i < length; ++i) {
      write_element(state.dtype, values[i], data + (first + i) * size);
    }
  }
}

void States::load_initial(const TensorMap& tensors) const {
  for (const Entry& entry : entries_) {
    const auto found = tensors.find(entry.state->name);
    if (!is_model_role(entry.state->role) || found == tensors.end()) continue;
    const TensorView& tensor = found->second;
    lossless_conversion(tensor.dtype, entry.state->dtype)(tensor.data, entry.elements, entry.data);
  }
}

TensorMap States::tensors_of(bool (*wanted)(const std::string& role)) const {
  TensorMap tensors;
  for (const Entry& entry : entries_) {
    if (!entry.is_first_holder || !wanted(entry.state->role)) continue;
    const bool whole = entry.state->shards == 1;
    tensors[entry.state->name] = {entry.state->dtype, entry.state->shape,
                                  whole ? entry.data : nullptr, entry.bytes * entry.state->shards};
  }
  return tensors;
}

TensorMap States::model_tensors() const { return tensors_of(is_model_role); }

TensorMap States::optimizer_tensors() const { return tensors_of(is_optimizer_role); }

std::vector<TensorPart> States::optimizer_parts() const {
  std::vector<TensorPart> parts;
  for (const Entry& entry : entries_) {
    if (!entry.is_first_holder || entry.state->shards == 1) continue;
    parts.push_back({entry.state->name, entry.data, entry.offset(), entry.bytes});
  }
  return parts;
}

MaybeFailure States::restore(const std::string& path, const TensorMap& model,
                             const TensorMap& optimizer) const {
  for (const Entry& entry : entries_) {
    const plan::State& state = *entry.state;
    const bool in_model = is_model_role(state.role);
    if (!in_model && !is_optimizer_role(state.role)) continue;
    const TensorMap& tensors = in_model ? model : optimizer;
    const auto found = tensors.find(state.name);
    if (found == tensors.end()) return Failure{path, "has no tensor " + state.name, {}};
    const TensorView& tensor = found->second;
    if (tensor.dtype != state.dtype || tensor.shape != state.shape) {
      return Failure{path, mismatch(tensor, state), {}};
    }
    std::memcpy(entry.data, tensor.data + entry.offset(), static_cast<size_t>(entry.bytes));
  }
  return {};
}

std::vector<MemoryRange> States::ranges_of(bool accumulates) const {
  std::vector<MemoryRange> ranges;
  for (const Entry& entry : entries_) {
    if ((entry.state->role == "accumulator") != accumulates) continue;
    ranges.push_back({entry.data, entry.bytes});
  }
  return ranges;
}

std::vector<MemoryRange> States::accumulators() const { return ranges_of(true); }

std::vector<MemoryRange> States::lasting() const { return ranges_of(false); }

}  // namespace sgtc::runtime
