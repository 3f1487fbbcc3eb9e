// Which rank a process is, as the launcher that started it says in environment variables.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace sgtc::runtime {

/// What the variables of a launcher say about this process.
struct LaunchEnvironment {
  std::string launcher;  // "Slurm", "torchrun", …; empty: started by hand
  int64_t rank = 0;
  int64_t size = 1;          // ranks of the job
  int64_t local_size = 0;    // ranks on this machine; 0: not known
  std::string master;        // where rank 0 listens: a name or address; empty: not known
  int64_t port = 0;          // of rank 0; 0: not known
  std::string job;           // differs between jobs that run at the same time; may be empty
  int inherited_socket = -1; // a socket that listens already, of rank 0; -1: none
  std::string secret;        // shared by the ranks; empty: not known
};

}  // namespace sgtc::runtime
