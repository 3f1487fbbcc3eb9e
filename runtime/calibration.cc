#include "calibration.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "communication/segment.h"
#include "communication_calibration.h"
#include "durable_file.h"
#include "failure.h"
#include "kernel_calibration.h"
#include "launch/cpu_share.h"

namespace sgtc::runtime {
namespace {

using Json = nlohmann::json;

std::string cpu_name() {
  std::string name = "CPU";
  FILE* file = std::fopen("/proc/cpuinfo", "re");
  if (!file) return name;
  char line[256];
  while (std::fgets(line, sizeof line, file)) {
    const std::string text = line;
    const size_t colon = text.find(": ");
    if (text.rfind("model name", 0) != 0 || colon == std::string::npos) continue;
    name = text.substr(colon + 2);
    if (name.back() == '\n') name.pop_back();
    break;
  }
  std::fclose(file);
  return name;
}

Json json_of(const std::vector<MeasuredKernel>& kernels, int64_t units) {
  Json result = Json::object();
  for (const MeasuredKernel& measured : kernels) {
    const plan::Kernel& kernel = *measured.kernel;
    result[kernel.symbol] = {{"kind", kernel.kind},   {"flops", kernel.flops},
                             {"bytes", kernel.bytes}, {"blocks", kernel.blocks},
                             {"units", units},        {"seconds", measured.seconds}};
  }
  return result;
}

// The kernels of all ranks; of those that several measured, the mean.
Json gather_kernels(Job& job, const Json& own) {
  Json all = Json::object();
  std::map<std::string, std::vector<double>> seconds;
  for (const std::string& text : job.all_gather(own.dump())) {
    const Json of_rank = Json::parse(text);
    for (const auto& [symbol, kernel] : of_rank.items()) {
      all.emplace(symbol, kernel);
      seconds[symbol].push_back(kernel["seconds"].get<double>());
    }
  }
  for (const auto& [symbol, measured] : seconds) all[symbol]["seconds"] = mean(measured);
  return all;
}

Json header(const Job& job) {
  Json profile = {{"format", "sgtc-hardware"}, {"version", 1}};
  if (job.self().local_size < job.size()) profile["ranks_per_host"] = job.self().local_size;
  return profile;
}

// The preset of the compiler for what a program does not use.
std::string preset_like(const std::string& gpu, const std::string& target) {
  if (gpu.find("H100") != std::string::npos) return "h100";
  return target == "sm_80" ? "a100" : "h200";
}

// Of ranks that measured the same, the fastest: it waited the least for others.
Json gather_communications(Job& job, const std::vector<MeasuredCommunication>& own) {
  Json found = Json::array();
  for (const MeasuredCommunication& each : own) {
    found.push_back({each.kind, each.members, each.bytes, each.seconds});
  }
  std::map<std::pair<std::string, int64_t>, std::map<int64_t, double>> all;
  for (const std::string& text : job.all_gather(found.dump())) {
    for (const Json& each : Json::parse(text)) {
      auto& points = all[{each[0].get<std::string>(), each[1].get<int64_t>()}];
      const auto seconds = each[3].get<double>();
      const auto [point, is_new] = points.emplace(each[2].get<int64_t>(), seconds);
      point->second = std::min(point->second, seconds);
    }
  }
  Json result = Json::array();
  for (const auto& [key, sizes] : all) {
    Json points = Json::array();
    for (const auto& [bytes, seconds] : sizes) {
      points.push_back({{"bytes", bytes}, {"seconds", seconds}});
    }
    result.push_back({{"kind", key.first}, {"members", key.second}, {"points", points}});
  }
  return result;
}

Json profile_of_gpu(Job& job, const Measurements& measured, const std::string& target) {
  Json profile = header(job);
  profile["name"] = measured.hardware;
  profile["device"] = "gpu";
  profile["preset"] = preset_like(measured.hardware, target);
  profile["units"] = measured.units;
  profile["kernels"] = gather_kernels(job, json_of(measured.kernels, measured.units));
  profile["communications"] = gather_communications(job, measured.communications);
  return profile;
}

// What is in memory between steps is not what a kernel reads in a step. Where it has subnormal
// numbers, operations take a hundred times as long; while this lives they count as zeros here and
// in threads that are started.
class SubnormalsAreZeros {
 public:
  SubnormalsAreZeros() : before_(__builtin_ia32_stmxcsr()) {
    constexpr unsigned kFlushToZero = 1U << 15, kDenormalsAreZeros = 1U << 6;
    __builtin_ia32_ldmxcsr(before_ | kFlushToZero | kDenormalsAreZeros);
  }
  SubnormalsAreZeros(const SubnormalsAreZeros&) = delete;
  SubnormalsAreZeros& operator=(const SubnormalsAreZeros&) = delete;
  ~SubnormalsAreZeros() { __builtin_ia32_ldmxcsr(before_); }

