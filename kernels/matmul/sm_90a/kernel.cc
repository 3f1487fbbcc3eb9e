// Matrix products on Hopper's tensor cores; launch.h is the contract.
//
// The problem: the tensor cores of a multiprocessor consume a k-block of two operands in some 500
// cycles, and neither loading operands nor finishing a tile may keep them waiting. The known answer
// is taken: resident blocks that work off a list of tiles; one warpgroup whose only active thread
// keeps the copy engine filling a ring of k-blocks in shared memory; two warpgroups that multiply
// straight from shared memory. They do so in one of two forms:
// - Ping-pong: each has its own tile of 128 x 128, and they take turns at the tensor cores, so that
//   one multiplies while the other finishes its tile. For short depths and for costly epilogues.
// - Cooperative: both work on one tile of 128 x 256, which needs fewer bytes of shared memory per
//   product, but leaves the tensor cores idle while a tile is finished. For long depths.
// In a cluster of two blocks each loads half of their common part of b for both.
//
// The list comes from the host (schedule.h): it decides the order in which tiles share the L2
// cache, and it splits long depths over several clusters. A cluster that has computed a part of a
// tile's sum leaves it in memory and raises a flag; the tile's owner adds the parts in a fixed
// order, so results have the same bits in every run.
#include "hopper/ring.h"
#include "hopper/tensor_core.h"
#include "matmul/sm_90a/epilogue.h"
#include "matmul/sm_90a/launch.h"

namespace sgtc::kernels {
namespace {

using namespace sgtc::hopper;

constexpr int kProducerRegisters = 40;
constexpr int kConsumerRegisters = 232;

enum NamedBarrier : uint32_t { kWholeBlock = 0, kWarpgroup = 1, kTurn = 3 };

template <MatmulForm Form, bool LineMajorA, bool LineMajorB>
class Matmul {
 public:
  SGTC_METHOD Matmul(const MatmulSm90aShape& shape, void* const* args,
                     const MatmulSm90aTensors& tensors)
      : shape_(shape), args_(args), tensors_(tensors) {}

  SGTC_METHOD void run() {
    const uint32_t warpgroup = of_first_lane(thread_index() / kWarpgroupThreads);
    initialize_barriers();
    if (warpgroup == 0) {
      shrink_registers<kProducerRegisters>();
      if (thread_index() == 0) produce();
    } else {
      grow_registers<kConsumerRegisters>();
      consume(warpgroup - 1);
    }
    // No block of a cluster may end while another still writes to its shared memory.
    if constexpr (Form.cluster > 1) synchronize_cluster();
  }

 private:
  using Ring = RingPosition<Form.stages>;
  static constexpr uint32_t kStageBytes = matmul_stage_bytes(Form);
  static constexpr uint32_t kBytesA = Form.rows * kRowBytes;
  // A warpgroup's share of a tile is kRowBlocks of 64 rows.
  static constexpr uint32_t kRowBlocks = Form.ping_pong ? 2 : 1;
  static constexpr uint32_t kConsumersOfStage = Form.ping_pong ? 1 : kMatmulConsumers;
  static_assert(kRowBlocks * Form.columns * 64 == kAccumulators * kWarpgroupThreads);

  SGTC_METHOD uint32_t stage_at(uint32_t stage) const { return begin_ + stage * kStageBytes; }
  SGTC_METHOD uint32_t staging() const { return stage_at(Form.stages); }
  SGTC_METHOD uint32_t full(uint32_t stage) const {
    return staging() + 4 * kMatmulConsumers * kStagingBytes + 8 * stage;
  }
  SGTC_METHOD uint32_t empty(uint32_t stage) const { return full(Form.stages + stage); }

  SGTC_METHOD void initialize_barriers() const {
    if (thread_index() == 0) {
      for (uint32_t stage = 0; stage < Form.stages; ++stage) {
        initialize_barrier(full(stage), 1);
        initialize_barrier(empty(stage), kConsumersOfStage * Form.cluster);
      }
      publish_barriers();
    }
    if constexpr (Form.cluster > 1) {
      synchronize_cluster();
    } else {
      synchronize(kWholeBlock, kMatmulThreads);
    }
  }

  SGTC_METHOD MatmulItem item(uint32_t round) const {
    const uint32_t clusters = block_count() / Form.cluster;
    uint32_t words[4];
    load_constant(tensors_.items + round * clusters + block_index() / Form.cluster, words);
    return __builtin_bit_cast(MatmulItem, words);
  }
  SGTC_METHOD uint32_t first_row(const MatmulItem& item) const {
    return (item.row * Form.cluster + rank_) * Form.rows;
  }

  // The producer.

  SGTC_METHOD void produce() const {
    Ring ring;
    for (uint32_t round = 0; round < rounds_; ++round) {
      const MatmulItem work = item(round);
      if (work.depth_begin == work.depth_end) break;
      for (uint32_t block = work.depth_begin; block < work.depth_end; ++block) {
        fill(ring, work, block * kMatmulDepth);
        ring.advance();
      }
    }
  }

