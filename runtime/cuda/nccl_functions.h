// What is used of NCCL's binary interface: own declarations, since the library is loaded at run
// time and neither building nor running needs its headers. A test compares them with nccl.h where
// that is found.
#pragma once

#include <climits>
#include <cstddef>

#include "cuda/driver_functions.h"

namespace sgtc::runtime::cuda {

/// ncclComm_t
using NcclCommunicator = struct NcclCommunicatorObject*;

/// ncclUniqueId
struct NcclId {
  char bytes[128];
};

inline constexpr int kNcclUndefined = INT_MIN;

/// ncclConfig_t as of NCCL 2.18, which newer ones accept: they look at `size` and `version`.
struct NcclConfiguration {
  size_t size = sizeof(NcclConfiguration);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = kNcclUndefined;
  int cluster = kNcclUndefined;  // blocks of a cluster
  int least_blocks = kNcclUndefined;
  int most_blocks = kNcclUndefined;
  const char* network = nullptr;
  int shares_split = kNcclUndefined;
};

// Results of calls that are told apart.
inline constexpr int kNcclSuccess = 0;
inline constexpr int kNcclInProgress = 7;

// ncclDataType_t
inline constexpr int kNcclInt8 = 0;
inline constexpr int kNcclUInt8 = 1;
inline constexpr int kNcclInt32 = 2;
inline constexpr int kNcclUInt32 = 3;
inline constexpr int kNcclInt64 = 4;
inline constexpr int kNcclUInt64 = 5;
inline constexpr int kNcclFloat16 = 6;
inline constexpr int kNcclFloat32 = 7;
inline constexpr int kNcclFloat64 = 8;
inline constexpr int kNcclBFloat16 = 9;

// ncclRedOp_t
inline constexpr int kNcclSum = 0;
inline constexpr int kNcclMax = 2;

/// All functions that are used, by their exported names: F(result, name, parameters).
#define SGTC_NCCL_FUNCTIONS(F)                                                                    \
  F(int, ncclGetVersion, (int* version))                                                          \
  F(int, ncclGetUniqueId, (NcclId * id))                                                          \
  F(const char*, ncclGetErrorString, (int result))                                                \
  F(const char*, ncclGetLastError, (NcclCommunicator communicator))                               \
  F(int, ncclCommInitRankConfig,                                                                  \
    (NcclCommunicator * communicator, int size, NcclId id, int member,                            \
     NcclConfiguration* configuration))                                                           \
  F(int, ncclCommGetAsyncError, (NcclCommunicator communicator, int* result))                     \
  F(int, ncclCommRegister,                                                                        \
    (NcclCommunicator communicator, void* memory, size_t bytes, void** handle))                   \
  F(int, ncclMemAlloc, (void** memory, size_t bytes))                                             \
  F(int, ncclGroupStart, ())                                                                      \
  F(int, ncclGroupEnd, ())                                                                        \
  F(int, ncclAllReduce,                                                                           \
    (const void* from, void* to, size_t count, int type, int reduction,                           \
     NcclCommunicator communicator, Stream stream))                                               \
  F(int, ncclReduceScatter,                                                                       \
    (const void* from, void* to, size_t count_to, int type, int reduction,                        \
     NcclCommunicator communicator, Stream stream))                                               \
  F(int, ncclAllGather,                                                                           \
    (const void* from, void* to, size_t count_from, int type, NcclCommunicator communicator,      \
     Stream stream))                                                                              \
  F(int, ncclBroadcast,                                                                           \
    (const void* from, void* to, size_t count, int type, int root, NcclCommunicator communicator, \
     Stream stream))                                                                              \
  F(int, ncclSend,                                                                                \
    (const void* from, size_t count, int type, int peer, NcclCommunicator communicator,           \
     Stream stream))                                                                              \
  F(int, ncclRecv,                                                                                \
    (void* to, size_t count, int type, int peer, NcclCommunicator communicator, Stream stream))

/// The functions of a loaded library.
struct NcclFunctions {
#define SGTC_NCCL_POINTER(result, name, parameters) result(*name) parameters = nullptr;
  SGTC_NCCL_FUNCTIONS(SGTC_NCCL_POINTER)
#undef SGTC_NCCL_POINTER
};

}  // namespace sgtc::runtime::cuda
