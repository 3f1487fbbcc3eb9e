#include "schedule/step_tasks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace sgtc {
namespace {

constexpr int64_t kLargestBucket = int64_t{25} << 20;
constexpr int64_t kSmallestBucket = int64_t{16} << 10;
constexpr int64_t kBuckets = 6;  // wanted between the two limits
constexpr int64_t kTailParts = 8;

bool is_gradient_reduction(const StepCall& call) {
  const bool reduces =
      call.kind == StepCall::Kind::kAllReduce || call.kind == StepCall::Kind::kReduceScatter;
  return reduces && call.phase == Phase::kUpdate && call.round == 0;
}

// One reduction and when its operand is complete.
struct Ready {
  size_t call = 0;
  int64_t last = -1;  // last backward call that touches the operand
  int64_t bytes = 0;
  DType dtype = DType::kFloat32;
  StepCall::Kind kind = StepCall::Kind::kAllReduce;
};

struct Bucket {
  std::vector<size_t> calls;
  int64_t last = -1;
  int64_t bytes = 0;
  DType dtype = DType::kFloat32;
  StepCall::Kind kind = StepCall::Kind::kAllReduce;
  int64_t limit = 0;  // bytes from which it is full
};

class TaskFormer {
 public:
  TaskFormer(const StepCalls& step, bool is_evaluation, int64_t bucket_bytes)
      : step_(step), is_evaluation_(is_evaluation), bucket_bytes_(bucket_bytes) {}

  std::vector<StepTask> run() {
    form_buckets();
    for (size_t c = 0; c < step_.calls.size(); ++c) {
      const StepCall& call = step_.calls[c];
      if (call.kind == StepCall::Kind::kKernel) {
        add_kernel(c);
      } else if (!is_gradient_reduction(call)) {
        add_communication(c);
      } else if (!buckets_.empty()) {
        add_buckets();
      }
    }
    return std::move(tasks_);
  }

 private:
  const Storage& storage(StorageId id) const { return step_.storages[static_cast<size_t>(id)]; }

  std::vector<Ready> find_ready() const {
    std::map<StorageId, int64_t> last;
    for (size_t c = 0; c < step_.calls.size(); ++c) {
      if (step_.calls[c].phase != Phase::kBackward) continue;
      for (const StorageId id : step_.calls[c].arguments) last[id] = static_cast<int64_t>(c);
    }
    std::vector<Ready> ready;
    for (size_t c = 0; c < step_.calls.size(); ++c) {
      if (!is_gradient_reduction(step_.calls[c])) continue;
      const StorageId operand = step_.calls[c].arguments[0];
      const auto found = last.find(operand);
      ready.push_back({c, found == last.end() ? -1 : found->second, storage(operand).bytes,
                       step_.calls[c].dtype, step_.calls[c].kind});
    }
    std::stable_sort(ready.begin(), ready.end(),
                     [](const Ready& a, const Ready& b) { return a.last < b.last; });
    return ready;
  }

  // The reduction of the last bucket has nothing to hide behind, so buckets become smaller towards
  // the end: half of what is left.
  int64_t limit_before(int64_t bytes_left) const {
    return std::clamp(bytes_left / 2, bucket_bytes_ / kTailParts, bucket_bytes_);
  }

  // A bucket is of one kind and type; those of several fill side by side. What was complete before
  // the backward phase, such as the loss, goes with the last one.
  void form_buckets() {
    std::vector<Ready> ready = find_ready();
    const auto early =
        std::find_if(ready.begin(), ready.end(), [](const Ready& r) { return r.last >= 0; });
    std::rotate(ready.begin(), early, ready.end());
    int64_t left = 0;
    for (const Ready& next : ready) left += next.bytes;
    std::map<std::pair<StepCall::Kind, DType>, size_t> open;
    for (const Ready& next : ready) {
      const auto [bucket_of, is_new] = open.try_emplace({next.kind, next.dtype}, buckets_.size());
      if (!is_new && buckets_[bucket_of->second].bytes >= buckets_[bucket_of->second].limit) {
        bucket_of->second = buckets_.size();
      }
      if (bucket_of->second == buckets_.size()) {
        buckets_.push_back({{}, -1, 0, next.dtype, next.kind, limit_before(left)});
      }
      left -= next.bytes;
      Bucket& bucket = buckets_[bucket_of->second];
      bucket.calls.push_back(next.call);
      bucket.bytes += next.bytes;
      bucket.last = std::max({bucket.last, next.last, buckets_.front().last});
    }
    std::stable_sort(buckets_.begin(), buckets_.end(),
                     [](const Bucket& a, const Bucket& b) { return a.last < b.last; });
    for (const Bucket& bucket : buckets_) ends_.push_back(bucket.last);
  }

