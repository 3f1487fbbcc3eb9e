// The one door to NCCL: libnccl.so.2, loaded at run time, every call checked.
//
// No call waits inside the library, since it might for ever: communicators are not blocking, and
// whoever needs a result polls for it here, where a lost peer ends the wait. Nothing is freed, and
// nothing aborted when a peer is lost: the process ends, which frees the GPU within a second. An
// aborted communication would end as if it were done, and what follows would take garbage for
// results; and with a peer that was killed, ncclCommAbort of NCCL 2.28 was seen not to return.
//
// One thread at a time calls the library: it keeps state that its functions share without locks.
#pragma once

#include <mutex>
#include <string>

#include "communication/peers.h"
#include "cuda/nccl_functions.h"

namespace sgtc::runtime::cuda {

class Nccl {
 public:
  /// Loads the library. What it reads from the environment is set first, so that runs repeat bit
  /// for bit; variables that are there already stay. Dies if there is no library or it is too old.
  /// SGTC_NCCL_LIBRARY names another library to load. The peers must outlive this.
  explicit Nccl(const Peers& peers);
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  NcclFunctions functions;

  /// "2.28.9"
  std::string version() const;

  /// Dies, naming the call and this rank, unless the result is success, or `kNcclInProgress`: what
  /// was begun is then for `complete`.
  void check(int result, const char* call, NcclCommunicator communicator = nullptr) const;
  /// Returns when what was begun on the communicator has been done or put into its stream. Ends the
  /// process when a peer is lost meanwhile.
  void complete(NcclCommunicator communicator, const char* call) const;
  /// Dies if the communicator has failed since. A thread that watches calls it now and then.
  void look_at(NcclCommunicator communicator) const;

  /// Gives the job time to notice that a peer is lost, which ends the process: what fails here is
  /// then most likely a consequence.
  void await_loss() const;

  /// For the time of a call, or of several that belong together.
  std::unique_lock<std::mutex> lock() const { return std::unique_lock<std::mutex>(mutex_); }

 private:
  void load();
  int version_number() const;
  [[noreturn]] void fail(int result, const std::string& call, NcclCommunicator communicator) const;

  const Peers& peers_;
  std::string path_;  // of the library
  mutable std::mutex mutex_;
};

/// Calls a function of NCCL: SGTC_NCCL(nccl, ncclGroupStart()).
#define SGTC_NCCL(nccl, call) (nccl).check((nccl).functions.call, #call)

}  // namespace sgtc::runtime::cuda
