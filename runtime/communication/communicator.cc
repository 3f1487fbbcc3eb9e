#include "communicator.h"

#include "element_type.h"
#include "plan_memory.h"

namespace sgtc::runtime {
namespace {

bool is_transfer(CommunicationKind kind) {
  return kind == CommunicationKind::send || kind == CommunicationKind::receive;
}

bool has_peer(CommunicationKind kind) {
  return is_transfer(kind) || kind == CommunicationKind::broadcast;
}

bool reduces(CommunicationKind kind) {
  return kind == CommunicationKind::all_reduce || kind == CommunicationKind::reduce_scatter;
}

// How many times an input is as large as its output, and the other way round.
bool sizes_fit(const CommunicationRequest& request, int64_t size) {
  if (is_transfer(request.kind)) return true;
  if (request.inputs.size() != request.outputs.size()) return false;
  const int64_t input_scale = request.kind == CommunicationKind::all_gather ? size : 1;
  const int64_t output_scale = request.kind == CommunicationKind::reduce_scatter ? size : 1;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    if (request.inputs[i].bytes * input_scale != request.outputs[i].bytes * output_scale) {
      return false;
    }
  }
  return true;
}

bool has_whole_elements(const CommunicationRequest& request) {
  const int64_t element = size_of_element(request.dtype);
  if (element == 0) return false;
  for (const std::vector<Part>& parts : {request.inputs, request.outputs}) {
    for (const Part& part : parts) {
      if (part.bytes < 0 || part.bytes % element != 0) return false;
    }
  }
  return true;
}

}  // namespace

void check_request(const CommunicationRequest& request, int64_t size, const std::string& name) {
  const std::string where = "communicator " + name;
  if (has_peer(request.kind) && (request.peer < 0 || request.peer >= size)) {
    die_of_bad_plan(where + " of " + std::to_string(size) + " members has no member " +
                    std::to_string(request.peer));
  }
  if (!has_whole_elements(request)) {
    die_of_bad_plan(where + ": parts are no whole elements of " + request.dtype);
  }
  if (!sizes_fit(request, size)) die_of_bad_plan(where + ": inputs and outputs differ in size");
  if (reduces(request.kind) && !find_reducer(request.dtype, request.reduction)) {
    die_of_bad_plan(where + ": elements of type " + request.dtype + " cannot be reduced");
  }
}

}  // namespace sgtc::runtime
