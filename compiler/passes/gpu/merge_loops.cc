#include "passes/gpu/merge_loops.h"

#include <algorithm>
#include <bit>
#include <sstream>
#include <utility>

#include "support/diagnostics.h"
#include "support/sha256.h"

namespace sgtc::gpu {
namespace {

// Steps at once of a sum whose length is not known: four accesses of 32 bytes.
constexpr int64_t kTogether = 4;
// The most blocks of a launch; a grid of any size computes all.
constexpr int64_t kMostBlocks = INT32_MAX;

template <class Visit>
void for_each_index(LoopNest& nest, const Visit& visit) {
  for (Expression& expression : nest.expressions) {
    visit(expression.index);
    for (Guard& guard : expression.guards) visit(guard.index);
  }
  for (Store& store : nest.stores) visit(store.index);
}

bool varies_in_items(const LoopNest& nest) { return !nest.atoms.empty() && !nest.atoms[0].reduced; }

// A sum of everything, in one sweep.
bool varies_in_steps(const LoopNest& nest) {
  const auto is_plain = [](const Expression& expression) {
    return expression.kind != Expression::Kind::kReduce || expression.operands.size() == 1;
  };
  const auto is_of_row = [&](const Store& store) {
    return store.index.is_constant() &&
           nest.expressions[static_cast<size_t>(store.value)].level != Level::kElement;
  };
  return nest.order == ReductionOrder::kLanes && nest.atoms.size() == 1 && nest.sweeps == 1 &&
         std::all_of(nest.expressions.begin(), nest.expressions.end(), is_plain) &&
         std::all_of(nest.stores.begin(), nest.stores.end(), is_of_row);
}

// The nest without what an instance's row of the table says.
LoopNest without_extent(LoopNest nest) {
  for (NestArgument& argument : nest.arguments) argument.elements = 0;
  if (varies_in_items(nest) || varies_in_steps(nest)) nest.atoms[0].extent = 0;
  return nest;
}

// The expressions without sizes.
LoopNest without_sizes(LoopNest nest) {
  for (NestArgument& argument : nest.arguments) argument.elements = 0;
  nest.atoms.clear();
  nest.vector_begin = 0;
  for_each_index(nest, [](AffineIndex& index) { index = {}; });
  for (Expression& expression : nest.expressions) {
    for (Guard& guard : expression.guards) guard.low = guard.high = 0;
  }
  return nest;
}

std::string text_of(const std::vector<KernelArgument>& arguments) {
  std::ostringstream out;
  for (const KernelArgument& argument : arguments) {
    out << static_cast<int>(argument.mode)
        << to_string(Shape(argument.may_alias.begin(), argument.may_alias.end()));
  }
  return out.str();
}

bool can_merge(const KernelSpec& kernel) {
  const auto is_value = [](const KernelArgument& argument) {
    return argument.kind == KernelArgument::Kind::kValue;
  };
  return kernel.kind == "loop" && kernel.merged == nullptr && kernel.launch.threads > 0 &&
         kernel.checked_node == 0 && kernel.nest.order != ReductionOrder::kSequential &&
         std::all_of(kernel.arguments.begin(), kernel.arguments.end(), is_value);
}

std::string key_text(const LoopBody& body) {
  std::ostringstream out;
  out << "lanes " << body.mapping.lanes << " slices " << body.mapping.slices << "\n"
      << to_text(without_extent(body.kernel.nest));
  return out.str();
}

LoopBody body_of(const KernelSpec& kernel, int64_t threads) {
  LoopBody body{kernel, map_threads(kernel.nest), varies_in_steps(kernel.nest)};
  body.mapping.threads = threads;
  if (body.varies_in_steps) {
    body.mapping.is_kept = false;
    body.mapping.together = kTogether;
  }
  return body;
}

// Lets a body serve another loop too.
void widen(LoopBody& body, const LoopBody& other) {
  const bool is_larger =
      body.mapping.items < other.mapping.items || body.mapping.steps < other.mapping.steps;
  if (is_larger) body = other;
}

class Merger {
 public:
  explicit Merger(const std::vector<const KernelSpec*>& members) : members_(members) {
    SGTC_CHECK(!members.empty(), "there is no loop to merge");
  }

  MergedKernel run() {
    KernelSpec& kernel = result_.kernel;
    kernel.kind = "loop";
    kernel.launch = widest_launch();
    for (const KernelSpec* member : members_) add_instance(*member);
    add_arguments();
    add_table();
    kernel.launch.indirect = true;
    kernel.blocks = std::min(loops_.blocks, kMostBlocks);
    add_costs();
    kernel.symbol = "k_loop_" + sha256_hex(code_text()).substr(0, 16);
    kernel.merged = std::make_shared<const MergedLoops>(std::move(loops_));
    return std::move(result_);
  }

 private:
  // Blocks of the others have more items than they would have alone.
  GpuLaunch widest_launch() const {
    const auto widest =
        std::max_element(members_.begin(), members_.end(), [](const auto* one, const auto* other) {
          return one->launch.threads < other->launch.threads;
        });
    return (*widest)->launch;
  }

