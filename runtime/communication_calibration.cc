#include "communication_calibration.h"

#include <algorithm>
#include <map>

#include "measurements.h"
#include "trace.h"

namespace sgtc::runtime {
namespace {

constexpr int64_t kLeastBytes = 256;
constexpr int64_t kGrowth = 4;  // from size to size
constexpr int kWarmUps = 3;
constexpr int kSamples = 25;
constexpr int64_t kElement = 4;  // f32

const std::string kName = "calibration";

int64_t bytes_of(const plan::Position& position, const std::vector<plan::Argument>& parts) {
  int64_t bytes = 0;
  for (const plan::Argument& part : parts) {
    const auto buffer =
        std::find_if(position.buffers.begin(), position.buffers.end(),
                     [&](const plan::Buffer& each) { return each.name == part.buffer; });
    bytes += part.bytes > 0 || buffer == position.buffers.end() ? part.bytes : buffer->bytes;
  }
  return bytes;
}

std::string axis_of(const plan::Plan& plan, const std::string& communicator) {
  for (const plan::Communicator& each : plan.communicators) {
    if (each.name == communicator) return each.axis;
  }
  return "pp";
}

// A communicator over which `from` sends to `to`.
std::string channel(const plan::Plan& plan, int64_t from, int64_t to) {
  for (const plan::Task& task : plan.positions[static_cast<size_t>(from)].tasks) {
    if (task.kind == "send" && task.peer == to) return task.communicator;
  }
  return {};
}

// A schedule of nothing but communications of one message, as one rank takes part.
class Exercise {
 public:
  Exercise(const CommunicationCase& each, const Coordinates& coordinates, int64_t bytes,
           RankCommunicators& communicators)
      : members_(each.members), bytes_(bytes), communicators_(communicators) {
    const int64_t pieces = each.members * kElement;
    bytes_ = std::max(pieces, bytes / pieces * pieces);
    input_.resize(static_cast<size_t>(bytes_));
    output_.resize(static_cast<size_t>(bytes_));
    if (each.kind != "send") {
      compute(0);
      add(each.communicator, collective(each.kind), 1);
      compute(1);
    } else if (coordinates.pp == each.position) {
      compute(0);
      add(each.communicator, transfer(CommunicationKind::send, each.peer), 1);
      if (!each.back.empty()) {
        add(each.back, transfer(CommunicationKind::receive, each.peer), 1);
      }
      compute(static_cast<uint32_t>(schedule_.issues.size()));
    } else {
      add(each.communicator, transfer(CommunicationKind::receive, each.position), 0);
      compute(1);
      if (!each.back.empty()) {
        add(each.back, transfer(CommunicationKind::send, each.position), 1);
        compute(2);
      }
    }
  }

  int64_t bytes() const { return bytes_; }
  const PreparedSchedule& schedule() const { return schedule_; }

 private:
  void compute(uint32_t after) {
    schedule_.computations.push_back({{&kName, 0, 0, 0}, 0, 0, after});
  }

  void add(const std::string& communicator, const CommunicationRequest& request, uint32_t after) {
    Communicator* found = communicators_.find(communicator);
    if (!found) die_of_bad_plan("this rank has no communicator " + communicator);
    schedule_.issues.push_back({schedule_.operations.size(), 1, after});
    schedule_.communications.push_back({&kName, 0, 1, 0});
    schedule_.owned_operations.push_back(found->prepare(request));
    schedule_.operations.push_back(schedule_.owned_operations.back().get());
  }

  CommunicationRequest transfer(CommunicationKind kind, int64_t peer) {
    CommunicationRequest request;
    request.kind = kind;
    request.peer = peer;
    const bool sends = kind == CommunicationKind::send;
    (sends ? request.inputs : request.outputs) = {{(sends ? input_ : output_).data(), bytes_}};
    return request;
  }

  CommunicationRequest collective(const std::string& kind) {
    CommunicationRequest request;
    request.dtype = "f32";
    request.peer = kind == "broadcast" ? 0 : -1;
    int64_t in = bytes_;
    int64_t out = bytes_;
    if (kind == "all_reduce") request.kind = CommunicationKind::all_reduce;
    if (kind == "broadcast") request.kind = CommunicationKind::broadcast;
    if (kind == "reduce_scatter") {
      request.kind = CommunicationKind::reduce_scatter;
      out /= members_;
    }
    if (kind == "all_gather") {
      request.kind = CommunicationKind::all_gather;
      in /= members_;
    }
    request.inputs = {{input_.data(), in}};
    request.outputs = {{output_.data(), out}};
    return request;
  }

  int64_t members_;
  int64_t bytes_;
  RankCommunicators& communicators_;
  std::vector<unsigned char> input_;
  std::vector<unsigned char> output_;
  PreparedSchedule schedule_;
};

}  // namespace

bool CommunicationCase::includes(const Coordinates& coordinates) const {
  if (kind != "send") return coordinates.pp == position || peer == kEverywhere;
  const bool first = coordinates.dp == 0 && coordinates.tp == 0;
  return first && (coordinates.pp == position || coordinates.pp == peer);
}

bool CommunicationCase::measures(const Coordinates& coordinates) const {
  return coordinates == Coordinates{position, 0, 0};
}

std::vector<CommunicationCase> communication_cases(const plan::Plan& plan) {
  std::map<std::pair<std::string, int64_t>, CommunicationCase> cases;
  for (size_t p = 0; p < plan.positions.size(); ++p) {
    const plan::Position& position = plan.positions[p];
    for (const plan::Task& task : position.tasks) {
      if (task.kind == "compute" || task.kind == "receive") continue;
      const bool sends = task.kind == "send";
      const std::string axis = axis_of(plan, task.communicator);
      const int64_t members = sends ? 2 : axis_size(plan, axis);
      if (members < 2) continue;
      const auto own = static_cast<int64_t>(p);
      CommunicationCase& each = cases[{task.kind, members}];
      const int64_t bytes =
          std::max(bytes_of(position, task.inputs), bytes_of(position, task.outputs));
      if (each.kind.empty()) {
        each = {task.kind, members, task.communicator, "", own, -1, 0};
        if (sends) {
          each.peer = task.peer;
          each.back = channel(plan, task.peer, own);
        } else if (axis == "pp") {
          each.position = 0;
          each.peer = CommunicationCase::kEverywhere;
        }
      }
      each.bytes = std::max(each.bytes, bytes);
    }
  }
  std::vector<CommunicationCase> result;
  for (auto& [key, each] : cases) result.push_back(std::move(each));
  return result;
}

std::vector<std::pair<int64_t, double>> measure_communication(const CommunicationCase& each,
                                                              const Coordinates& coordinates,
                                                              RankCommunicators& communicators,
                                                              Executor& executor) {
  std::vector<std::pair<int64_t, double>> points;
  for (int64_t size = kLeastBytes;; size = std::min(size * kGrowth, each.bytes)) {
    const Exercise exercise(each, coordinates, size, communicators);
    std::vector<double> samples;
    for (int i = 0; i < kWarmUps + kSamples; ++i) {
      const int64_t begin = monotonic_nanoseconds();
      executor.run(exercise.schedule(), 0, nullptr);
      const int64_t end = monotonic_nanoseconds();
      if (i >= kWarmUps) samples.push_back(static_cast<double>(end - begin) * 1e-9);
    }
    const double messages = each.back.empty() ? 1 : 2;
    if (points.empty() || exercise.bytes() > points.back().first) {
      points.emplace_back(exercise.bytes(), median(std::move(samples)) / messages);
    }
    if (size >= each.bytes) return points;
  }
}

}  // namespace sgtc::runtime
