#include "launch/environment.h"

#include <unistd.h>

#include <cctype>
#include <initializer_list>
#include <limits>

#include "launch/node_list.h"

namespace sgtc::runtime {
namespace {

constexpr int64_t kMostRanks = 1 << 20;
constexpr int64_t kMostFiles = std::numeric_limits<int>::max();
constexpr int64_t kPorts = 65536;
constexpr int64_t kFirstJobPort = 10000;  // below the ports that systems hand out themselves
constexpr int64_t kJobPorts = 20000;
constexpr uint64_t kStepsPerJob = 131;  // ports of consecutive jobs and their steps differ
constexpr int64_t kFirstSpecialStep = 0xfffffff0;  // batch scripts and interactive shells

// Reads integers of the environment and remembers the first failure.
class VariableReader {
 public:
  explicit VariableReader(const Variables& variables) : variables_(variables) {}

  bool has(const std::string& name) const { return !text(name).empty(); }

  // The value, or empty.
  std::string text(const std::string& name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() ? "" : found->second;
  }

  // The first of `names` that is set.
  std::string first_of(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (has(name)) return name;
    }
    return *names.begin();
  }

  // An integer in [least, end) that must be there; `least` after a failure.
  int64_t number(const std::string& name, int64_t least, int64_t end) {
    const std::string value = text(name);
    int64_t result = 0;
    if (parse(value, result) && result >= least && result < end) return result;
    if (value.empty()) {
      fail({name, "is not set, although other variables of its launcher are",
            "set it, or unset the others"});
    } else {
      fail({name,
            "expected an integer from " + std::to_string(least) + " to " + std::to_string(end - 1) +
                ", found '" + value + "'",
            {}});
    }
    return least;
  }

  int64_t number_or(const std::string& name, int64_t least, int64_t end, int64_t otherwise) {
    return has(name) ? number(name, least, end) : otherwise;
  }

  // The rank in `rank` and the number of ranks in `size`.
  void rank_and_size(const std::string& rank, const std::string& size,
                     LaunchEnvironment& environment) {
    environment.size = number(size, 1, kMostRanks + 1);
    environment.rank = number(rank, 0, environment.size);
  }

  void fail(Failure failure) {
    if (!failure_) failure_ = std::move(failure);
  }
  const MaybeFailure& failure() const { return failure_; }

 private:
  static bool parse(const std::string& text, int64_t& result) {
    result = 0;
    for (char c : text) {
      if (!std::isdigit(static_cast<unsigned char>(c))) return false;
      result = 10 * result + (c - '0');
      if (result > std::numeric_limits<uint32_t>::max()) return false;
    }
    return !text.empty();
  }

