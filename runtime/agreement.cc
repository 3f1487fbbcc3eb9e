#include "agreement.h"

#include <string>

#include "failure.h"

namespace sgtc::runtime {
namespace {

std::string given(const std::string& path) { return path.empty() ? "not given" : "given"; }

std::string names_of(const std::vector<NamedFile>& files) {
  std::string names;
  for (const NamedFile& file : files) {
    for (const std::string& name : file.names) names += (names.empty() ? "" : ",") + name;
  }
  return names.empty() ? "not given" : names;
}

std::string number(int64_t value) { return std::to_string(value); }

std::string flag(bool value) { return value ? "given" : "not given"; }

std::string sizes_of(const std::map<std::string, int64_t>& dims) {
  std::string text;
  for (const auto& [name, size] : dims)
    text += (text.empty() ? "" : ",") + name + "=" + number(size);
  return text.empty() ? "not given" : text;
}

}  // namespace

Agreement agreement_of(const Options& options) {
  return {{"--data", names_of(options.data)},
          {"--tokens", names_of(options.tokens)},
          {"--shuffle", flag(options.shuffle)},
          {"--last-batch", options.last_batch},
          {"--steps", number(options.steps)},
          {"--lr", format("%.17g", options.learning_rate)},
          {"--warmup", number(options.warmup)},
          {"--decay", options.decay},
          {"--seed", options.seed_given ? number(options.seed) : "not given"},
          {"--on-nan", options.on_nan},
          {"--init", given(options.init)},
          {"--eval", names_of(options.eval)},
          {"--eval-every", number(options.eval_every)},
          {"--predict", names_of(options.predict)},
          {"--checkpoint", given(options.checkpoint)},
          {"--save-every", number(options.save_every)},
          {"--resume", options.resume == "auto" ? "auto" : given(options.resume)},
          {"--save", given(options.save)},
          {"--trace", given(options.trace)},
          {"--dim", sizes_of(options.dims)},
          {"--dry-run", flag(options.dry_run)},
          {"--calibrate", given(options.calibrate)}};
}

}  // namespace sgtc::runtime
