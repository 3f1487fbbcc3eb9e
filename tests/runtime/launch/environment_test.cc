#include "runtime/launch/environment.h"

#include "support/catch.h"

namespace sgtc::runtime {
namespace {

constexpr int64_t kParent = 77;

LaunchEnvironment read(const Variables& variables, int64_t plan_ranks = 1) {
  LaunchEnvironment environment;
  const MaybeFailure failure = read_launch_environment(variables, kParent, plan_ranks, environment);
  INFO((failure ? failure->object + ": " + failure->problem : ""));
  CHECK_FALSE(failure);
  return environment;
}

// The object of the failure.
std::string refused(const Variables& variables, int64_t plan_ranks = 1) {
  LaunchEnvironment environment;
  const MaybeFailure failure = read_launch_environment(variables, kParent, plan_ranks, environment);
  return failure ? failure->object : "";
}

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

const Variables kSlurmStep = {{"SLURM_JOB_ID", "12"},          {"SLURM_STEP_ID", "3"},
                              {"SLURM_PROCID", "2"},           {"SLURM_STEP_NUM_TASKS", "4"},
                              {"SLURM_NTASKS", "8"},           {"SLURM_LOCALID", "0"},
                              {"SLURM_STEP_NUM_NODES", "2"},   {"SLURM_STEP_NODELIST", "n[08-11]"},
                              {"SLURM_JOB_NODELIST", "m[1-9]"}};

}  // namespace

TEST_CASE("without a launcher a process is alone") {
  const LaunchEnvironment environment = read({{"HOME", "/root"}});
  CHECK(environment.launcher.empty());
  CHECK(environment.size == 1);
  CHECK_FALSE(environment.outside_step);
}

TEST_CASE("own variables name the rank") {
  const LaunchEnvironment environment = read(with(kSlurmStep, {{"SGTC_RANK", "1"},
                                                               {"SGTC_WORLD_SIZE", "2"},
                                                               {"SGTC_MASTER", "10.0.0.1:1234"},
                                                               {"SGTC_SECRET", "abc"},
                                                               {"SGTC_LISTEN_SOCKET", "5"}}));
  CHECK(environment.rank == 1);
  CHECK(environment.size == 2);
  CHECK(environment.master == "10.0.0.1");
  CHECK(environment.port == 1234);
  CHECK(environment.secret == "abc");
  CHECK(environment.inherited_socket == 5);
  CHECK_FALSE(environment.one_host);
}

TEST_CASE("a Slurm step wins over its job") {
  const LaunchEnvironment environment = read(kSlurmStep);
  CHECK(environment.launcher == "Slurm");
  CHECK(environment.rank == 2);
  CHECK(environment.size == 4);
  CHECK(environment.master == "n08");
  CHECK(environment.job == "slurm-12.3");
  CHECK_FALSE(environment.one_host);
}

TEST_CASE("ports of Slurm jobs and steps that may run together differ") {
  const int64_t port = read(kSlurmStep).port;
  CHECK(port >= 10000);
  CHECK(port < 30000);
  CHECK(port != read(with(kSlurmStep, {{"SLURM_JOB_ID", "13"}})).port);
  CHECK(port != read(with(kSlurmStep, {{"SLURM_STEP_ID", "4"}})).port);
}

TEST_CASE("a Slurm step on one node meets at the loopback address") {
  const LaunchEnvironment environment =
      read(with(kSlurmStep, {{"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_STEP_NODELIST", "n08"}}));
  CHECK(environment.one_host);
  CHECK(environment.master == "127.0.0.1");
}

TEST_CASE("an explicit address wins over a launcher's") {
  const LaunchEnvironment environment = read(with(kSlurmStep, {{"SGTC_MASTER", "other:99"}}));
  CHECK(environment.rank == 2);
  CHECK(environment.master == "other");
  CHECK(environment.port == 99);
  CHECK(read(with(kSlurmStep, {{"SGTC_MASTER", "other"}})).port == read(kSlurmStep).port);
}

TEST_CASE("a Slurm batch script is no rank") {
  const Variables batch = {{"SLURM_JOB_ID", "12"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}};
  CHECK(read(batch).outside_step);
  CHECK(read(batch).launcher.empty());
  CHECK(read(with(batch, {{"SLURM_STEP_ID", "4294967291"}})).outside_step);
  CHECK_FALSE(read(with(batch, {{"SLURM_NTASKS", "1"}})).outside_step);
}

TEST_CASE("OpenMPI and Hydra on one host") {
  const LaunchEnvironment open_mpi = read({{"OMPI_COMM_WORLD_RANK", "1"},
                                           {"OMPI_COMM_WORLD_SIZE", "2"},
                                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  CHECK(open_mpi.launcher == "OpenMPI");
  CHECK(open_mpi.rank == 1);
  CHECK(open_mpi.one_host);
  CHECK(open_mpi.job == "parent-77");
  const LaunchEnvironment hydra = read(
      {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}});
  CHECK(hydra.launcher == "MPI");
  CHECK(hydra.rank == 3);
  CHECK(hydra.size == 4);
  CHECK_FALSE(hydra.one_host);
  CHECK(hydra.master.empty());
}

TEST_CASE("mpirun inside a Slurm step is the inner launcher") {
  const LaunchEnvironment environment =
      read(with(kSlurmStep, {{"PMI_RANK", "5"}, {"PMI_SIZE", "6"}, {"MPI_LOCALNRANKS", "3"}}));
  CHECK(environment.rank == 5);
  CHECK(environment.size == 6);
  CHECK(environment.master == "n08");
}

TEST_CASE("srun --mpi=pmi2 is Slurm") {
  const LaunchEnvironment environment =
      read(with(kSlurmStep, {{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}, {"SLURM_STEP_NUM_NODES", "1"}}));
  CHECK(environment.launcher == "Slurm");
  CHECK(environment.one_host);
}

TEST_CASE("torchrun") {
  const Variables torchrun = {{"RANK", "3"},           {"WORLD_SIZE", "4"},
                              {"LOCAL_RANK", "1"},     {"LOCAL_WORLD_SIZE", "2"},
                              {"MASTER_ADDR", "head"}, {"MASTER_PORT", "29500"}};
  const LaunchEnvironment environment = read(torchrun);
  CHECK(environment.launcher == "torchrun");
  CHECK(environment.rank == 3);
  CHECK(environment.master == "head");
  CHECK(environment.port == 29500);
  const Variables inside = {{"TORCHELASTIC_RUN_ID", "x"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
  CHECK(read(with(with(kSlurmStep, torchrun), inside)).rank == 3);
  CHECK(read(with(with(kSlurmStep, torchrun), inside)).port == 29501);
  CHECK(read(with(kSlurmStep, torchrun)).rank == 2);
}

TEST_CASE("a Kubeflow pod starts its ranks") {
  const Variables pod = {{"PET_NNODES", "2"},
                         {"PET_NPROC_PER_NODE", "3"},
                         {"PET_NODE_RANK", "1"},
                         {"PET_MASTER_ADDR", "job-0"},
                         {"PET_MASTER_PORT", "29400"}};
  const LaunchEnvironment environment = read(pod);
  CHECK(environment.launcher == "Kubeflow");
  CHECK(environment.starts == 3);
  CHECK(environment.rank == 3);
  CHECK(environment.size == 6);
  CHECK(environment.master == "job-0");
  CHECK(environment.port == 29400);
  CHECK(read(with(pod, {{"PET_MASTER_ADDR", "localhost"}})).job == "port-29400");
  // The v1 operator also sets RANK and WORLD_SIZE, which count pods.
  CHECK(read(with(pod, {{"RANK", "1"}, {"WORLD_SIZE", "2"}})).size == 6);
  CHECK(read(with(pod, {{"RANK", "1"}, {"WORLD_SIZE", "6"}, {"LOCAL_RANK", "1"}})).starts == 0);
  const Variables automatic = with(pod, {{"PET_NPROC_PER_NODE", "auto"}});
  CHECK(read(automatic, 8).starts == 4);
  CHECK(read(automatic, 2).starts == 0);
  CHECK(refused(automatic, 3) == "PET_NNODES");
}

TEST_CASE("variables that cannot be right are named") {
  CHECK(refused(with(kSlurmStep, {{"SLURM_PROCID", "4"}})) == "SLURM_PROCID");
  CHECK(refused(with(kSlurmStep, {{"SLURM_PROCID", ""}})) == "SLURM_PROCID");
  CHECK(refused(with(kSlurmStep, {{"SLURM_STEP_NUM_TASKS", "x"}})) == "SLURM_STEP_NUM_TASKS");
  CHECK(refused(with(kSlurmStep, {{"SLURM_STEP_NODELIST", "n[1-"}})) ==
        "SLURM_STEP_NODELIST: node list 'n[1-'");
  CHECK(refused({{"SGTC_RANK", "0"}}) == "SGTC_WORLD_SIZE");
  CHECK(refused({{"SGTC_RANK", "-1"}, {"SGTC_WORLD_SIZE", "2"}}) == "SGTC_RANK");
  CHECK(refused({{"SGTC_RANK", "99999999999999999999"}, {"SGTC_WORLD_SIZE", "2"}}) == "SGTC_RANK");
  CHECK(refused({{"SGTC_MASTER", "a:b"}}) == "SGTC_MASTER");
  CHECK(refused({{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}}) == "PMI_RANK");
  CHECK(refused({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "0"}}) ==
        "OMPI_COMM_WORLD_SIZE");
  CHECK(refused({{"RANK", "0"}}) == "WORLD_SIZE");
  CHECK(refused({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "2"}}) == "LOCAL_RANK");
  CHECK(refused({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "70000"}}) == "MASTER_PORT");
  CHECK(refused({{"PET_NNODES", "1:2"}}) == "PET_NNODES");
  CHECK(refused({{"PET_NNODES", "2"}, {"PET_NPROC_PER_NODE", "1"}}) == "PET_NODE_RANK");
}

TEST_CASE("addresses with and without port") {
  std::string host;
  int64_t port = -1;
  CHECK(parse_address("node1", host, port));
  CHECK((host == "node1" && port == 0));
  CHECK(parse_address("node1:80", host, port));
  CHECK((host == "node1" && port == 80));
  CHECK(parse_address("[fe80::1]:80", host, port));
  CHECK((host == "fe80::1" && port == 80));
  CHECK(parse_address("fe80::1", host, port));
  CHECK((host == "fe80::1" && port == 0));
  for (const char* text : {"", ":80", "a:", "a:0", "a:65536", "a:x", "[a", "[a]b"}) {
    INFO(text);
    CHECK_FALSE(parse_address(text, host, port));
  }
}

}  // namespace sgtc::runtime
