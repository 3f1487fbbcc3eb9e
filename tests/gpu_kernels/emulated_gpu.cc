#include "gpu_kernels/emulated_gpu.h"

#include <gpu/instructions.h>
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace sgtc::test {
namespace {

constexpr uint32_t kWarpThreads = 32;
constexpr size_t kStackBytes = 128 << 10;
constexpr unsigned char kPoison = 0xa5;
constexpr size_t kMostSharedBytes = 64 << 10;

enum class State : uint8_t { kReady, kAtBlockBarrier, kAtWarpBarrier, kEnded };

// Contexts start a thread; afterwards jumps switch, since they need no system call.
struct Thread {
  ucontext_t context;
  jmp_buf jump;
  bool started = false;
  State state = State::kReady;
  uint32_t word = 0;  // what the other lanes of the warp read
};

/// The block that runs.
class Block {
 public:
  Block(const EmulatedLaunch& launch, uint32_t index, const std::function<void()>& kernel)
      : launch_(launch), index_(index), kernel_(kernel), threads_(launch.threads) {}

  void run();
  void wait(State where);

  uint32_t index() const { return index_; }
  uint32_t thread() const { return current_; }
  const EmulatedLaunch& launch() const { return launch_; }
  Thread& lane(uint32_t lane) { return threads_[current_ / kWarpThreads * kWarpThreads + lane]; }
  Thread& self() { return threads_[current_]; }
  void execute() { kernel_(); }

 private:
  static void prepare(Thread& thread, char* stack);
  void resume(Thread& thread);
  bool release(size_t begin, size_t end, State where);
  bool release_waiting();

  const EmulatedLaunch& launch_;
  uint32_t index_;
  const std::function<void()>& kernel_;
  std::vector<Thread> threads_;
  jmp_buf scheduler_;
  uint32_t current_ = 0;
};

Block* running = nullptr;

// The stack of a thread, the same for all blocks.
char* stack_of(size_t thread) {
  static std::vector<std::unique_ptr<char[]>> stacks;
  while (stacks.size() <= thread) stacks.push_back(std::make_unique<char[]>(kStackBytes));
  return stacks[thread].get();
}

void enter() {
  running->execute();
  running->wait(State::kEnded);
}

void Block::prepare(Thread& thread, char* stack) {
  getcontext(&thread.context);
  thread.context.uc_stack.ss_sp = stack;
  thread.context.uc_stack.ss_size = kStackBytes;
  thread.context.uc_link = nullptr;
  makecontext(&thread.context, enter, 0);
}

void Block::wait(State where) {
  Thread& self = threads_[current_];
  self.state = where;
  if (_setjmp(self.jump) == 0) _longjmp(scheduler_, 1);
}

void Block::resume(Thread& thread) {
  if (_setjmp(scheduler_) != 0) return;
  if (thread.started) _longjmp(thread.jump, 1);
  thread.started = true;
  setcontext(&thread.context);
}

// Lets threads go on if all of [begin, end) wait there; for the block, ended ones do not count.
bool Block::release(size_t begin, size_t end, State where) {
  bool all = true, any = false;
  for (size_t i = begin; i < end; ++i) {
    const bool ended = threads_[i].state == State::kEnded && where == State::kAtBlockBarrier;
    all = all && (threads_[i].state == where || ended);
    any = any || threads_[i].state == where;
  }
  for (size_t i = begin; all && any && i < end; ++i) {
    if (threads_[i].state == where) threads_[i].state = State::kReady;
  }
  return all && any;
}

bool Block::release_waiting() {
  bool released = release(0, threads_.size(), State::kAtBlockBarrier);
  for (size_t begin = 0; begin < threads_.size(); begin += kWarpThreads) {
    const size_t end = std::min(threads_.size(), begin + kWarpThreads);
    released = release(begin, end, State::kAtWarpBarrier) || released;
  }
  return released;
}

void Block::run() {
  running = this;
  for (size_t i = 0; i < threads_.size(); ++i) prepare(threads_[i], stack_of(i));
  do {
    for (current_ = 0; current_ < threads_.size(); ++current_) {
      if (threads_[current_].state == State::kReady) resume(threads_[current_]);
    }
  } while (release_waiting());
  running = nullptr;
  for (const Thread& thread : threads_) {
    if (thread.state != State::kEnded) {
      throw std::runtime_error("block " + std::to_string(index_) +
                               ": threads wait for others that do not come");
    }
  }
}

}  // namespace

}  // namespace sgtc::test

// What kernels/gpu/instructions.h declares for hosts.
namespace sgtc::gpu {

using sgtc::test::running;
using sgtc::test::State;

alignas(1024) unsigned char sgtc_shared_memory[sgtc::test::kMostSharedBytes];

uint32_t thread_index() { return running->thread(); }
uint32_t thread_count() { return running->launch().threads; }
uint32_t block_index() { return running->index(); }
uint32_t block_count() { return running->launch().blocks; }
void synchronize_block() { running->wait(State::kAtBlockBarrier); }
void synchronize_warp() { running->wait(State::kAtWarpBarrier); }

uint32_t word_of_lane(uint32_t value, uint32_t lane) {
  running->self().word = value;
  synchronize_warp();
  const uint32_t result = running->lane(lane % 32).word;
  synchronize_warp();
  return result;
}

uint32_t lanes_where(bool condition) {
  running->self().word = condition ? 1 : 0;
  synchronize_warp();
  uint32_t lanes = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) lanes |= running->lane(lane).word << lane;
  synchronize_warp();
  return lanes;
}

}  // namespace sgtc::gpu

namespace sgtc::test {

void run_emulated(const EmulatedLaunch& launch, const std::function<void()>& kernel) {
  unsigned char* const shared = sgtc::gpu::sgtc_shared_memory;
  for (uint32_t i = 0; i < launch.blocks; ++i) {
    std::memset(shared, kPoison, kMostSharedBytes);
    Block(launch, launch.backwards ? launch.blocks - 1 - i : i, kernel).run();
    if (std::any_of(shared + launch.shared_bytes, shared + kMostSharedBytes,
                    [](unsigned char byte) { return byte != kPoison; })) {
      throw std::runtime_error("a block writes beyond its " + std::to_string(launch.shared_bytes) +
                               " bytes of shared memory");
    }
  }
}

}  // namespace sgtc::test
