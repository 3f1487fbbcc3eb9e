// Communication between ranks of several hosts, through the plugin libsgtc_gloo.so.
//
// Every group that spans hosts takes this way as a whole, also between those of its members that
// share a host.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gloo_plugin.h"
#include "groups.h"
#include "rank_communicators.h"

namespace sgtc::runtime {

class GlooNetwork {
 public:
  /// Host-side data of all ranks of the job, in rank order; called by all of them together.
  using AllGather = std::function<std::vector<std::string>(std::string_view)>;

  /// Connects `rank` with all that it shares a group with. A collective of all `ranks` ranks, which
  /// must give the same groups. The network is that of the interface SGTC_INTERFACE, or else the
  /// one by which this process reaches the host `master`. Dies with a remedy if the plugin is
  /// missing or a peer cannot be reached.
  GlooNetwork(const std::vector<RankGroup>& groups, int64_t rank, int64_t ranks,
              const std::string& master, const AllGather& all_gather, Watch& watch);
  GlooNetwork(const GlooNetwork&) = delete;
  GlooNetwork& operator=(const GlooNetwork&) = delete;
  ~GlooNetwork();

  /// Adds the communicators of this rank. This must outlive them and their operations.
  void add_communicators(RankCommunicators& communicators);

  const SgtcGlooPlugin& plugin() const { return plugin_; }
  void* handle() const { return handle_; }
  /// Ends the process after a function of the plugin failed on `communicator`: as a loss, if one
  /// becomes known within seconds, for a lost peer closes its connections first.
  [[noreturn]] void fail(const std::string& communicator) const;

 private:
  void connect(const AllGather& all_gather);

  const SgtcGlooPlugin& plugin_;
  std::vector<RankGroup> groups_;
  int64_t rank_;
  int64_t ranks_;
  Watch& watch_;
  void* handle_ = nullptr;
};

}  // namespace sgtc::runtime