  static std::string phase_name(Phase phase, bool is_evaluation) {
    return is_evaluation ? "evaluate" : std::string(name_of(phase));
  }

  void add_kernel(size_t c) {
    const StepCall& call = step_.calls[c];
    const bool joins = !tasks_.empty() && tasks_.back().kind == StepCall::Kind::kKernel &&
                       tasks_.back().phase == call.phase && tasks_.back().round == call.round &&
                       !ends_bucket(tasks_.back().calls.back());
    if (!joins) {
      StepTask task;
      task.name = unique(phase_name(call.phase, is_evaluation_));
      task.phase = call.phase;
      task.round = call.round;
      tasks_.push_back(std::move(task));
    }
    tasks_.back().calls.push_back(c);
  }

  bool ends_bucket(size_t call) const {
    return std::find(ends_.begin(), ends_.end(), static_cast<int64_t>(call)) != ends_.end();
  }

  void add_communication(size_t c) {
    const StepCall& call = step_.calls[c];
    static const std::map<StepCall::Kind, std::string> kNames = {
        {StepCall::Kind::kSend, "send"},
        {StepCall::Kind::kReceive, "receive"},
        {StepCall::Kind::kAllReduce, "reduce"},
        {StepCall::Kind::kReduceScatter, "reduce"},
        {StepCall::Kind::kAllGather, "gather"}};
    if (joins_last(call)) return tasks_.back().calls.push_back(c);
    StepTask task;
    task.name = unique(kNames.at(call.kind) + "_" + phase_name(call.phase, is_evaluation_));
    task.kind = call.kind;
    task.phase = call.phase;
    task.round = call.round;
    task.calls = {c};
    task.dtype = std::string(name_of(call.dtype));
    tasks_.push_back(std::move(task));
  }

  // Collectives of the later rounds of the update, of all parameters, are one message.
  bool joins_last(const StepCall& call) const {
    return call.phase == Phase::kUpdate && call.round > 0 && is_collective(call.kind) &&
           !tasks_.empty() && tasks_.back().kind == call.kind &&
           tasks_.back().round == call.round && tasks_.back().dtype == name_of(call.dtype);
  }

  void add_buckets() {
    for (size_t k = 0; k < buckets_.size(); ++k) {
      StepTask task;
      task.name = "reduce_bucket_" + std::to_string(k);
      task.kind = buckets_[k].kind;
      task.phase = Phase::kUpdate;
      task.calls = buckets_[k].calls;
      task.dtype = std::string(name_of(buckets_[k].dtype));
      task.after_backward = backward_task_of(buckets_[k].last);
      tasks_.push_back(std::move(task));
    }
    buckets_.clear();
  }

  // The number, among backward tasks, of the one that holds `call`.
  int64_t backward_task_of(int64_t call) const {
    int64_t number = -1;
    for (const StepTask& task : tasks_) {
      if (task.kind != StepCall::Kind::kKernel || task.phase != Phase::kBackward) continue;
      ++number;
      if (static_cast<int64_t>(task.calls.back()) >= call) break;
    }
    return call < 0 ? -1 : number;
  }

  // "backward", then "backward_1".
  std::string unique(const std::string& name) {
    const int64_t number = used_[name]++;
    return number == 0 ? name : name + "_" + std::to_string(number);
  }

  const StepCalls& step_;
  bool is_evaluation_;
  int64_t bucket_bytes_;
  std::vector<Bucket> buckets_;
  std::vector<int64_t> ends_;  // last call of each bucket
  std::vector<StepTask> tasks_;
  std::map<std::string, int64_t> used_;
};

}  // namespace

std::vector<StepTask> form_tasks(const StepCalls& step, bool is_evaluation, int64_t bucket_bytes) {
  return TaskFormer(step, is_evaluation, bucket_bytes).run();
}

int64_t default_bucket_bytes(int64_t gradient_bytes) {
  return std::clamp(gradient_bytes / kBuckets, kSmallestBucket, kLargestBucket);
}

int64_t reduced_bytes(const StepCalls& step) {
  int64_t bytes = 0;
  for (const StepCall& call : step.calls) {
    if (is_gradient_reduction(call)) {
      bytes += step.storages[static_cast<size_t>(call.arguments[0])].bytes;
    }
  }
  return bytes;
}

}  // namespace sgtc
