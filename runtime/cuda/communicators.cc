#include "cuda/communicators.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "element_type.h"
#include "failure.h"
#include "plan_memory.h"

namespace sgtc::runtime::cuda {
namespace {

int nccl_type(const std::string& dtype) {
  constexpr std::pair<std::string_view, int> kTypes[] = {
      {"i8", kNcclInt8},     {"u8", kNcclUInt8},     {"i32", kNcclInt32},   {"u32", kNcclUInt32},
      {"i64", kNcclInt64},   {"u64", kNcclUInt64},   {"f16", kNcclFloat16}, {"f32", kNcclFloat32},
      {"f64", kNcclFloat64}, {"bf16", kNcclBFloat16}};
  for (const auto& [name, type] : kTypes) {
    if (name == dtype) return type;
  }
  die_of_bad_plan("elements of type " + dtype + " cannot be reduced on a GPU");
}

std::string bytes_of(const NcclId& id) { return {id.bytes, sizeof id.bytes}; }

// The ids of all groups, in their order. Each is made by the group's first rank.
std::vector<NcclId> exchange_ids(const Nccl& nccl, const Peers& peers,
                                 const std::vector<RankGroup>& groups) {
  std::string own;
  for (const RankGroup& group : groups) {
    if (group.ranks[0] != peers.rank) continue;
    NcclId id = {};
    SGTC_NCCL(nccl, ncclGetUniqueId(&id));
    own += bytes_of(id);
  }
  const std::vector<std::string> made = peers.all_gather(own);
  std::vector<size_t> used(made.size());
  std::vector<NcclId> ids;
  for (const RankGroup& group : groups) {
    const auto first = static_cast<size_t>(group.ranks[0]);
    const size_t offset = sizeof(NcclId) * used[first]++;
    if (made[first].size() < offset + sizeof(NcclId)) die("NCCL", "a rank made too few ids");
    std::memcpy(&ids.emplace_back(), made[first].data() + offset, sizeof(NcclId));
  }
  return ids;
}

int64_t blocks_of(const plan::Plan& plan, const std::string& name) {
  for (const plan::Communicator& communicator : plan.communicators) {
    if (communicator.name != name) continue;
    if (communicator.blocks >= 1 && communicator.blocks <= INT_MAX) return communicator.blocks;
  }
  die_of_bad_plan("communicator " + name + " has no thread blocks");
}

}  // namespace

Communicators::Communicators(const Driver& driver, const Nccl& nccl, const Peers& peers,
                             const plan::Plan& plan, const DeviceArena& arena, int gpu,
                             Stream stream, const std::vector<Launch>& launches)
    : driver_(driver),
      nccl_(nccl),
      peers_(peers),
      arena_(arena),
      stream_(stream),
      copies_(driver, nccl, peers, plan, arena, gpu, stream, launches) {
  std::vector<RankGroup> of_nccl;
  for (const RankGroup& group : groups_of(plan)) {
    if (!copies_.does_all_of(group)) of_nccl.push_back(group);
    if (group.member_of(peers.rank) < 0) continue;
    members_[group.communicator].size = static_cast<int64_t>(group.ranks.size());
  }
  const std::vector<NcclId> ids = exchange_ids(nccl, peers, of_nccl);
  for (size_t i = 0; i < of_nccl.size(); ++i) {
    if (of_nccl[i].member_of(peers.rank) < 0) continue;
    connect(of_nccl[i], ids[i], blocks_of(plan, of_nccl[i].communicator));
  }
  std::vector<NcclCommunicator> all;
  for (const auto& [name, member] : members_) {
    if (member.communicator) all.push_back(member.communicator);
  }
  watch_ = std::make_unique<PeerWatch>(nccl, peers, std::move(all));
  warm_up(launches);
}

void Communicators::connect(const RankGroup& group, const NcclId& id, int64_t blocks) {
  NcclConfiguration configuration;
  configuration.blocking = 0;
  configuration.cluster = 0;
  configuration.least_blocks = configuration.most_blocks = static_cast<int>(blocks);
  const std::string call = "ncclCommInitRankConfig for communicator " + group.communicator;
  Member& member = members_.at(group.communicator);
  nccl_.check(nccl_.functions.ncclCommInitRankConfig(
                  &member.communicator, static_cast<int>(member.size), id,
                  static_cast<int>(group.member_of(peers_.rank)), &configuration),
              call.c_str());
  nccl_.complete(member.communicator, call.c_str());
  void* handle = nullptr;
  SGTC_NCCL(nccl_, ncclCommRegister(member.communicator, reinterpret_cast<void*>(arena_.base()),
                                    static_cast<size_t>(arena_.bytes()), &handle));
  nccl_.complete(member.communicator, "ncclCommRegister");
}

void Communicators::warm_up(const std::vector<Launch>& launches) const {
  for (const Launch& launch : launches) {
    if (!launch.kernel) issue(launch, stream_);
  }
  SGTC_CUDA(driver_, cuStreamSynchronize(stream_));
}

void Communicators::issue(const Launch& launch, Stream stream) const {
  if (copies_.does(launch)) return copies_.issue(launch, stream);
  const auto lock = nccl_.lock();
  SGTC_NCCL(nccl_, ncclGroupStart());
  for (const Launch::Communication& communication : launch.communications) {
    add(communication, stream);
  }
  const std::string call = "ncclGroupEnd of task " + *launch.task;
  nccl_.check(nccl_.functions.ncclGroupEnd(), call.c_str(),
              find(launch.communications.front()).communicator);
  for (const Launch::Communication& communication : launch.communications) {
    nccl_.complete(find(communication).communicator, call.c_str());
  }
}

Graph Communicators::capture(const Launch& launch) const {
  Graph graph = nullptr;
  SGTC_CUDA(driver_, cuStreamBeginCapture_v2(stream_, kCaptureRelaxed));
  issue(launch, stream_);
  SGTC_CUDA(driver_, cuStreamEndCapture(stream_, &graph));
  return graph;
}

void Communicators::enter(int64_t step, const Launch* launch) const {
  const bool communicates = launch && !launch->kernel;
  peers_.watch.enter(step, communicates ? launch->task->c_str() : nullptr,
                     communicates ? launch->micro_batch : 0);
}

const Communicators::Member& Communicators::find(const Launch::Communication& communication) const {
  const auto member = members_.find(*communication.communicator);
  if (member != members_.end()) return member->second;
  die_of_bad_plan("this rank is not a member of communicator " + *communication.communicator);
}

// Inside a group. What only moves is bytes.
void Communicators::add(const Launch::Communication& communication, Stream stream) const {
  const CommunicationRequest& request = communication.request;
  const Member& member = find(communication);
  check_request(request, member.size, *communication.communicator);
  const NcclCommunicator c = member.communicator;
  const auto peer = static_cast<int>(request.peer);
  const int reduction = request.reduction == Reduction::max ? kNcclMax : kNcclSum;
  const auto element = static_cast<size_t>(size_of_element(request.dtype));
  const auto address = [&](const Part& part) {
    return reinterpret_cast<void*>(arena_.address(part.data));
  };
  const size_t count = std::max(request.inputs.size(), request.outputs.size());
  for (size_t i = 0; i < count; ++i) {
    const Part in = i < request.inputs.size() ? request.inputs[i] : Part();
    const Part out = i < request.outputs.size() ? request.outputs[i] : Part();
    const auto from = static_cast<size_t>(in.bytes);
    const auto to = static_cast<size_t>(out.bytes);
    switch (request.kind) {
      case CommunicationKind::send:
        SGTC_NCCL(nccl_, ncclSend(address(in), from, kNcclUInt8, peer, c, stream));
        break;
      case CommunicationKind::receive:
        SGTC_NCCL(nccl_, ncclRecv(address(out), to, kNcclUInt8, peer, c, stream));
        break;
      case CommunicationKind::all_reduce:
        SGTC_NCCL(nccl_, ncclAllReduce(address(in), address(out), from / element,
                                       nccl_type(request.dtype), reduction, c, stream));
        break;
      case CommunicationKind::reduce_scatter:
        SGTC_NCCL(nccl_, ncclReduceScatter(address(in), address(out), to / element,
                                           nccl_type(request.dtype), reduction, c, stream));
        break;
      case CommunicationKind::all_gather:
        SGTC_NCCL(nccl_, ncclAllGather(address(in), address(out), from, kNcclUInt8, c, stream));
        break;
      case CommunicationKind::broadcast:
        SGTC_NCCL(nccl_,
                  ncclBroadcast(address(in), address(out), from, kNcclUInt8, peer, c, stream));
        break;
    }
  }
}

void check_apart(const Driver& driver, const Peers& peers, int gpu) {
  const char* shares = std::getenv("SGTC_SHARE_GPU");
  if (peers.all_gather(shares ? shares : "").front() == "1") return;
  int device = 0;
  DeviceId id = {};
  SGTC_CUDA(driver, cuDeviceGet(&device, gpu));
  SGTC_CUDA(driver, cuDeviceGetUuid_v2(&id, device));
  const std::vector<std::string> ids = peers.all_gather({id.bytes, sizeof id.bytes});
  for (size_t second = 0; second < ids.size(); ++second) {
    const size_t first =
        static_cast<size_t>(std::find(ids.begin(), ids.end(), ids[second]) - ids.begin());
    if (first == second) continue;
    die("GPU", format("ranks %zu and %zu have the same one", first, second),
        "give each rank one of its own: CUDA_VISIBLE_DEVICES names as many as ranks run on a host, "
        "or each rank's own");
  }
}

}  // namespace sgtc::runtime::cuda
