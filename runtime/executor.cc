#include "executor.h"

#include <sched.h>

#include "failure.h"

namespace sgtc::runtime {
namespace {

constexpr int kSpins = 4000;  // some ten microseconds

}  // namespace

Executor::Executor(ThreadPool& threads, RankCommunicators* communicators, AccessCheck* check)
    : threads_(threads), communicators_(communicators), check_(check) {
  if (!communicators_) return;
  spare_cpu_ = communicators_->has_own_cpu() &&
               static_cast<int64_t>(threads_.cpus().size()) > threads_.size();
  if (pthread_create(&thread_, nullptr, start_thread, this) != 0) {
    die("threads", "cannot start the thread that communicates", "use fewer with --threads");
  }
  keep_to_spare_cpus();
}

Executor::~Executor() {
  if (!communicators_) return;
  stopping_ = true;
  started_.count();
  pthread_join(thread_, nullptr);
}

// The new thread inherits the one CPU of the thread that computes. It gets those that no computing
// thread of any rank stays on, or else may run anywhere: it mostly waits.
void Executor::keep_to_spare_cpus() const {
  cpu_set_t set;
  CPU_ZERO(&set);
  const std::vector<int>& cpus = threads_.cpus();
  const size_t first = spare_cpu_ ? static_cast<size_t>(threads_.size()) : 0;
  for (size_t i = first; i < cpus.size(); ++i) CPU_SET(cpus[i], &set);
  pthread_setaffinity_np(thread_, sizeof set, &set);
}

void* Executor::start_thread(void* executor) {
  static_cast<Executor*>(executor)->serve();
  return nullptr;
}

void Executor::serve() {
  for (uint32_t runs = 1;; ++runs) {
    started_.wait_for(runs, 0);
    if (stopping_) return;
    communicate();
  }
}

void Executor::run(const PreparedSchedule& schedule, int64_t step, Trace* trace) {
  schedule_ = &schedule;
  step_ = step;
  trace_ = trace;
  computed_.reset();
  communicated_.reset();
  if (!schedule.issues.empty()) started_.count();
  const int spins = spare_cpu_ ? kSpins : 0;
  for (const PreparedSchedule::Computation& computation : schedule.computations) {
    if (computation.after > 0) communicated_.wait_for(computation.after, spins);
    compute(computation);
  }
  communicated_.wait_for(static_cast<uint32_t>(schedule.issues.size()), spins);
  if (trace_) trace_->end_step(step);
}

void Executor::compute(const PreparedSchedule::Computation& computation) {
  const int64_t begin = trace_ ? trace_->now() : 0;
  const size_t end = computation.first_call + computation.call_count;
  for (size_t i = computation.first_call; i < end; ++i) {
    call(schedule_->calls[i], *computation.entry.task);
  }
  if (trace_) {
    const PreparedSchedule::Entry& entry = computation.entry;
    trace_->add({entry.task, entry.stage, entry.stream, entry.micro_batch, begin, trace_->now()});
  }
  computed_.count();
}

void Executor::call(const PreparedSchedule::Call& call, const std::string& task) {
  void* const* const arguments = schedule_->arguments.data() + call.first_argument;
  const auto run = [&] { threads_.run(call.function, arguments, call.blocks, call.micro_batch); };
  if (!check_) return run();
  std::vector<MemoryRange> ranges;
  for (size_t i = 0; i < call.kernel->access.size(); ++i) {
    ranges.push_back({static_cast<unsigned char*>(arguments[i]),
                      schedule_->argument_bytes[call.first_argument + i]});
  }
  check_->check({*call.kernel, task, ranges}, run);
}

void Executor::communicate() {
  for (const PreparedSchedule::Issue& each : schedule_->issues) {
    computed_.wait_for(each.after, 0);
    issue(each);
    communicated_.count();
  }
}

void Executor::issue(const PreparedSchedule::Issue& issue) {
  const PreparedSchedule::Entry* entries = schedule_->communications.data() + issue.first;
  const int64_t begin = trace_ ? trace_->now() : 0;
  communicators_->watch().enter(step_, entries->task->c_str(), entries->micro_batch);
  const bool busy = !spare_cpu_ && !communicated_.is_waited_for();
  communicators_->complete(schedule_->operations.data() + issue.first,
                           static_cast<int64_t>(issue.count), busy);
  communicators_->watch().enter(step_, nullptr, 0);
  if (!trace_) return;
  const int64_t end = trace_->now();
  for (size_t i = 0; i < issue.count; ++i) {
    const PreparedSchedule::Entry& entry = entries[i];
    trace_->add(
        {entry.task, entry.stage, entry.stream, entry.micro_batch, begin, end, nullptr, true});
  }
}

}  // namespace sgtc::runtime