 private:
  unsigned before_;
};

class CpuCalibration {
 public:
  CpuCalibration(const Program& program, Job& job, const Session& session,
                 RankCommunicators* communicators, const std::vector<int>& cpus, int64_t threads)
      : program_(program),
        job_(job),
        session_(session),
        communicators_(communicators),
        threads_(threads),
        host_cpus_(count_host_cpus(cpus)) {}

  Json run() {
    Json profile = header(job_);
    profile["name"] = cpu_name();
    profile["device"] = "cpu";
    profile["units"] = host_cpus_;
    profile["eager_bytes"] = kRingBytes;
    const SubnormalsAreZeros mode;
    ThreadPool threads(threads_);
    profile["kernels"] = kernels(threads);
    profile["communications"] = communications(threads);
    return profile;
  }

 private:
  // CPUs of this rank's host that the job may use.
  int64_t count_host_cpus(const std::vector<int>& cpus) {
    const std::vector<std::string> all = job_.all_gather(Json(cpus).dump());
    std::set<int> found;
    for (size_t rank = 0; rank < all.size(); ++rank) {
      if (job_.members()[rank].node != job_.self().node) continue;
      for (const Json& cpu : Json::parse(all[rank])) found.insert(cpu.get<int>());
    }
    return static_cast<int64_t>(found.size());
  }

  // As many ranks at once as the host's CPUs can run; then the others. All where ranks of one
  // thread are more than CPUs.
  Json kernels(ThreadPool& threads) {
    const bool crowded = threads_ == 1 && !job_.has_own_cpu();
    const int64_t at_once =
        crowded ? job_.self().local_size : std::max<int64_t>(1, host_cpus_ / threads_);
    int64_t waves = 1;
    for (const Member& member : job_.members()) {
      waves = std::max(waves, member.local_rank / at_once + 1);
    }
    Json own = Json::object();
    for (int64_t wave = 0; wave < waves; ++wave) {
      job_.barrier();
      if (job_.self().local_rank / at_once == wave) {
        own = json_of(measure_kernels(program_, session_, threads, crowded), threads_);
      }
    }
    return gather_kernels(job_, own);
  }

  Json communications(ThreadPool& threads) {
    Json result = Json::array();
    if (!communicators_) return result;
    Executor executor(threads, communicators_);
    for (const CommunicationCase& each : communication_cases(session_.plan())) {
      job_.barrier();
      Json points = Json::array();
      if (each.includes(session_.coordinates())) {
        for (const auto& [bytes, seconds] :
             measure_communication(each, session_.coordinates(), *communicators_, executor)) {
          points.push_back({{"bytes", bytes}, {"seconds", seconds}});
        }
      }
      const bool measures = each.measures(session_.coordinates());
      for (const std::string& text : job_.all_gather(measures ? points.dump() : "")) {
        if (text.empty()) continue;
        result.push_back(
            {{"kind", each.kind}, {"members", each.members}, {"points", Json::parse(text)}});
      }
    }
    return result;
  }

  const Program& program_;
  Job& job_;
  const Session& session_;
  RankCommunicators* communicators_;
  int64_t threads_;
  int64_t host_cpus_;
};

}  // namespace

void calibrate(const Program& program, Job& job, Session& session, RankCommunicators* communicators,
               const std::vector<int>& cpus, int64_t threads, const std::string& path) {
  bind_to_cpus(cpus);  // the session bound this thread to one of them
  const std::optional<Measurements> of_device = session.device().measure();
  const Json profile =
      of_device ? profile_of_gpu(job, *of_device, session.plan().target)
                : CpuCalibration(program, job, session, communicators, cpus, threads).run();
  if (job.rank() != 0) return;
  const std::string text = profile.dump(1) + "\n";
  DurableFile file;
  require(file.create(path));
  require(file.write(text.data(), static_cast<int64_t>(text.size())));
  require(file.finish());
  std::printf("%zu kernels and %zu communications measured: %s\n", profile["kernels"].size(),
              profile["communications"].size(), path.c_str());
}

}  // namespace sgtc::runtime
