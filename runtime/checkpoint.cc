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
constexpr char kModel[] = "model.safetensors";
constexpr char kOptimizer[] = "optimizer.safetensors";

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

// Writes one file of a checkpoint with `fill` and enters it into the manifest.
template <class Fill>
MaybeFailure write_file(const std::string& folder, const char* name, Json& manifest, Fill fill) {
  DurableFile file;
  if (MaybeFailure failure = file.create(folder + "/" + name)) return failure;
  if (MaybeFailure failure = fill(file)) return failure;
  if (MaybeFailure failure = file.finish()) return failure;
  manifest["files"][name] = {{"bytes", file.size()}, {"sha256", file.digest()}};
  return {};
}

MaybeFailure write_json(DurableFile& file, const Json& json) {
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  return file.write(text.data(), static_cast<int64_t>(text.size()));
}

MaybeFailure write_files(const CheckpointWriter& writer, const std::string& folder,
                         const Progress& progress, const TensorMap& model,
                         const TensorMap& optimizer) {
  Json manifest = {{"format", "sgtc-checkpoint"}, {"version", 1}, {"files", Json::object()}};
  MaybeFailure failure = write_file(
      folder, kModel, manifest, [&](DurableFile& file) { return write_safetensors(file, model); });
  if (failure) return failure;
  failure = write_file(folder, kOptimizer, manifest,
                       [&](DurableFile& file) { return write_safetensors(file, optimizer); });
  if (failure) return failure;
  failure = write_file(folder, kState, manifest, [&](DurableFile& file) {
    return write_json(file, state_json(writer, progress));
  });
  if (failure) return failure;
  Json ignored;
  failure = write_file(folder, kManifest, ignored,
                       [&](DurableFile& file) { return write_json(file, manifest); });
  if (failure) return failure;
  return sync_folder(folder);
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

}  // namespace

MaybeFailure CheckpointWriter::write(const Progress& progress, const TensorMap& model,
                                     const TensorMap& optimizer) const {
  const std::string name = step_name(progress.step);
  const std::string target = root + "/" + name;
  const std::string temporary = root + "/tmp_" + name;
  for (const std::string& left : list_folder(root)) {
    if (left.starts_with("tmp_" + std::string(kPrefix))) remove_tree(root + "/" + left);
  }
  if (MaybeFailure failure = make_folders(temporary)) return failure;
  if (MaybeFailure failure = write_files(*this, temporary, progress, model, optimizer)) {
    return failure;
  }
  remove_tree(target);  // only a broken one can be in the way
  if (MaybeFailure failure = rename_durably(temporary, target)) return failure;
  std::vector<int64_t> steps = steps_in(root);
  std::erase_if(steps, [&](int64_t step) { return step > progress.step; });
  for (int64_t i = 0; i < static_cast<int64_t>(steps.size()) - keep; ++i) {
    remove_tree(root + "/" + step_name(steps[static_cast<size_t>(i)]));
  }
  return {};
}

MaybeFailure open_checkpoint(const std::string& folder, Checkpoint& checkpoint) {
  Json manifest;
  if (MaybeFailure failure = read_json(folder + "/" + kManifest, manifest)) return failure;
  for (const char* name : {kModel, kOptimizer, kState}) {
    if (!manifest.contains("files") || !manifest["files"].is_object() ||
        !manifest["files"].contains(name)) {
      return Failure{folder + "/" + kManifest, std::string("does not list ") + name, {}};
    }
    MaybeFailure failure = check_file(folder + "/" + name, manifest["files"][name]);
    if (failure) return failure;
  }
  checkpoint.folder = folder;
  if (MaybeFailure failure = read_state(folder + "/" + kState, checkpoint)) return failure;
  if (MaybeFailure failure = checkpoint.model.open(folder + "/" + kModel)) return failure;
  return checkpoint.optimizer.open(folder + "/" + kOptimizer);
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
