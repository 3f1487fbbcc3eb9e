#include "checkpoint.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "durable_file.h"
#include "mapped_file.h"
#include "sha256.h"

namespace sgtc::runtime {
namespace {

using Json = nlohmann::json;

constexpr char kPrefix[] = "step_";
constexpr char kManifest[] = "manifest.json";
constexpr char kState[] = "state.json";
constexpr char kModel[] = "model";
constexpr char kOptimizer[] = "optimizer";
constexpr char kSuffix[] = ".safetensors";
constexpr char kIndexSuffix[] = ".safetensors.index.json";

std::string step_name(int64_t step) { return format("%s%07ld", kPrefix, static_cast<long>(step)); }

// The step of a folder's name, -1 if it is not a checkpoint's.
int64_t step_of(const std::string& name) {
  const size_t length = sizeof kPrefix - 1;
  if (name.compare(0, length, kPrefix) != 0 || name.size() == length) return -1;
  char* end = nullptr;
  const int64_t step = std::strtoll(name.c_str() + length, &end, 10);
  return *end == '\0' ? step : -1;
}

// Steps of a root's checkpoint folders, ascending.
std::vector<int64_t> steps_in(const std::string& root) {
  std::vector<int64_t> steps;
  for (const std::string& name : list_folder(root)) {
    if (step_of(name) >= 0) steps.push_back(step_of(name));
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

Json state_json(const CheckpointWriter& writer, const Progress& progress) {
  return {{"step", progress.step},
          {"skipped", progress.skipped},
          {"seed", progress.seed},
          {"epoch", progress.position.epoch},
          {"row", progress.position.row},
          {"model_fingerprint", writer.model_fingerprint},
          {"program_fingerprint", writer.program_fingerprint}};
}

// Name of the file that one position writes.
std::string file_of(const std::string& kind, const CheckpointPart& part) {
  if (part.positions == 1) return kind + kSuffix;
  return kind +
         format("-%05ld-of-%05ld", static_cast<long>(part.position + 1),
                static_cast<long>(part.positions)) +
         kSuffix;
}

// Writes one file of a checkpoint with `fill` and enters it into `files` of a manifest.
template <class Fill>
MaybeFailure write_file(const std::string& folder, const std::string& name, Json& files,
                        Fill fill) {
  DurableFile file;
  if (MaybeFailure failure = file.create(folder + "/" + name)) return failure;
  if (MaybeFailure failure = fill(file)) return failure;
  if (MaybeFailure failure = file.finish()) return failure;
  files[name] = {{"bytes", file.size()}, {"sha256", file.digest()}};
  return {};
}

MaybeFailure write_text(const std::string& folder, const std::string& name, Json& files,
                        const std::string& text) {
  return write_file(folder, name, files, [&](DurableFile& file) {
    return file.write(text.data(), static_cast<int64_t>(text.size()));
  });
}

std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int64_t bytes_of(const TensorMap& tensors) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += tensor.bytes;
  return bytes;
}

// Adds the tensors of one rank to its report: {"files": as in the manifest, KIND: {"bytes": of the
// tensors, "weight_map": file of each}}.
void report_tensors(const std::string& kind, const CheckpointPart& part, const TensorMap& tensors,
                    Json& report) {
  WeightMap map;
  for (const auto& [tensor, view] : tensors) map[tensor] = file_of(kind, part);
  report[kind] = {{"bytes", bytes_of(tensors)}, {"weight_map", map}};
}

MaybeFailure write_tensors(const std::string& folder, const std::string& kind,
                           const CheckpointPart& part, const TensorMap& tensors, Json& report) {
  report_tensors(kind, part, tensors, report);
  return write_file(folder, file_of(kind, part), report["files"],
                    [&](DurableFile& file) { return write_safetensors(file, tensors); });
}

// A file of moments that the replicas of a position write together: `part.writes` makes it with the
// tensors that are not shared out, each adds its parts, and the first reads all of it for its hash.
class SharedMoments {
 public:
  SharedMoments(const std::string& folder, const CheckpointPart& part)
      : path_(folder + "/" + file_of(kOptimizer, part)),
        part_(part),
        header_(safetensors_header(part.optimizer)) {}

  MaybeFailure create() {
    if (!part_.writes) return {};
    const auto header = static_cast<int64_t>(header_.size());
    if (MaybeFailure failure = file_.create(path_, header + bytes_of(part_.optimizer))) {
      return failure;
    }
    if (MaybeFailure failure = file_.write(header_.data(), header, 0)) return failure;
    for (const auto& [name, tensor] : part_.optimizer) {
      if (!tensor.data) continue;
      if (MaybeFailure failure = write(name, tensor.data, tensor.bytes, 0)) return failure;
    }
    return {};
  }

  MaybeFailure add_parts() {
    if (!file_.is_open() && part_.parts.empty()) return {};
    if (!file_.is_open()) {
      if (MaybeFailure failure = file_.open(path_)) return failure;
    }
    for (const TensorPart& part : part_.parts) {
      if (MaybeFailure failure = write(part.name, part.data, part.bytes, part.offset)) {
        return failure;
      }
    }
    return file_.finish();
  }

  MaybeFailure report(Json& report) const {
    if (!part_.writes) return {};
    MappedFile file;
    if (MaybeFailure failure = file.open(path_)) return failure;
    report_tensors(kOptimizer, part_, part_.optimizer, report);
    report["files"][file_of(kOptimizer, part_)] = {
        {"bytes", file.size()},
        {"sha256", sha256_hex(file.data(), static_cast<size_t>(file.size()))}};
    return {};
  }

 private:
  MaybeFailure write(const std::string& name, const unsigned char* data, int64_t bytes,
                     int64_t offset) {
    offset += static_cast<int64_t>(header_.size());
    for (const auto& [other, tensor] : part_.optimizer) {
      if (other == name) break;
      offset += tensor.bytes;
    }
    return file_.write(data, bytes, offset);
  }

  const std::string path_;
  const CheckpointPart& part_;
  const std::string header_;
  SharedFile file_;
};

MaybeFailure write_part(Job& job, const std::string& folder, const CheckpointPart& part,
                        bool has_parts, Json& report) {
  report = {{"files", Json::object()}};
  if (part.writes) {
    if (MaybeFailure failure = write_tensors(folder, kModel, part, part.model, report)) {
      return failure;
    }
  }
  if (!has_parts) {
    return part.writes ? write_tensors(folder, kOptimizer, part, part.optimizer, report)
                       : MaybeFailure();
  }
  SharedMoments moments(folder, part);
  if (MaybeFailure failure = moments.create()) return failure;
  job.barrier();
  if (MaybeFailure failure = moments.add_parts()) return failure;
  job.barrier();
  return moments.report(report);
}

MaybeFailure write_index(const std::string& folder, const std::string& kind,
                         const std::vector<Json>& reports, Json& files) {
  int64_t bytes = 0;
  WeightMap map;
  for (const Json& report : reports) {
    if (!report.contains(kind)) continue;
    bytes += report[kind]["bytes"].get<int64_t>();
    map.merge(report[kind]["weight_map"].get<WeightMap>());
  }
  return write_text(folder, kind + kIndexSuffix, files, tensor_index(map, bytes));
}

// Adds what comes after the tensors; the manifest last.
MaybeFailure write_rest(const CheckpointWriter& writer, const std::string& folder,
                        const Progress& progress, int64_t positions,
                        const std::vector<Json>& reports) {
  Json manifest = {{"format", "sgtc-checkpoint"}, {"version", 1}, {"files", Json::object()}};
  Json& files = manifest["files"];
  for (const Json& report : reports) files.update(report["files"]);
  for (const char* kind : {kModel, kOptimizer}) {
    if (positions == 1) break;
    if (MaybeFailure failure = write_index(folder, kind, reports, files)) return failure;
  }
  MaybeFailure failure = write_text(folder, kState, files, text_of(state_json(writer, progress)));
  if (failure) return failure;
  Json ignored;
  failure = write_text(folder, kManifest, ignored, text_of(manifest));
  if (failure) return failure;
  return sync_folder(folder);
}

// Gives the folder its name, then removes older checkpoints.
MaybeFailure commit(const CheckpointWriter& writer, const std::string& temporary, int64_t step) {
  const std::string target = writer.root + "/" + step_name(step);
  remove_tree(target);  // only a broken one can be in the way
  if (MaybeFailure failure = rename_durably(temporary, target)) return failure;
  std::vector<int64_t> steps = steps_in(writer.root);
  std::erase_if(steps, [&](int64_t other) { return other > step; });
  for (int64_t i = 0; i < static_cast<int64_t>(steps.size()) - writer.keep; ++i) {
    remove_tree(writer.root + "/" + step_name(steps[static_cast<size_t>(i)]));
  }
  return {};
}

// An empty folder for a new checkpoint. What earlier, interrupted ones left goes away.
MaybeFailure make_temporary(const std::string& root, const std::string& temporary) {
  for (const std::string& left : list_folder(root)) {
    if (left.starts_with("tmp_" + std::string(kPrefix))) remove_tree(root + "/" + left);
  }
  return make_folders(temporary);
}

MaybeFailure read_json(const std::string& path, Json& json) {
  std::string text;
  if (MaybeFailure failure = read_text(path, text)) return failure;
  json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return Failure{path, "is not a JSON object", {}};
  return {};
}

// Checks one file against its entry in the manifest.
MaybeFailure check_file(const std::string& path, const Json& entry) {
  MappedFile file;
  if (MaybeFailure failure = file.open(path)) return failure;
  const bool readable = entry.is_object() && entry.contains("bytes") && entry.contains("sha256") &&
                        entry["bytes"].is_number_integer() && entry["sha256"].is_string();
  if (!readable) return Failure{path, "has no readable entry in the manifest", {}};
  const int64_t bytes = entry["bytes"].get<int64_t>();
  if (file.size() != bytes) {
    return Failure{
        path,
        "has " + std::to_string(file.size()) + " bytes, expected " + std::to_string(bytes),
        {}};
  }
  if (sha256_hex(file.data(), static_cast<size_t>(bytes)) != entry["sha256"].get<std::string>()) {
    return Failure{path, "has other contents than its manifest says", {}};
  }
  return {};
}

bool read_number(const Json& json, const char* key, int64_t& value) {
  if (!json.contains(key) || !json[key].is_number_integer()) return false;
  value = json[key].get<int64_t>();
  return true;
}

MaybeFailure read_state(const std::string& path, Checkpoint& checkpoint) {
  Json json;
  if (MaybeFailure failure = read_json(path, json)) return failure;
  Progress& progress = checkpoint.progress;
  const bool readable = read_number(json, "step", progress.step) &&
                        read_number(json, "skipped", progress.skipped) &&
                        read_number(json, "seed", progress.seed) &&
                        read_number(json, "epoch", progress.position.epoch) &&
                        read_number(json, "row", progress.position.row) &&
                        json.contains("model_fingerprint") && json["model_fingerprint"].is_string();
  if (!readable) return Failure{path, "lacks step, seed, data position or fingerprint", {}};
  checkpoint.model_fingerprint = json["model_fingerprint"].get<std::string>();
  return {};
}

// The index if there is one, else the one file.
std::string tensor_path(const std::string& folder, const std::string& kind) {
  struct stat status;
  const std::string index = folder + "/" + kind + kIndexSuffix;
  return stat(index.c_str(), &status) == 0 ? index : folder + "/" + kind + kSuffix;
}

}  // namespace

MaybeFailure CheckpointWriter::write(Job& job, const Progress& progress,
                                     const CheckpointPart& part) const {
  const std::string temporary = root + "/tmp_" + step_name(progress.step);
  if (job.rank() == 0) {
    if (MaybeFailure failure = make_temporary(root, temporary)) return failure;
  }
  job.barrier();
  Json report;
  if (MaybeFailure failure = write_part(job, temporary, part, has_parts, report)) return failure;
  const std::string text = report.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::vector<std::string> texts = job.all_gather(text);
  if (job.rank() != 0) return {};
  std::vector<Json> reports;
  for (const std::string& each : texts) reports.push_back(Json::parse(each, nullptr, false));
  MaybeFailure failure = write_rest(*this, temporary, progress, part.positions, reports);
  return failure ? failure : commit(*this, temporary, progress.step);
}

MaybeFailure open_checkpoint(const std::string& folder, Checkpoint& checkpoint) {
  const std::string path = folder + "/" + kManifest;
  Json manifest;
  if (MaybeFailure failure = read_json(path, manifest)) return failure;
  if (!manifest.contains("files") || !manifest["files"].is_object()) {
    return Failure{path, "does not list files", {}};
  }
  const Json& files = manifest["files"];
  for (const std::string kind : {kModel, kOptimizer}) {
    if (files.contains(kind + kSuffix) || files.contains(kind + kIndexSuffix)) continue;
    return Failure{path, "does not list " + kind + kSuffix, {}};
  }
  if (!files.contains(kState)) return Failure{path, std::string("does not list ") + kState, {}};
  for (const auto& [name, entry] : files.items()) {
    if (MaybeFailure failure = check_file(folder + "/" + name, entry)) return failure;
  }
  return open_checked_checkpoint(folder, checkpoint);
}

MaybeFailure open_checked_checkpoint(const std::string& folder, Checkpoint& checkpoint) {
  checkpoint.folder = folder;
  if (MaybeFailure failure = read_state(folder + "/" + kState, checkpoint)) return failure;
  if (MaybeFailure failure = checkpoint.model.open(tensor_path(folder, kModel))) return failure;
  return checkpoint.optimizer.open(tensor_path(folder, kOptimizer));
}

std::optional<Checkpoint> find_checkpoint(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  const std::string root = path.substr(0, end == path.npos ? 0 : end + 1);
  const std::string last = root.substr(root.find_last_of('/') + 1);
  std::optional<Checkpoint> checkpoint(std::in_place);
  if (step_of(last) >= 0) {
    require(open_checkpoint(root, *checkpoint));
    return checkpoint;
  }
  std::vector<int64_t> steps = steps_in(root);
  std::string broken;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const std::string folder = root + "/" + step_name(*step);
    MaybeFailure failure = open_checkpoint(folder, *checkpoint);
    if (!failure) return checkpoint;
    warn(folder, "the checkpoint is broken: " + failure->object + " " + failure->problem);
    broken += (broken.empty() ? "" : ", ") + step_name(*step);
  }
  if (!broken.empty()) {
    die(root, "all checkpoints are broken: " + broken,
        "remove them to start afresh, or give another folder");
  }
  return std::nullopt;
}

int64_t newest_step(const std::string& root) {
  const std::vector<int64_t> steps = steps_in(root);
  return steps.empty() ? -1 : steps.back();
}

}  // namespace sgtc::runtime