  void add_instance(const KernelSpec& member) {
    SGTC_CHECK(member.arguments.size() == members_[0]->arguments.size(),
               "loops of different forms are to be merged");
    const LoopBody body = body_of(member, result_.kernel.launch.threads);
    const std::string key = key_text(body);
    const auto found = std::find(keys_.begin(), keys_.end(), key);
    const auto number = found - keys_.begin();
    if (found == keys_.end()) {
      keys_.push_back(key);
      loops_.bodies.push_back(body);
    } else {
      widen(loops_.bodies[static_cast<size_t>(number)], body);
    }
    loops_.instances.push_back({number, body.mapping.items, body.mapping.steps, loops_.blocks});
    loops_.blocks += body.mapping.blocks();
  }

  bool is_shared(size_t argument) const {
    return std::all_of(members_.begin(), members_.end(), [&](const KernelSpec* member) {
      const KernelArgument& own = member->arguments[argument];
      return own.mode == AccessMode::kRead && own.value == members_[0]->arguments[argument].value;
    });
  }

  void add_arguments() {
    const size_t count = members_[0]->arguments.size();
    std::vector<size_t> own;
    std::vector<size_t> shared;
    for (size_t a = 0; a < count; ++a) (is_shared(a) ? shared : own).push_back(a);
    loops_.arguments.resize(count);
    const auto stride = static_cast<int64_t>(own.size());
    for (size_t i = 0; i < own.size(); ++i) {
      loops_.arguments[own[i]] = {static_cast<int64_t>(i), stride};
    }
    for (size_t i = 0; i < shared.size(); ++i) {
      const auto at = members_.size() * own.size() + i;
      loops_.arguments[shared[i]] = {static_cast<int64_t>(at), 0};
    }
    for (size_t m = 0; m < members_.size(); ++m) {
      for (const size_t a : own) add_argument(m, a);
    }
    for (const size_t a : shared) add_argument(0, a);
  }

  void add_argument(size_t member, size_t argument) {
    KernelArgument added = members_[member]->arguments[argument];
    for (int32_t& alias : added.may_alias) {
      const InstanceArgument& place = loops_.arguments[static_cast<size_t>(alias)];
      alias = static_cast<int32_t>(place.first + static_cast<int64_t>(member) * place.stride);
    }
    result_.kernel.arguments.push_back(std::move(added));
    result_.origins.push_back({member, argument});
  }

  void add_table() {
    std::vector<int64_t> words;
    for (const LoopInstance& instance : loops_.instances) words.push_back(instance.first_block);
    words.resize(static_cast<size_t>(search_length(loops_)), INT64_MAX);
    for (const LoopInstance& instance : loops_.instances) {
      words.insert(words.end(), {instance.body, instance.items, instance.steps});
    }
    const std::span<const std::byte> bytes = std::as_bytes(std::span(words));
    auto table =
        std::make_shared<Literal>(DType::kUInt8, Shape{static_cast<int64_t>(bytes.size())});
    std::copy(bytes.begin(), bytes.end(), table->mutable_bytes().begin());
    result_.kernel.table = std::move(table);
    result_.kernel.arguments.push_back(
        {KernelArgument::Kind::kTable, kNone, AccessMode::kRead, {}});
  }

  void add_costs() {
    KernelSpec& kernel = result_.kernel;
    for (const KernelSpec* member : members_) {
      kernel.flops += member->flops;
      kernel.bytes += member->bytes;
      for (const std::string& source : member->sources) {
        if (std::find(kernel.sources.begin(), kernel.sources.end(), source) ==
            kernel.sources.end()) {
          kernel.sources.push_back(source);
        }
      }
    }
  }

  // Everything that decides the code, and the table, by which costs and grid differ.
  std::string code_text() const {
    std::ostringstream out;
    out << "merged " << loops_.blocks << " threads " << result_.kernel.launch.threads << " table "
        << sha256_hex(result_.kernel.table->bytes()) << "\n";
    for (size_t i = 0; i < loops_.bodies.size(); ++i) {
      out << keys_[i] << to_text(loops_.bodies[i].kernel.nest);
    }
    for (const InstanceArgument& argument : loops_.arguments) {
      out << argument.first << " " << argument.stride << "\n";
    }
    out << text_of(members_[0]->arguments);
    return out.str();
  }

  const std::vector<const KernelSpec*>& members_;
  std::vector<std::string> keys_;  // of the bodies
  MergedLoops loops_;
  MergedKernel result_;
};

}  // namespace

int64_t search_length(const MergedLoops& loops) {
  return static_cast<int64_t>(std::bit_ceil(loops.instances.size()));
}

std::optional<MergeKey> merge_key(const KernelSpec& kernel) {
  if (!can_merge(kernel)) return std::nullopt;
  const LoopBody body = body_of(kernel, kernel.launch.threads);
  if (body.mapping.blocks() == 0) return std::nullopt;
  MergeKey key;
  key.form = text_of(kernel.arguments) + "\n" + to_text(without_sizes(kernel.nest));
  key.body = key_text(body);
  return key;
}

MergedKernel merge_loops(const std::vector<const KernelSpec*>& members) {
  return Merger(members).run();
}

}  // namespace sgtc::gpu