  SGTC_METHOD void fill(const Ring& ring, const MatmulItem& work, uint32_t depth) const {
    const uint32_t to = stage_at(ring.stage);
    const uint32_t barrier = full(ring.stage);
    wait_for(empty(ring.stage), ring.parity ^ 1);
    arrive_and_expect(barrier, kStageBytes);
    copy_operand<LineMajorA, Form.rows, 1>(to, tensors_.a, first_row(work), depth, work.batch,
                                           barrier, Keep::kNormal);
    copy_operand<LineMajorB, Form.columns, Form.cluster>(to + kBytesA, tensors_.b,
                                                         work.column * Form.columns, depth,
                                                         work.batch, barrier, Keep::kLong);
  }

  // Lines [line, line + Lines) of one k-block. Each of the Sharers copies a part for all of them.
  template <bool LineMajor, uint32_t Lines, uint32_t Sharers>
  SGTC_METHOD void copy_operand(uint32_t to, const void* tensor, uint32_t line, uint32_t depth,
                                uint32_t batch, uint32_t barrier, Keep keep) const {
    constexpr uint32_t kPart = Lines / Sharers;
    constexpr uint32_t kBoxLines = LineMajor ? 64 : kPart;
    const uint32_t begin = Sharers > 1 ? rank_ * kPart : 0;
#pragma clang loop unroll(full)
    for (uint32_t first = 0; first < kPart; first += kBoxLines) {
      const uint32_t at = begin + first;
      const auto* map = static_cast<const TensorMap*>(tensor);
      const uint32_t x = LineMajor ? line + at : depth;
      const uint32_t y = LineMajor ? depth : line + at;
      if constexpr (Sharers > 1) {
        copy_box_to_blocks(to + at * kRowBytes, map, x, y, batch, barrier, (1 << Sharers) - 1,
                           keep);
      } else {
        copy_box(to + at * kRowBytes, map, x, y, batch, barrier, keep);
      }
    }
  }

  // The consumers.

  SGTC_METHOD void consume(uint32_t consumer) const {
    if (Form.ping_pong && consumer == 1) pass_turn(consumer);
    Ring ring;
    const uint32_t step = Form.ping_pong ? kMatmulConsumers : 1;
    for (uint32_t round = Form.ping_pong ? consumer : 0; round < rounds_; round += step) {
      const MatmulItem work = item(round);
      if (work.depth_begin == work.depth_end) break;
      if constexpr (Form.ping_pong) ring = Ring::at(round * depth_blocks_);
      epilogue(work, consumer).prefetch();
      float sums[kAccumulators];
      multiply_tile(work, consumer, ring, sums);
      finish_tile(work, consumer, sums);
    }
  }

  // The consumers of the ping-pong form alternate; the first turn is consumer 0's.
  SGTC_DEVICE void take_turn(uint32_t consumer) {
    synchronize(kTurn + consumer, kMatmulConsumers * kWarpgroupThreads);
  }
  SGTC_DEVICE void pass_turn(uint32_t consumer) {
    arrive(kTurn + (consumer ^ 1), kMatmulConsumers * kWarpgroupThreads);
  }

  SGTC_METHOD void multiply_tile(const MatmulItem& work, uint32_t consumer, Ring& ring,
                                 float (&sums)[kAccumulators]) const {
    if constexpr (Form.ping_pong) take_turn(consumer);
    uint32_t previous = ring.stage;
    for (uint32_t block = work.depth_begin; block < work.depth_end; ++block) {
      wait_for(full(ring.stage), ring.parity);
      multiply_block(ring.stage, consumer, block != work.depth_begin, sums);
      // One group of products stays in flight, so the block before can be overwritten.
      if (block != work.depth_begin) {
        wait_for_products<1>();
        release(previous);
      }
      previous = ring.stage;
      ring.advance();
    }
    if constexpr (Form.ping_pong) pass_turn(consumer);
    finish_products(sums);
    release(previous);
  }

  SGTC_METHOD void multiply_block(uint32_t stage, uint32_t consumer, bool accumulate,
                                  float (&sums)[kAccumulators]) const {
    const uint32_t first = Form.ping_pong ? 0 : consumer;
    const uint64_t a =
        operand_descriptor<LineMajorA>(begin_ + first * kBoxBytes) + stage * (kStageBytes / 16);
    const uint64_t b =
        operand_descriptor<LineMajorB>(begin_ + kBytesA) + stage * (kStageBytes / 16);
    begin_products();
#pragma clang loop unroll(full)
    for (uint32_t step = 0; step < kMatmulDepth / kProductDepth; ++step) {
      const uint64_t step_a = a + step * kDepthStep<LineMajorA>;
      const uint64_t step_b = b + step * kDepthStep<LineMajorB>;
      multiply<0, Form.columns, LineMajorA, LineMajorB>(sums, step_a, step_b,
                                                        step > 0 || accumulate);
      if constexpr (kRowBlocks == 2) {
        multiply<Form.columns / 2, Form.columns, LineMajorA, LineMajorB>(
            sums, step_a + kBoxBytes / 16, step_b, step > 0 || accumulate);
      }
    }
    commit_products();
  }

