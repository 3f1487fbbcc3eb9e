// How the ranks of a job meet: all connect to rank 0, which lets in who proves to know the secret.
//
// After connecting, G (a guest) and H (the host, rank 0) exchange
//
//   G: hello        magic, protocol version, rank, nonce
//   H: challenge    protocol version, nonce
//   G: proof        HMAC(secret, "guest", version, rank, both nonces)
//   H: acceptance   HMAC(secret, "host", …)           or refusal, with the reason
//   G: introduction (introduction.h)
//   H: welcome      token and all introductions       or abort, with what all ranks shall print
//
// Both sides prove the secret and neither sends it; labels and nonces make answers useless
// elsewhere. The connection is not encrypted: the network is trusted with heartbeats and the like,
// not with letting strangers in.
//
// Whoever fails before the introduction (noise, silence, a wrong secret) is dropped and changes
// nothing for the others. But a wrong secret is most likely a mistake of the user: if all ranks
// that are still missing have failed that way and none comes for some seconds, the job ends.
// Whoever has proved the secret is a rank; if it does not fit, all ranks end with the same message
// at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/connection.h"
#include "launch/environment.h"
#include "launch/introduction.h"
#include "launch/job_options.h"

namespace sgtc::runtime {

/// A job that has met.
struct Meeting {
  std::string token;                  // random, equal on all ranks
  std::string master;                 // HOST:PORT of rank 0
  std::vector<Introduction> members;  // by rank
  /// Rank 0: by rank, the first one not open. Others: one, to rank 0.
  std::vector<Connection> connections;
};

/// Frames that are longer break a connection between ranks.
inline constexpr size_t kMostFrameBytes = size_t{1} << 28;

/// Rank 0: listens and returns when all ranks have joined. Dies if they do not fit or do not come.
Meeting host_rendezvous(const LaunchEnvironment& environment, const JobOptions& options,
                        const Introduction& self);

/// All other ranks: connect to rank 0, trying again until it is there. Dies likewise.
Meeting attend_rendezvous(const LaunchEnvironment& environment, const JobOptions& options,
                          const Introduction& self);

}  // namespace sgtc::runtime
