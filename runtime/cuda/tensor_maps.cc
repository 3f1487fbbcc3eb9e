#include "cuda/tensor_maps.h"

#include "failure.h"

namespace sgtc::runtime::cuda {
namespace {

// CUtensorMapDataType
int type_number(const plan::TensorMap& map) {
  static const std::map<std::string, int> kNumbers = {
      {"u8", 0},  {"u16", 1}, {"u32", 2}, {"i32", 3}, {"u64", 4},
      {"i64", 5}, {"f16", 6}, {"f32", 7}, {"f64", 8}, {"bf16", 9}};
  const auto found = kNumbers.find(map.dtype);
  if (found == kNumbers.end()) die_of_bad_plan("a tensor map has elements of " + map.dtype);
  return found->second;
}

template <typename To>
std::vector<To> converted(const std::vector<int64_t>& values) {
  std::vector<To> result;
  for (const int64_t value : values) result.push_back(static_cast<To>(value));
  return result;
}

EncodedTensorMap encode(const Driver& driver, const plan::TensorMap& map, DeviceAddress argument) {
  const size_t rank = map.sizes.size();
  if (rank < 1 || map.strides.size() != rank - 1 || map.box.size() != rank) {
    die_of_bad_plan("a tensor map has sizes, strides and a box of different ranks");
  }
  const auto sizes = converted<uint64_t>(map.sizes);
  const auto strides = converted<uint64_t>(map.strides);
  const auto box = converted<unsigned>(map.box);
  const std::vector<unsigned> steps(rank, 1);
  void* tensor = reinterpret_cast<void*>(argument + static_cast<DeviceAddress>(map.offset));
  EncodedTensorMap encoded;
  SGTC_CUDA(driver,
            cuTensorMapEncodeTiled(&encoded, type_number(map), static_cast<unsigned>(rank), tensor,
                                   sizes.data(), strides.data(), box.data(), steps.data(),
                                   kNoInterleave, kSwizzle128, kPromote256, kFillWithZeros));
  return encoded;
}

}  // namespace

TensorMaps::TensorMaps(const Driver& driver, const DeviceArena& arena, Stream stream,
                       const std::vector<const std::vector<Launch>*>& launches) {
  std::vector<EncodedTensorMap> encoded;
  const auto add = [&](const Launch& launch, const plan::TensorMap& map) {
    const auto argument = static_cast<size_t>(map.argument);
    if (argument >= launch.arguments.size()) {
      die_of_bad_plan("kernel " + launch.kernel->symbol + " has a tensor map of no argument");
    }
    const DeviceAddress tensor = arena.address(launch.arguments[argument].data);
    if (!numbers_.try_emplace({&map, tensor}, encoded.size()).second) return;
    encoded.push_back(encode(driver, map, tensor));
  };
  for (const std::vector<Launch>* list : launches) {
    for (const Launch& launch : *list) {
      if (!launch.kernel) continue;
      for (const plan::TensorMap& map : launch.kernel->launch.tensor_maps) add(launch, map);
    }
  }
  if (encoded.empty()) return;
  base_ = allocate(driver, bytes(), "the list of tensor maps");
  SGTC_CUDA(driver,
            cuMemcpyHtoDAsync_v2(base_, encoded.data(), static_cast<size_t>(bytes()), stream));
  SGTC_CUDA(driver, cuStreamSynchronize(stream));
}

DeviceAddress TensorMaps::address(const plan::TensorMap& map, DeviceAddress argument) const {
  return base_ + numbers_.find({&map, argument})->second * sizeof(EncodedTensorMap);
}

int64_t TensorMaps::bytes() const {
  return static_cast<int64_t>(numbers_.size() * sizeof(EncodedTensorMap));
}

}  // namespace sgtc::runtime::cuda