  SGTC_METHOD void release(uint32_t stage) const {
    const uint32_t thread = thread_index() % kWarpgroupThreads;
    if constexpr (Form.cluster > 1) {
      if (thread < Form.cluster) arrive_at_block(empty(stage), thread);
    } else {
      if (thread == 0) arrive_at(empty(stage));
    }
  }

  // Sums of a tile over several clusters.

  SGTC_METHOD void finish_tile(const MatmulItem& work, uint32_t consumer,
                               float (&sums)[kAccumulators]) const {
    if constexpr (!Form.ping_pong) {
      if (work.partials < 0) {
        leave_partial(work.slot, consumer, sums);
        return;
      }
      for (int32_t i = 0; i < work.partials; ++i) add_partial(work.slot + i, consumer, sums);
    }
    epilogue(work, consumer).visit(sums);
  }

  SGTC_METHOD uint32_t partial_index(uint32_t slot, uint32_t consumer) const {
    return (slot * Form.cluster + rank_) * kMatmulConsumers + consumer;
  }
  SGTC_METHOD float* partial_at(uint32_t index) const {
    return tensors_.partial_sums + static_cast<uint64_t>(index) * kMatmulPartialFloats +
           thread_index() % kWarpgroupThreads * 4;
  }

  SGTC_METHOD void leave_partial(uint32_t slot, uint32_t consumer,
                                 const float (&sums)[kAccumulators]) const {
    const uint32_t index = partial_index(slot, consumer);
    float* to = partial_at(index);
#pragma clang loop unroll(full)
    for (int i = 0; i < kAccumulators; i += 4) {
      store_global(to + i * kWarpgroupThreads, sums[i], sums[i + 1], sums[i + 2], sums[i + 3]);
    }
    fence_device();
    synchronize(kWarpgroup + consumer, kWarpgroupThreads);
    if (thread_index() % kWarpgroupThreads == 0) raise_flag(tensors_.flags + index);
  }

  SGTC_METHOD void add_partial(uint32_t slot, uint32_t consumer,
                               float (&sums)[kAccumulators]) const {
    const uint32_t index = partial_index(slot, consumer);
    if (thread_index() % kWarpgroupThreads == 0) {
      wait_for_flag(tensors_.flags + index);
      lower_flag(tensors_.flags + index);
    }
    synchronize(kWarpgroup + consumer, kWarpgroupThreads);
    const float* from = partial_at(index);
#pragma clang loop unroll(full)
    for (int i = 0; i < kAccumulators; i += 4) {
      float x, y, z, w;
      load_global(from + i * kWarpgroupThreads, x, y, z, w);
      sums[i] += x;
      sums[i + 1] += y;
      sums[i + 2] += z;
      sums[i + 3] += w;
    }
  }

  SGTC_METHOD Epilogue<Form> epilogue(const MatmulItem& work, uint32_t consumer) const {
    return {shape_,
            args_,
            work.batch,
            first_row(work) + (Form.ping_pong ? 0 : 64 * consumer),
            work.column * Form.columns,
            staging() + 4 * consumer * kStagingBytes};
  }

  const MatmulSm90aShape& shape_;
  void* const* args_;
  const MatmulSm90aTensors& tensors_;
  const uint32_t begin_ = shared_memory_begin();
  const uint32_t rank_ = Form.cluster > 1 ? block_index() % Form.cluster : 0;
  const uint32_t rounds_ = static_cast<uint32_t>(shape_.rounds);
  const uint32_t depth_blocks_ = static_cast<uint32_t>(shape_.depth_blocks);
};

}  // namespace
}  // namespace sgtc::kernels

#define SGTC_MATMUL(form, constant, layout, line_major_a, line_major_b)                      \
  extern "C" __attribute__((always_inline)) void sgtc_matmul_sm_90a_##form##_##layout(       \
      const sgtc::kernels::MatmulSm90aShape* shape, void* const* args,                       \
      const sgtc::kernels::MatmulSm90aTensors* tensors) {                                    \
    sgtc::kernels::Matmul<sgtc::kernels::constant, line_major_a, line_major_b>(*shape, args, \
                                                                               *tensors)     \
        .run();                                                                              \
  }
#define SGTC_MATMUL_LAYOUTS(form, constant)     \
  SGTC_MATMUL(form, constant, dd, false, false) \
  SGTC_MATMUL(form, constant, dl, false, true)  \
  SGTC_MATMUL(form, constant, ld, true, false)  \
  SGTC_MATMUL(form, constant, ll, true, true)

SGTC_MATMUL_LAYOUTS(pingpong, kPingPong)
SGTC_MATMUL_LAYOUTS(pingpong_pair, kPingPongPair)
SGTC_MATMUL_LAYOUTS(cooperative, kCooperative)
SGTC_MATMUL_LAYOUTS(cooperative_pair, kCooperativePair)
