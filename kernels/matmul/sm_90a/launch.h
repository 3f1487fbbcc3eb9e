// What a matrix product for sm_90a needs from whoever launches it: its forms, tensors and table of
// work. Read by the kernel and by the host.
//
// result[batch, row, column] = sum over depth of a[batch, row, depth] b[batch, depth, column], in
// bfloat16 with sums in single precision. The entries are
//   void sgtc_matmul_sm_90a_FORM_AB(const MatmulSm90aShape* shape, void* const* args,
//                                   const MatmulSm90aTensors* tensors)
// FORM is pingpong, pingpong_pair, cooperative or cooperative_pair; _pair is for clusters of two
// blocks. A and B are d for an operand that is contiguous along the depth, l for one that is
// contiguous along its lines (rows of a, columns of b). `args` is passed on to sgtc_tile_store.
//
// A launch has kMatmulThreads threads and matmul_shared_bytes(form) of dynamic shared memory per
// block, at most kMatmulRegisters registers per thread at entry, any number of blocks that are all
// resident (a multiple of form.cluster), and tensor maps of three dimensions with the 128-byte
// swizzle and the box of matmul_box_lines().
#pragma once

#include <stdint.h>

#include "hopper/host.h"

namespace sgtc::kernels {

inline constexpr uint32_t kMatmulThreads = 384;
inline constexpr uint32_t kMatmulRegisters = 168;
inline constexpr uint32_t kMatmulConsumers = 2;  // warpgroups that multiply
inline constexpr uint32_t kMatmulDepth = 64;     // of one k-block

struct MatmulForm {
  uint32_t rows, columns;  // of the tile of one block (ping-pong: of one warpgroup)
  uint32_t stages;         // k-blocks in shared memory
  uint32_t cluster;        // blocks with neighbouring rows that share the columns of b
  bool ping_pong;
};

inline constexpr MatmulForm kPingPong = {128, 128, 6, 1, true};
inline constexpr MatmulForm kPingPongPair = {128, 128, 6, 2, true};
inline constexpr MatmulForm kCooperative = {128, 256, 4, 1, false};
inline constexpr MatmulForm kCooperativePair = {128, 256, 4, 2, false};

/// One tile of a cluster: rows from row * form.rows * form.cluster on, columns from
/// column * form.columns on, the k-blocks [depth_begin, depth_end).
struct alignas(16) MatmulItem {
  uint16_t row, column;
  uint32_t batch;
  uint16_t depth_begin, depth_end;  // equal: no more work for this cluster
  uint16_t slot;
  int16_t partials;  // -1: leave the sums in `slot`; n: add those of the slots from `slot` on
};

/// The shape of a launch, constants in a compiled model.
struct MatmulSm90aShape {
  int64_t rows, columns;
  int64_t depth_blocks;  // k-blocks of a whole tile
  int64_t rounds;        // items per cluster
};

struct MatmulSm90aTensors {
  const void* a;  // tensor maps in global memory
  const void* b;
  const MatmulItem* items;  // [rounds, clusters]
  float* partial_sums;      // [slots, cluster, consumers, 128 * 128]; null without split sums
  uint32_t* flags;          // [slots, cluster, consumers], zeros before and after each launch
};

inline constexpr uint32_t kMatmulPartialFloats = 128 * 128;

constexpr uint32_t matmul_stage_bytes(const MatmulForm& form) {
  return (form.rows + form.columns) * kMatmulDepth * 2;
}

/// Stages, the staging of eight warps, two barriers per stage.
constexpr uint32_t matmul_shared_bytes(const MatmulForm& form) {
  return form.stages * matmul_stage_bytes(form) + 4 * kMatmulConsumers * hopper::kStagingBytes +
         16 * form.stages;
}

/// Lines (rows of a, columns of b) of the box of an operand's tensor map. A box is
/// {64 of the depth, lines} or, for an operand that is contiguous along its lines, {64, 64}.
constexpr uint32_t matmul_box_lines(const MatmulForm& form, bool is_a, bool line_major) {
  if (line_major) return 64;
  return is_a ? form.rows : form.columns / form.cluster;
}

}  // namespace sgtc::kernels
