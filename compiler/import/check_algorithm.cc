#include "import/check_algorithm.h"

namespace sgtc {

void check_algorithm(const TrainingAlgorithm& algorithm, const ImportOptions& options,
                     Diagnostics& diagnostics) {
  if (!algorithm.present()) return;
  const std::string own = "the file has a training algorithm of its own (training_info), ";
  if (!algorithm.loss.empty() && !options.loss.empty() && options.loss != algorithm.loss) {
    diagnostics.error("--loss " + options.loss, own + "which differentiates \"" + algorithm.loss +
                                                    "\"; leave the option out");
  }
  for (const auto& [option, given] :
       {std::pair("--train", &options.train), std::pair("--freeze", &options.freeze)}) {
    if (given->empty()) continue;
    diagnostics.error(std::string(option) + " " + given->front(),
                      own + "which says what is trained; leave the option out");
  }
  const int64_t parts = options.micro_batches * options.replicas;
  if (options.training && parts > 1 && !algorithm.forward_values.empty()) {
    diagnostics.error(std::to_string(parts) + " micro-batches",
                      own + "whose update reads \"" + algorithm.forward_values.front() +
                          "\", which every micro-batch has another value of; expected it to read "
                          "gradients and initializers; use one micro-batch and one replica");
  }
}

}  // namespace sgtc
