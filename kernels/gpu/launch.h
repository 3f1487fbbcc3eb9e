// What the kernels for every GPU need from whoever launches them. Read by kernels and by the host.
#pragma once

#include <stdint.h>

namespace sgtc::gpu {

// Contractions without tensor cores (gpu/simt_product.h).

inline constexpr int64_t kLargeTileLines = 128;  // f32, f16 and bf16
inline constexpr int64_t kSmallTileLines = 64;
inline constexpr int64_t kLargeTileThreads = 256;
inline constexpr int64_t kSmallTileThreads = 64;
inline constexpr int64_t kWideTileThreads = 256;  // f64 and integers, whose tiles have 64 lines
inline constexpr int64_t kSimtSharedBytes = 20992;

// Matrix products on tensor cores by mma.sync (matmul/sm_80/matmul.cc).

inline constexpr int64_t kMmaTileLines = 128;
inline constexpr int64_t kMmaThreads = 128;
inline constexpr int64_t kMmaSharedBytes = 65536;

// Attention without tensor cores (attention/gpu/block.h).

inline constexpr int64_t kAttentionThreads = 256;
inline constexpr int64_t kAttentionTileLines = 64;     // queries or keys of a block
inline constexpr int64_t kAttentionTileColumns = 128;  // of its results
inline constexpr int64_t kAttentionSharedBytes = 59392;

// Scatters (scatter/gpu/scatter.cc).

inline constexpr int64_t kScatterThreads = 256;
inline constexpr int64_t kScatterColumns = 128;  // of a block
inline constexpr int64_t kScatterRows = 1024;    // of a block, at most
inline constexpr int64_t kScatterSharedBytes = 36896;

// Kernels that have a thread for each unit of work.

inline constexpr int64_t kUnitThreads = 256;

}  // namespace sgtc::gpu
