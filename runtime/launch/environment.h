// Which rank a process is, as the launcher that started it says in environment variables.
//
// Launchers nest, so variables of several may be present: mpirun and torchrun inside a Slurm step,
// torchrun inside a Kubeflow pod. The innermost one is right. Variables that only a launcher sets,
// for each process, come first; RANK and WORLD_SIZE without torchrun's own marks are also exported
// by hand in batch scripts and come after Slurm's. In order:
//
//   own        SGTC_RANK, SGTC_WORLD_SIZE (also from --rank, --world-size and from the launcher of
//              all local ranks, starter.h)
//   torchrun   RANK, WORLD_SIZE, … with TORCHELASTIC_RUN_ID
//   OpenMPI    OMPI_COMM_WORLD_*
//   MPI        PMI_RANK, PMI_SIZE, MPI_LOCALNRANKS (Hydra: MPICH, Intel MPI). srun --mpi=pmi2 sets
//              the first two as well: without the third a Slurm step is right
//   Slurm      a step: SLURM_STEP_ID, SLURM_PROCID, … Variables of the job alone make no rank
//   torchrun   RANK, WORLD_SIZE, … alone
//   Kubeflow   PET_*: one process per pod, which starts the ranks of its pod
//
// SGTC_MASTER (--master) names the address whichever launcher names the rank.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "failure.h"

namespace sgtc::runtime {

/// What a launcher says about this process.
struct LaunchEnvironment {
  std::string launcher;       // "Slurm", "torchrun", …; empty: started by hand
  int64_t rank = 0;           // of this process, or the first one that it starts
  int64_t size = 1;           // ranks of the job
  int64_t starts = 0;         // ranks that this process starts; 0: it is one itself
  bool one_host = false;      // all ranks are known to be on this machine
  std::string master;         // where rank 0 listens: a name or address; empty: not known
  int64_t port = 0;           // of rank 0; 0: not known
  std::string job;            // differs between jobs that run at the same time; empty: not known
  int inherited_socket = -1;  // a socket of rank 0 that listens already; -1: none
  std::string secret;         // shared by the ranks; empty: not known
  bool outside_step = false;  // in a Slurm job of several tasks, but not started by srun
};

using Variables = std::map<std::string, std::string>;

/// The environment variables of this process.
Variables process_variables();

/// Reads `variables`. `parent` is the process that started this one: it tells jobs of one host
/// apart where neither a name nor a port does. `plan_ranks` are divided among pods that do not say
/// how many they start. Fails for variables that cannot be read, are missing or contradict each
/// other.
MaybeFailure read_launch_environment(const Variables& variables, int64_t parent, int64_t plan_ranks,
                                     LaunchEnvironment& environment);

/// HOST, HOST:PORT or [IPV6]:PORT; the port is 0 if there is none. False if it is malformed.
bool parse_address(const std::string& text, std::string& host, int64_t& port);

}  // namespace sgtc::runtime
