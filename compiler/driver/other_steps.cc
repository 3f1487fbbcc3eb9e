#include "driver/other_steps.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace sgtc {
namespace {

constexpr int64_t kRowChunks = 4;

// The symbolic dimension that counts the rows of the inputs, of those that are bound.
std::string rows_dim(const OnnxModel& model, const Dims& dims) {
  const onnx::GraphProto& graph = model.proto().graph();
  std::set<std::string> initializers;
  for (const onnx::TensorProto& tensor : graph.initializer()) initializers.insert(tensor.name());
  std::set<std::string> names;
  for (const onnx::ValueInfoProto& input : graph.input()) {
    const onnx::TensorShapeProto& shape = input.type().tensor_type().shape();
    if (initializers.count(input.name()) != 0 || shape.dim_size() == 0) continue;
    names.insert(shape.dim(0).dim_param());
  }
  const auto is_bound = [&](const auto& dim) { return dim.first == *names.begin(); };
  const bool is_one = names.size() == 1 && std::any_of(dims.begin(), dims.end(), is_bound);
  return is_one ? *names.begin() : "";
}

}  // namespace

std::vector<OtherStep> other_steps(const Options& options, const OnnxModel& model, const Dims& dims,
                                   const Mesh& mesh, const StepFitter& fit) {
  std::vector<OtherStep> steps;
  const auto add = [&](std::string option, int64_t ranks, Options other, Dims sizes, Mesh shape) {
    other.print_after.clear();
    other.dump_dir.clear();
    steps.push_back({std::move(option), ranks,
                     [fit, other = std::move(other), sizes = std::move(sizes), shape] {
                       return fit(other, sizes, shape);
                     }});
  };
  if (options.recompute == "none") {
    Options other = options;
    other.recompute = "auto";
    add("--recompute auto", 1, std::move(other), dims, mesh);
  }
  if (options.row_chunks == 0 && options.target != "cpu") {
    Options other = options;
    other.row_chunks = kRowChunks;
    add("--row-chunks " + std::to_string(kRowChunks), 1, std::move(other), dims, mesh);
  }
  if (options.schedule == "gpipe" && mesh.pp > 1) {
    Options other = options;
    other.schedule = "1f1b";
    add("--schedule 1f1b", 1, std::move(other), dims, mesh);
  }
  if (options.shard == "none" && mesh.dp > 1 && !model.algorithm().present()) {
    Options other = options;
    other.shard = "optimizer";
    add("--shard optimizer", 1, std::move(other), dims, mesh);
  }
  for (const int64_t times : {2, 4, 8}) {
    Mesh more = mesh;
    more.pp *= times;
    add("--mesh " + to_string(more), times, options, dims, more);
  }
  const std::string rows = rows_dim(model, dims);
  for (const int64_t times : {2, 4, 8}) {
    Options other = options;
    other.micro_batches *= times;
    Dims fewer = dims;
    const auto dim =
        std::find_if(fewer.begin(), fewer.end(), [&](const auto& d) { return d.first == rows; });
    if (rows.empty() || dim->second % times != 0) break;
    dim->second /= times;
    add("--dim " + rows + "=" + std::to_string(dim->second) + " --micro-batches " +
            std::to_string(other.micro_batches),
        1, std::move(other), fewer, mesh);
  }
  return steps;
}

}  // namespace sgtc