  const Variables& variables_;
  MaybeFailure failure_;
};

// FNV-1a.
uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

int64_t job_port(uint64_t number) {
  return kFirstJobPort + static_cast<int64_t>(number % static_cast<uint64_t>(kJobPorts));
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

void read_address(VariableReader& reader, const std::string& name, LaunchEnvironment& environment) {
  if (!reader.has(name)) return;
  int64_t port = 0;
  if (!parse_address(reader.text(name), environment.master, port)) {
    reader.fail({name, "expected HOST or HOST:PORT, found '" + reader.text(name) + "'", {}});
  }
  if (port != 0) environment.port = port;
}

void read_own(VariableReader& reader, LaunchEnvironment& environment) {
  environment.launcher = "SGTC_RANK";
  reader.rank_and_size("SGTC_RANK", "SGTC_WORLD_SIZE", environment);
  environment.job = reader.text("SGTC_JOB");
  environment.inherited_socket =
      static_cast<int>(reader.number_or("SGTC_LISTEN_SOCKET", 0, kMostFiles, -1));
}

void read_torchrun(VariableReader& reader, LaunchEnvironment& environment) {
  environment.launcher = "torchrun";
  reader.rank_and_size("RANK", "WORLD_SIZE", environment);
  const int64_t local_size =
      reader.number_or("LOCAL_WORLD_SIZE", 1, environment.size + 1, environment.size);
  reader.number_or("LOCAL_RANK", 0, local_size, 0);
  environment.one_host = reader.has("LOCAL_WORLD_SIZE") && local_size == environment.size;
  environment.master = reader.text("MASTER_ADDR");
  environment.port = reader.number_or("MASTER_PORT", 1, kPorts, 0);
  environment.job =
      "torchrun-" + reader.text("TORCHELASTIC_RUN_ID") + "-" + reader.text("MASTER_PORT");
  // torchrun's own store listens at MASTER_PORT.
  if (reader.text("TORCHELASTIC_USE_AGENT_STORE") == "True" && environment.port > 0) {
    environment.port = environment.port == kPorts - 1 ? environment.port - 1 : environment.port + 1;
  }
}

// Slurm's names of the job and of the hosts; empty outside of a job.
void read_slurm_job(VariableReader& reader, LaunchEnvironment& environment) {
  if (!reader.has("SLURM_JOB_ID")) return;
  const int64_t job = reader.number("SLURM_JOB_ID", 0, std::numeric_limits<uint32_t>::max());
  const int64_t step =
      reader.number_or("SLURM_STEP_ID", 0, std::numeric_limits<uint32_t>::max(), 0);
  environment.job = "slurm-" + std::to_string(job) + "." + std::to_string(step);
  environment.port =
      job_port(static_cast<uint64_t>(job) * kStepsPerJob + static_cast<uint64_t>(step));
  const std::string list =
      reader.first_of({"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  if (!reader.has(list) || environment.one_host) return;
  if (MaybeFailure failure = first_host(reader.text(list), environment.master)) {
    reader.fail({list + ": " + failure->object, failure->problem, failure->remedy});
  }
}

void read_slurm(VariableReader& reader, LaunchEnvironment& environment) {
  environment.launcher = "Slurm";
  reader.rank_and_size("SLURM_PROCID", reader.first_of({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}),
                       environment);
  reader.number_or("SLURM_LOCALID", 0, environment.size, 0);
  const std::string nodes = reader.first_of({"SLURM_STEP_NUM_NODES", "SLURM_NNODES"});
  environment.one_host = reader.number_or(nodes, 1, kMostRanks, 0) == 1;
  read_slurm_job(reader, environment);
}

// The local size in `name` must not exceed the size; equal: one host.
void read_mpi_hosts(VariableReader& reader, const std::string& name,
                    LaunchEnvironment& environment) {
  environment.one_host = reader.number_or(name, 1, environment.size + 1, 0) == environment.size;
  read_slurm_job(reader, environment);
}

void read_open_mpi(VariableReader& reader, LaunchEnvironment& environment) {
  environment.launcher = "OpenMPI";
  reader.rank_and_size("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", environment);
  read_mpi_hosts(reader, "OMPI_COMM_WORLD_LOCAL_SIZE", environment);
  const std::string job = reader.first_of({"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"});
  if (reader.has(job)) environment.job += "openmpi-" + reader.text(job);
}

void read_hydra(VariableReader& reader, LaunchEnvironment& environment) {
  environment.launcher = "MPI";
  reader.rank_and_size("PMI_RANK", "PMI_SIZE", environment);
  read_mpi_hosts(reader, "MPI_LOCALNRANKS", environment);
}

void read_kubeflow(VariableReader& reader, int64_t plan_ranks, LaunchEnvironment& environment) {
  environment.launcher = "Kubeflow";
  const int64_t nodes = reader.number_or("PET_NNODES", 1, kMostRanks, 1);
  const std::string per_node = reader.text("PET_NPROC_PER_NODE");
  const bool divides =
      per_node.empty() || per_node == "auto" || per_node == "cpu" || per_node == "gpu";
  if (divides && plan_ranks % nodes != 0) {
    reader.fail({"PET_NNODES",
                 std::to_string(nodes) + " pods cannot share " + std::to_string(plan_ranks) +
                     " ranks equally",
                 "set PET_NPROC_PER_NODE, or change the number of pods"});
  }
  environment.starts =
      divides ? plan_ranks / nodes : reader.number("PET_NPROC_PER_NODE", 1, kMostRanks / nodes + 1);
  const int64_t node = nodes == 1 ? reader.number_or("PET_NODE_RANK", 0, nodes, 0)
                                  : reader.number("PET_NODE_RANK", 0, nodes);
  environment.size = nodes * environment.starts;
  environment.rank = node * environment.starts;
  environment.one_host = nodes == 1;
  environment.master = reader.text("PET_MASTER_ADDR");
  environment.port = reader.number_or("PET_MASTER_PORT", 1, kPorts, 0);
  if (nodes > 1 && environment.master.empty()) {
    reader.fail({"PET_MASTER_ADDR", "is not set", "set it to the address of the first pod"});
  }
  if (environment.starts == 1) environment.starts = 0;
}

// A step of the job, not its batch script or an interactive shell.
bool in_slurm_step(VariableReader& reader) {
  return reader.has("SLURM_STEP_ID") &&
         reader.number("SLURM_STEP_ID", 0, int64_t{1} << 32) < kFirstSpecialStep;
}

void read_launcher(VariableReader& reader, int64_t plan_ranks, LaunchEnvironment& environment) {
  const bool pods = reader.has("PET_NNODES") || reader.has("PET_NPROC_PER_NODE");
  const bool step = in_slurm_step(reader);
  if (reader.has("SGTC_RANK") || reader.has("SGTC_WORLD_SIZE")) {
    read_own(reader, environment);
  } else if (reader.has("RANK") && reader.has("TORCHELASTIC_RUN_ID")) {
    read_torchrun(reader, environment);
  } else if (reader.has("OMPI_COMM_WORLD_RANK")) {
    read_open_mpi(reader, environment);
  } else if (reader.has("PMI_RANK") && (!step || reader.has("MPI_LOCALNRANKS"))) {
    read_hydra(reader, environment);
  } else if (step) {
    read_slurm(reader, environment);
  } else if (reader.has("RANK") && (!pods || reader.has("LOCAL_RANK"))) {
    read_torchrun(reader, environment);
  } else if (pods) {
    read_kubeflow(reader, plan_ranks, environment);
  } else if (reader.has("SLURM_JOB_ID")) {
    environment.outside_step = reader.number_or("SLURM_NTASKS", 1, kMostRanks, 1) > 1;
  }
}

// What follows from the rest.
void complete(int64_t parent, LaunchEnvironment& environment) {
  if (is_loopback(environment.master)) environment.one_host = true;
  if (environment.job.empty() && environment.one_host) {
    environment.job = environment.port > 0 ? "port-" + std::to_string(environment.port)
                                           : "parent-" + std::to_string(parent);
  }
  if (environment.one_host && environment.master.empty()) environment.master = "127.0.0.1";
  if (environment.port == 0 && environment.inherited_socket < 0) {
    environment.port = job_port(hash_of(environment.job));
  }
}

}  // namespace

Variables process_variables() {
  Variables variables;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != text.npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return variables;
}

bool parse_address(const std::string& text, std::string& host, int64_t& port) {
  size_t end = text.find(':');
  if (text.starts_with('[')) {
    const size_t bracket = text.find(']');
    if (bracket == text.npos) return false;
    host = text.substr(1, bracket - 1);
    end = bracket + 1 == text.size() ? text.npos : bracket + 1;
    if (end != text.npos && text[end] != ':') return false;
  } else if (end != text.npos && text.find(':', end + 1) != text.npos) {
    host = text;  // an IPv6 address without port
    end = text.npos;
  } else {
    host = text.substr(0, end);
  }
  port = 0;
  if (host.empty()) return false;
  if (end == text.npos) return true;
  for (char c : text.substr(end + 1)) {
    if (!std::isdigit(static_cast<unsigned char>(c)) || port >= kPorts) return false;
    port = 10 * port + (c - '0');
  }
  return port > 0 && port < kPorts;
}

MaybeFailure read_launch_environment(const Variables& variables, int64_t parent, int64_t plan_ranks,
                                     LaunchEnvironment& environment) {
  environment = {};
  VariableReader reader(variables);
  read_launcher(reader, plan_ranks, environment);
  read_address(reader, "SGTC_MASTER", environment);
  environment.secret = reader.text("SGTC_SECRET");
  if (!environment.launcher.empty()) complete(parent, environment);
  return reader.failure();
}

}  // namespace sgtc::runtime
