#include "driver/choose_last_batch.h"

namespace sgtc {

LastBatch last_batch(const Options& options) {
  return options.last_batch == "pad" ? LastBatch::kPad : LastBatch::kDrop;
}

void check_last_batch(const Options& options, const OnnxModel& model, Diagnostics& diagnostics) {
  if (last_batch(options) == LastBatch::kDrop) return;
  if (!model.given_gradients().empty()) {
    diagnostics.error("--last-batch=pad",
                      "the file has gradients of its own, in which all rows count; use the graph "
                      "without gradients (eval_model.onnx) or --last-batch=drop");
  }
  if (!model.algorithm().forward_values.empty()) {
    diagnostics.error("--last-batch=pad", "the file's training algorithm reads \"" +
                                              model.algorithm().forward_values.front() +
                                              "\", in which all rows count; use "
                                              "--last-batch=drop");
  }
}

}  // namespace sgtc
