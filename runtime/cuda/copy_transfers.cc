#include "cuda/copy_transfers.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "failure.h"

namespace sgtc::runtime::cuda {
namespace {

constexpr size_t kWordBytes = 4;
// The blocks of memory that ranks share with each other.
constexpr size_t kArena = 0;
constexpr size_t kWords = 1;

bool is_wanted() {
  const char* text = std::getenv("SGTC_COPY_ENGINE");
  return !text || std::strcmp(text, "0") != 0;
}

bool issues_several_as_one(const plan::Plan& plan) {
  for (const plan::Position& position : plan.positions) {
    for (const auto& [name, entries] : position.schedules) {
      for (const plan::Entry& entry : entries) {
        if (entry.group >= 0) return true;
      }
    }
  }
  return false;
}

// The ranks that `rank` transfers to or from.
std::vector<int64_t> partners(const std::vector<RankGroup>& groups, int64_t rank) {
  std::vector<int64_t> found;
  for (const RankGroup& group : groups) {
    for (const RankGroup::Channel& channel : group.channels) {
      const int64_t from = group.ranks[static_cast<size_t>(channel.from)];
      const int64_t to = group.ranks[static_cast<size_t>(channel.to)];
      if (from == rank) found.push_back(to);
      if (to == rank) found.push_back(from);
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

bool has_channels(const std::vector<RankGroup>& groups) {
  return std::any_of(groups.begin(), groups.end(),
                     [](const RankGroup& group) { return !group.channels.empty(); });
}

WordOperation operation(int kind, DeviceAddress address, uint64_t value, unsigned flags = 0) {
  return {kind, address, value, flags, 0, 0};
}

WordOperation write(DeviceAddress address, uint64_t value) {
  return operation(kWriteWord, address, value);
}

}  // namespace

CopyTransfers::CopyTransfers(const Driver& driver, const Nccl& nccl, const Peers& peers,
                             const plan::Plan& plan, const DeviceArena& arena, int gpu,
                             Stream stream, const std::vector<Launch>& launches)
    : driver_(driver), rank_(peers.rank), world_(world_size(plan)), arena_(arena) {
  const std::vector<RankGroup> groups = groups_of(plan);
  if (!has_channels(groups) || issues_several_as_one(plan)) return;
  for (const plan::Communicator& each : plan.communicators) {
    communicators_.emplace(each.name, communicators_.size());
  }
  for (const RankGroup& group : groups) {
    if (group.member_of(rank_) >= 0) groups_.emplace(group.communicator, group);
  }
  int device = 0;
  int can_flush = 0;
  SGTC_CUDA(driver, cuDeviceGet(&device, gpu));
  SGTC_CUDA(driver, cuDeviceGetAttribute(&can_flush, kCanFlushRemoteWrites, device));
  // Without the flush a GPU may see the flag before what was copied.
  wait_flags_ = kUntilEqual | (can_flush ? kFlushRemoteWrites : 0);

  const size_t bytes = communicators_.size() * static_cast<size_t>(world_) * 2 * kWordBytes;
  words_ = allocate_shared(driver, nccl, static_cast<int64_t>(bytes));
  SGTC_CUDA(driver, cuMemsetD8Async(words_, 0, bytes, stream));
  SGTC_CUDA(driver, cuStreamSynchronize(stream));
  const std::vector<int64_t> others = partners(groups, rank_);
  const std::vector<int64_t> wanted = is_wanted() ? others : std::vector<int64_t>();
  memory_.emplace(driver, peers, device, std::vector<DeviceAddress>{arena.base(), words_}, wanted);
  for (const int64_t other : others) {
    if (memory_->connects(rank_, other)) connected_.push_back(other);
  }
  add_transfers(launches, peers.all_gather(list_places(launches)));
}

bool CopyTransfers::find_channel(const Launch& launch, Channel& channel) const {
  if (!memory_ || launch.communications.size() != 1) return false;
  const CommunicationRequest& request = launch.communications[0].request;
  if (request.kind != CommunicationKind::send && request.kind != CommunicationKind::receive) {
    return false;
  }
  const std::string& communicator = *launch.communications[0].communicator;
  const auto group = groups_.find(communicator);
  if (group == groups_.end()) return false;
  const std::vector<int64_t>& ranks = group->second.ranks;
  check_request(request, static_cast<int64_t>(ranks.size()), communicator);
  channel = {communicators_.at(communicator), ranks[static_cast<size_t>(request.peer)]};
  return memory_->connects(rank_, channel.second);
}

// One line per receive: communicator, sender, and offset and bytes of each part.
std::string CopyTransfers::list_places(const std::vector<Launch>& launches) const {
  std::ostringstream text;
  for (const Launch& launch : launches) {
    Channel channel;
    if (!find_channel(launch, channel)) continue;
    const CommunicationRequest& request = launch.communications[0].request;
    if (request.kind != CommunicationKind::receive) continue;
    text << channel.first << ' ' << channel.second;
    for (const Part& part : request.outputs) {
      text << ' ' << arena_.address(part.data) - arena_.base() << ' ' << part.bytes;
    }
    text << '\n';
  }
  return text.str();
}

std::map<CopyTransfers::Channel, CopyTransfers::Places> CopyTransfers::parse_places(
    const std::string& text) const {
  std::map<Channel, Places> places;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Channel channel;
    words >> channel.first >> channel.second;
    std::vector<Place>& parts = places[channel].emplace_back();
    for (Place place; words >> place.offset >> place.bytes;) parts.push_back(place);
  }
  return places;
}

// The receiver's n-th receive of a channel takes the n-th send.
void CopyTransfers::add_transfers(const std::vector<Launch>& launches,
                                  const std::vector<std::string>& places) {
  std::map<int64_t, std::map<Channel, Places>> wanted;
  for (const int64_t other : connected_) {
    wanted[other] = parse_places(places[static_cast<size_t>(other)]);
  }
  std::map<Channel, size_t> sent;
  for (const Launch& launch : launches) {
    Channel channel;
    if (!find_channel(launch, channel)) continue;
    const auto [communicator, other] = channel;
    const CommunicationRequest& request = launch.communications[0].request;
    Transfer& transfer = transfers_[launch.communications[0].entry];
    transfer.sends = request.kind == CommunicationKind::send;
    transfer.own_word = word(words_, communicator, other, !transfer.sends);
    transfer.other_word =
        word(memory_->address(other, kWords), communicator, rank_, transfer.sends);
    if (!transfer.sends) continue;
    const Places& takers = wanted[other][{communicator, rank_}];
    const size_t number = sent[channel]++;
    if (number >= takers.size()) die_of_bad_plan("no receive meets task " + *launch.task);
    transfer.copies = copies_of(request, takers[number], other);
  }
}

// Parts that adjoin at both ends are one copy.
std::vector<CopyTransfers::Copy> CopyTransfers::copies_of(const CommunicationRequest& request,
                                                          const std::vector<Place>& places,
                                                          int64_t receiver) const {
  const DeviceAddress base = memory_->address(receiver, kArena);
  std::vector<Copy> copies;
  if (places.size() != request.inputs.size()) die_of_bad_plan("a transfer's parts differ");
  for (size_t i = 0; i < places.size(); ++i) {
    const Copy copy = {base + places[i].offset, arena_.address(request.inputs[i].data),
                       static_cast<size_t>(request.inputs[i].bytes)};
    if (places[i].bytes != copy.bytes) die_of_bad_plan("a transfer's parts differ");
    const bool adjoins = !copies.empty() && copies.back().to + copies.back().bytes == copy.to &&
                         copies.back().from + copies.back().bytes == copy.from;
    if (adjoins) {
      copies.back().bytes += copy.bytes;
    } else if (copy.bytes > 0) {
      copies.push_back(copy);
    }
  }
  return copies;
}

DeviceAddress CopyTransfers::word(DeviceAddress words, size_t communicator, int64_t rank,
                                  bool flag) const {
  const size_t pair = communicator * static_cast<size_t>(world_) + static_cast<size_t>(rank);
  return words + (2 * pair + (flag ? 1 : 0)) * kWordBytes;
}

bool CopyTransfers::does(const Launch& launch) const {
  return launch.communications.size() == 1 && transfers_.count(launch.communications[0].entry) == 1;
}

bool CopyTransfers::does_all_of(const RankGroup& group) const {
  if (!memory_ || group.collective_bytes >= 0) return false;
  return std::all_of(group.channels.begin(), group.channels.end(),
                     [&](const RankGroup::Channel& channel) {
                       return memory_->connects(group.ranks[static_cast<size_t>(channel.from)],
                                                group.ranks[static_cast<size_t>(channel.to)]);
                     });
}

void CopyTransfers::issue(const Launch& launch, Stream stream) const {
  const Transfer& transfer = transfers_.at(launch.communications[0].entry);
  const WordOperation wait =
      operation(kWaitForWord, transfer.own_word, 1, transfer.sends ? kUntilEqual : wait_flags_);
  const WordOperation take = write(transfer.own_word, 0);
  const WordOperation give = write(transfer.other_word, 1);
  const auto put = [&](std::vector<WordOperation> operations) {
    SGTC_CUDA(driver_, cuStreamBatchMemOp_v2(stream, static_cast<unsigned>(operations.size()),
                                             operations.data(), 0));
  };
  if (!transfer.sends) return put({give, wait, take});
  put({wait, take});
  for (const Copy& copy : transfer.copies) {
    SGTC_CUDA(driver_, cuMemcpyDtoDAsync_v2(copy.to, copy.from, copy.bytes, stream));
  }
  put({give});
}

}  // namespace sgtc::runtime::cuda
