#include "resume.h"

#include <cstdlib>
#include <optional>

#include "checkpoint.h"
#include "failure.h"

namespace sgtc::runtime {
namespace {

void check_model(const Checkpoint& found, const std::string& model_fingerprint) {
  if (found.model_fingerprint == model_fingerprint) return;
  die(found.folder,
      "belongs to another model: fingerprint " + found.model_fingerprint + ", expected " +
          model_fingerprint,
      "resume with a program of the same graph, parameters and optimizer");
}

ResumePoint find_resume_point(const Options& options, const std::string& model_fingerprint) {
  const bool automatic = options.resume == "auto";
  const std::string& root = options.checkpoint;
  std::optional<Checkpoint> found;
  if (!options.resume.empty()) found = find_checkpoint(automatic ? root : options.resume);
  if (!found && !options.resume.empty() && !automatic) {
    die(options.resume, "holds no checkpoint", "give the folder that --checkpoint named");
  }
  ResumePoint point;
  point.newest_step = root.empty() || options.dry_run ? -1 : newest_step(root);
  if (!found) {
    if (point.newest_step < 0) return point;
    die(root,
        format("holds checkpoints up to step %ld of an earlier run",
               static_cast<long>(point.newest_step)),
        "go on with --resume auto, or give an empty folder");
  }
  check_model(*found, model_fingerprint);
  if (!automatic && point.newest_step > found->progress.step) {
    die(root,
        format("also holds step %ld, after the step %ld to resume from",
               static_cast<long>(point.newest_step), static_cast<long>(found->progress.step)),
        "give --checkpoint another folder, or remove the later steps");
  }
  point.folder = found->folder;
  return point;
}

}  // namespace

ResumePoint choose_resume_point(Job& job, const Options& options,
                                const std::string& model_fingerprint) {
  std::string message;
  if (job.rank() == 0) {
    const ResumePoint point = find_resume_point(options, model_fingerprint);
    message = std::to_string(point.newest_step) + " " + point.folder;
  }
  message = job.broadcast(message);
  const size_t space = message.find(' ');
  return {message.substr(space + 1), std::strtoll(message.c_str(), nullptr, 10)};
}

}  // namespace sgtc::runtime
