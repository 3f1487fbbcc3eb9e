#include "cuda/peer_memory.h"

#include <cstdint>
#include <sstream>

#include "communication/descriptors.h"

namespace sgtc::runtime::cuda {
namespace {

// A block of device memory as others may map it.
struct Exported {
  Socket descriptor;
  size_t bytes = 0;
};

bool export_block(const Driver& driver, DeviceAddress address, Exported& block) {
  const Functions& cuda = driver.functions;
  DeviceAddress base = 0;
  MemoryHandle handle = 0;
  int descriptor = -1;
  if (cuda.cuMemGetAddressRange_v2(&base, &block.bytes, address) != kSuccess) return false;
  if (cuda.cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(address)) != kSuccess) {
    return false;
  }
  const int result = cuda.cuMemExportToShareableHandle(&descriptor, handle, kFileDescriptor, 0);
  cuda.cuMemRelease(handle);
  block.descriptor = Socket(result == kSuccess ? descriptor : -1);
  return result == kSuccess && base == address;
}

std::vector<size_t> parse_sizes(const std::string& text) {
  std::istringstream words(text);
  std::vector<size_t> sizes;
  for (size_t size; words >> size;) sizes.push_back(size);
  return sizes;
}

}  // namespace

PeerMemory::PeerMemory(const Driver& driver, const Peers& peers, int gpu,
                       const std::vector<DeviceAddress>& own, const std::vector<int64_t>& wanted)
    : driver_(driver), gpu_(gpu) {
  std::vector<Exported> blocks(own.size());
  std::vector<int> descriptors;
  std::string sizes;
  for (size_t i = 0; i < own.size(); ++i) {
    if (!export_block(driver, own[i], blocks[i])) break;
    descriptors.push_back(blocks[i].descriptor.descriptor());
    sizes += std::to_string(blocks[i].bytes) + " ";
  }
  const bool can_share = descriptors.size() == own.size();
  const std::vector<std::string> all_sizes = peers.all_gather(can_share ? sizes : "");
  const Descriptors received =
      exchange_descriptors(peers, can_share ? wanted : std::vector<int64_t>(), descriptors);

  std::string reached(all_sizes.size(), '0');
  for (const auto& [rank, list] : received) {
    const std::vector<size_t> bytes = parse_sizes(all_sizes[static_cast<size_t>(rank)]);
    std::vector<DeviceAddress> addresses(list.size());
    bool all = can_share && bytes.size() == list.size();
    for (size_t i = 0; i < list.size() && all; ++i) all = map(list[i], bytes[i], addresses[i]);
    if (!all) continue;
    mapped_[rank] = std::move(addresses);
    reached[static_cast<size_t>(rank)] = '1';
  }
  reached_ = peers.all_gather(reached);
}

bool PeerMemory::map(const Socket& descriptor, size_t bytes, DeviceAddress& address) const {
  const Functions& cuda = driver_.functions;
  MemoryHandle handle = 0;
  // The driver takes the number of a descriptor for an address.
  const auto number = reinterpret_cast<void*>(static_cast<intptr_t>(descriptor.descriptor()));
  if (cuda.cuMemImportFromShareableHandle(&handle, number, kFileDescriptor) != kSuccess) {
    return false;
  }
  const MemoryAccess access = {{kDeviceLocation, gpu_}, kReadAndWrite};
  bool is_mapped = cuda.cuMemAddressReserve(&address, bytes, 0, 0, 0) == kSuccess;
  is_mapped = is_mapped && cuda.cuMemMap(address, bytes, 0, handle, 0) == kSuccess;
  is_mapped = is_mapped && cuda.cuMemSetAccess(address, bytes, &access, 1) == kSuccess;
  cuda.cuMemRelease(handle);  // what is mapped stays
  return is_mapped;
}

bool PeerMemory::connects(int64_t rank, int64_t other) const {
  const auto a = static_cast<size_t>(rank);
  const auto b = static_cast<size_t>(other);
  return reached_[a][b] == '1' && reached_[b][a] == '1';
}

}  // namespace sgtc::runtime::cuda
