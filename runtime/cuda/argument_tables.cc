#include "cuda/argument_tables.h"

namespace sgtc::runtime::cuda {

ArgumentTables::ArgumentTables(const Driver& driver, const DeviceArena& arena, Stream stream,
                               const std::vector<const std::vector<Launch>*>& launches) {
  std::vector<uint64_t> words;
  for (const std::vector<Launch>* list : launches) {
    for (const Launch& launch : *list) {
      if (!launch.kernel || !launch.kernel->launch.indirect) continue;
      std::vector<uint64_t> arguments;
      for (const MemoryRange& argument : launch.arguments) {
        arguments.push_back(arena.address(argument.data));
      }
      if (!places_.try_emplace(arguments, words.size() * sizeof(uint64_t)).second) continue;
      words.insert(words.end(), arguments.begin(), arguments.end());
    }
  }
  if (words.empty()) return;
  const size_t bytes = words.size() * sizeof(uint64_t);
  base_ = allocate(driver, static_cast<int64_t>(bytes), "the list of arguments");
  SGTC_CUDA(driver, cuMemcpyHtoDAsync_v2(base_, words.data(), bytes, stream));
  SGTC_CUDA(driver, cuStreamSynchronize(stream));
}

DeviceAddress ArgumentTables::address(const std::vector<uint64_t>& arguments) const {
  return base_ + places_.find(arguments)->second;
}

}  // namespace sgtc::runtime::cuda
