#include "driver/pipeline.h"

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "autodiff/differentiate.h"
#include "autodiff/optimizer.h"
#include "autodiff/take_gradients.h"
#include "codegen/target.h"
#include "cost/hardware.h"
#include "driver/choose_last_batch.h"
#include "driver/choose_optimizer.h"
#include "driver/emit.h"
#include "driver/kernel_code.h"
#include "driver/optimize.h"
#include "driver/other_steps.h"
#include "driver/pass_runner.h"
#include "driver/predict.h"
#include "import/import.h"
#include "import/import_update.h"
#include "import/model.h"
#include "link/executable.h"
#include "memory/assign_offsets.h"
#include "mesh/mesh.h"
#include "partition/partition.h"
#include "partition/place_evaluation.h"
#include "passes/form_kernels.h"
#include "passes/fuse.h"
#include "passes/prepack_weights.h"
#include "passes/recognize_attention.h"
#include "passes/row_weights.h"
#include "passes/separate_loss.h"
#include "plan/text.h"
#include "plan/verify.h"
#include "schedule/build_plan.h"
#include "search/beside_reductions.h"
#include "search/defer_gradients.h"
#include "search/fit_memory.h"
#include "shard/replicate.h"
#include "simulate/page.h"
#include "simulate/simulate.h"
#include "support/sha256.h"

namespace sgtc {
namespace {

/// The graphs of one plan, which other plans may share, and their kernels, which point to them.
struct Programs {
  std::shared_ptr<const Graph> train;
  std::shared_ptr<const EvaluationLoss> evaluation;
  PlanInput input;
  BuiltPlan built;      // with offsets
  WeightsBlob weights;  // of this plan and those before it
};

MemoryRequest memory_request(const Options& options) {
  MemoryRequest request{options.memory, Recompute::kAuto};
  if (options.recompute == "none") request.recompute = Recompute::kNone;
  if (options.recompute == "full") request.recompute = Recompute::kFull;
  return request;
}

KernelTarget kernel_target(const std::string& name) {
  if (name == kHopperTarget.name) return kHopperTarget;
  return name == kAmpereTarget.name ? kAmpereTarget : kCpuTarget;
}

LossAverage loss_average(const Options& options) {
  return options.loss_average == "exact" ? LossAverage::kExact : LossAverage::kMeanOfMeans;
}

ImportOptions import_options(const Options& options, const Dims& dims, int64_t replicas,
                             bool training) {
  ImportOptions result;
  for (const auto& [name, size] : dims) result.dims[name] = size;
  result.loss = options.loss;
  result.train = options.train;
  result.freeze = options.freeze;
  result.padding_index = options.padding_index;
  result.training = training;
  result.accepts_slow = options.on_unsupported == "fallback";
  result.max_tensors = options.max_tensors;
  result.micro_batches = options.micro_batches;
  result.replicas = replicas;
  result.gradients = append_gradients;
  return result;
}

/// Everything up to the plan's graphs.
class Compilation {
 public:
  Compilation(const Options& options, Diagnostics& diagnostics)
      : options_(options),
        diagnostics_(diagnostics),
        meshes_(parse_meshes(options.mesh)),
        kernel_target_(kernel_target(options.target)),
        hardware_(choose_hardware(options)) {}

  void run();

 private:
  OptimizedGraph training_graph(const Dims& dims, const Mesh& mesh, PassRunner& passes);
  Graph find_attention(Graph graph, PassRunner& passes) const;
  bool prepacks_weights() const;
  Differentiated with_gradients(const Graph& imported, Graph separated, PassRunner& passes);
  Differentiated given_gradients(const Graph& imported, Graph separated);
  bool has_given_gradients() const { return !model_->given_gradients().empty(); }
  EvaluationLoss evaluation_graph(const Dims& dims, int64_t row_chunks, PassRunner& passes);
  void add_plan(const Dims& dims, const Mesh& mesh);
  void form_programs(Programs& programs, const Mesh& mesh, const StepShape& shape,
                     PassRunner& train_passes, PassRunner& evaluate_passes);
  std::unique_ptr<Programs> fit(const Dims& dims, const Mesh& mesh, const Programs& whole,
                                PassRunner& train_passes, PassRunner& evaluate_passes);
  FittedStep fit_stages(const Dims& dims, const Mesh& mesh, const Programs& whole,
                        std::vector<std::unique_ptr<Programs>>& plans, PassRunner& train_passes,
                        PassRunner& evaluate_passes);
  std::optional<FittedStep> fit_other(const Options& options, const Dims& dims, const Mesh& mesh,
                                      const Programs* whole) const;
  void schedule(const Dims& dims, Programs& programs, PassRunner& passes);
  void finish(Programs& programs, PassRunner& passes);
  void refuse_meshes() const;
  void emit(const KernelCode& code) const;
  void link(const KernelCode& code) const;
  std::string plans_json() const { return nlohmann::json(plans_).dump() + "\n"; }
  bool is_mixed() const { return options_.precision == "bf16"; }
  bool stops_after(const std::string& phase) const { return options_.stop_after == phase; }
  std::string executable_path() const;

  const Options& options_;
  Diagnostics& diagnostics_;
  const std::vector<Mesh> meshes_;
  std::unique_ptr<OnnxModel> model_;
  OptimizerOptions optimizer_;
  Target target_;
  const KernelTarget kernel_target_;
  const Hardware hardware_;
  /// Of all plans, those that are dropped and those of other options too.
  std::shared_ptr<KernelFormer> former_ = std::make_shared<KernelFormer>();
  std::vector<std::unique_ptr<Programs>> programs_;
  std::vector<plan::Plan> plans_;
  std::vector<Simulation> simulations_;  // of a step, per plan
  std::vector<KernelSpec> kernels_;      // of all plans
  WeightsBlob weights_;
  std::string timing_;
};

OptimizedGraph Compilation::training_graph(const Dims& dims, const Mesh& mesh, PassRunner& passes) {
  // ONNX nodes become Graph nodes with static shapes; shape arithmetic is gone.
  Graph graph = passes.run("import", [&] {
    return import_graph(*model_, import_options(options_, dims, mesh.dp, true), diagnostics_);
  });
  diagnostics_.checkpoint();
  if (stops_after("import")) return {std::move(graph)};
  // The file's own gradients belong to the loss as it is in the file.
  const Graph imported = has_given_gradients() ? graph : Graph();
  // Before differentiation: gradients then only ever add up over micro-batches.
  graph = passes.run("separate-loss", [&] {
    return separate_loss(std::move(graph), options_.micro_batches, mesh.dp, loss_average(options_),
                         diagnostics_, last_batch(options_));
  });
  diagnostics_.checkpoint();
  // Before differentiation, so that the gradient too is one kernel; after the loss is analysed,
  // which sees the operators that the user wrote.
  graph = find_attention(std::move(graph), passes);
  Differentiated differentiated = with_gradients(imported, std::move(graph), passes);
  // Before the update, which then works with the gradients of all replicas.
  differentiated = passes.run("replicate", [&] {
    const bool shards = options_.shard == "optimizer";
    return replicate(std::move(differentiated), shards ? Sharding::kOptimizer : Sharding::kNone);
  });
  // Appends the update phase: the graph of a whole step is there.
  graph = passes.run("add-optimizer", [&] {
    if (!model_->algorithm().present()) return add_optimizer(std::move(differentiated), optimizer_);
    return add_update(std::move(differentiated), optimizer_.clip_norm,
                      [&](Graph open, const std::map<std::string, ValueId>& gradients) {
                        return import_update(*model_, std::move(open), gradients, diagnostics_);
                      });
  });
  if (stops_after("autodiff")) return {std::move(graph)};
  OptimizedGraph optimized =
      optimize(std::move(graph), is_mixed(), options_.row_chunks, kernel_target_, passes);
  // Counts the products of the final graph. An evaluation keeps no copies of weights.
  if (prepacks_weights()) {
    optimized.graph =
        passes.run("prepack-weights", [&] { return prepack_weights(std::move(optimized.graph)); });
  }
  return optimized;
}

/// Attention that the model spells out stays so where it would have no kernel: GPUs have none in
/// single precision.
Graph Compilation::find_attention(Graph graph, PassRunner& passes) const {
  if (kernel_target_.is_gpu() && options_.precision == "fp32") return graph;
  return passes.run("recognize-attention", [&] { return recognize_attention(std::move(graph)); });
}

/// Copies of weights take memory, of which there is none to spend where it is limited.
bool Compilation::prepacks_weights() const {
  return !kernel_target_.is_gpu() && options_.memory == 0 && options_.prepack_weights == "auto";
}

/// Appends the backward phase, unless the file has one or an algorithm that needs none.
Differentiated Compilation::with_gradients(const Graph& imported, Graph separated,
                                           PassRunner& passes) {
  if (model_->algorithm().present() && model_->algorithm().gradients.empty()) {
    return {std::move(separated), {}};
  }
  Differentiated result =
      has_given_gradients()
          ? passes.run("take-gradients",
                       [&] { return given_gradients(imported, std::move(separated)); })
          : passes.run("differentiate", [&] { return differentiate(separated, diagnostics_); });
  diagnostics_.checkpoint();
  return result;
}

Differentiated Compilation::given_gradients(const Graph& imported, Graph separated) {
  const double share = share_of_micro_batch(imported, options_.micro_batches, imported.replicas,
                                            loss_average(options_), diagnostics_);
  std::vector<GivenGradient> given;
  for (const NamedGradient& named : model_->given_gradients()) {
    given.push_back({named.parameter, named.gradient});
  }
  return take_gradients(std::move(separated), given, share, diagnostics_);
}

EvaluationLoss Compilation::evaluation_graph(const Dims& dims, int64_t row_chunks,
                                             PassRunner& passes) {
  // Dropout is off, BatchNorm uses its running statistics. Its diagnostics repeat the training
  // import's, so they are dropped.
  Diagnostics repeated;
  const Graph imported = passes.run("import", [&] {
    return import_graph(*model_, import_options(options_, dims, 1, false), repeated);
  });
  repeated.checkpoint();
  // Adds sums that the runtime combines over all rows of an evaluation. A loss that is no such
  // sum was refused, or accepted as a mean of means, for training already.
  EvaluationLoss evaluation = passes.run("separate-evaluation-loss", [&] {
    Diagnostics exact;
    EvaluationLoss loss =
        separate_evaluation_loss(imported, LossAverage::kExact, exact, last_batch(options_));
    if (last_batch(options_) == LastBatch::kPad) exact.checkpoint();
    if (!exact.has_errors()) return loss;
    return separate_evaluation_loss(imported, LossAverage::kMeanOfMeans, exact);
  });
  // As for training.
  evaluation.graph = find_attention(std::move(evaluation.graph), passes);
  evaluation.graph =
      optimize(std::move(evaluation.graph), is_mixed(), row_chunks, kernel_target_, passes).graph;
  return evaluation;
}

void Compilation::add_plan(const Dims& dims, const Mesh& mesh) {
  PassRunner train_passes(options_, "train");
  PassRunner evaluate_passes(options_, "evaluate");
  auto programs = std::make_unique<Programs>();
  OptimizedGraph train = training_graph(dims, mesh, train_passes);
  programs->train = std::make_shared<Graph>(std::move(train.graph));
  if (!stops_after("import") && !stops_after("autodiff") && !stops_after("optimize")) {
    programs->evaluation =
        std::make_shared<EvaluationLoss>(evaluation_graph(dims, train.row_chunks, evaluate_passes));
    if (stops_after("fuse")) {
      form_programs(*programs, mesh, {mesh.pp}, train_passes, evaluate_passes);
    } else {
      programs = fit(dims, mesh, *programs, train_passes, evaluate_passes);
      finish(*programs, train_passes);
    }
  }
  timing_ += train_passes.timing() + evaluate_passes.timing();
  programs_.push_back(std::move(programs));
}

/// The step as it is, or, where that takes more memory than there may be, with forward nodes that
/// run again in the backward phase. Each way is planned to the end, since only the plan shows what
/// it needs.
std::unique_ptr<Programs> Compilation::fit(const Dims& dims, const Mesh& mesh,
                                           const Programs& whole, PassRunner& train_passes,
                                           PassRunner& evaluate_passes) {
  std::vector<std::unique_ptr<Programs>> plans;
  const FittedStep fitted = fit_stages(dims, mesh, whole, plans, train_passes, evaluate_passes);
  const MemoryRequest request = memory_request(options_);
  if (request.budget > 0 && fitted.peak_bytes > request.budget) {
    const StepFitter fit_other = [&](const Options& options, const Dims& sizes, const Mesh& shape) {
      const bool has_graphs = options.shard == options_.shard && sizes == dims &&
                              options.micro_batches == options_.micro_batches &&
                              options.row_chunks == options_.row_chunks && shape.dp == mesh.dp;
      return this->fit_other(options, sizes, shape, has_graphs ? &whole : nullptr);
    };
    refuse_memory(fitted, request, other_steps(options_, *model_, dims, mesh, fit_other));
  }
  return std::move(plans[fitted.plan]);
}

FittedStep Compilation::fit_stages(const Dims& dims, const Mesh& mesh, const Programs& whole,
                                   std::vector<std::unique_ptr<Programs>>& plans,
                                   PassRunner& train_passes, PassRunner& evaluate_passes) {
  const StepPlanner planner = [&](const Graph& graph, const StepShape& shape) {
    plans.push_back(std::make_unique<Programs>());
    Programs& programs = *plans.back();
    programs.train = whole.train;
    if (&graph != whole.train.get()) {
      programs.train =
          std::make_shared<Graph>(train_passes.run("rerun-nodes", [&] { return graph; }));
    }
    programs.evaluation = whole.evaluation;
    form_programs(programs, mesh, shape, train_passes, evaluate_passes);
    schedule(dims, programs, train_passes);
    const PlanInput& input = programs.input;
    return PlannedStep{&input.train.kernels, &input.train.placement, input.schedule,
                       &programs.built.plan};
  };
  return fit_memory(*whole.train, mesh.pp, memory_request(options_), hardware_, planner);
}

/// Plans the step of other options, for comparison. `whole` has its graphs, if they are known.
std::optional<FittedStep> Compilation::fit_other(const Options& options, const Dims& dims,
                                                 const Mesh& mesh, const Programs* whole) const
    try {
  Diagnostics repeated;
  Compilation other(options, repeated);
  other.model_ = std::make_unique<OnnxModel>(*model_);
  other.optimizer_ = optimizer_;
  other.target_ = target_;
  other.former_ = former_;
  PassRunner train_passes(options, "train");
  PassRunner evaluate_passes(options, "evaluate");
  Programs made;
  if (whole == nullptr) {
    OptimizedGraph train = other.training_graph(dims, mesh, train_passes);
    made.train = std::make_shared<Graph>(std::move(train.graph));
    made.evaluation = std::make_shared<EvaluationLoss>(
        other.evaluation_graph(dims, train.row_chunks, evaluate_passes));
    whole = &made;
  }
  std::vector<std::unique_ptr<Programs>> plans;
  return other.fit_stages(dims, mesh, *whole, plans, train_passes, evaluate_passes);
} catch (const Error&) {
  return std::nullopt;
}

void Compilation::form_programs(Programs& programs, const Mesh& mesh, const StepShape& shape,
                                PassRunner& train_passes, PassRunner& evaluate_passes) {
  PlanInput& input = programs.input;
  input.mesh = mesh;
  input.in_flight = shape.in_flight;
  KernelizedGraph& train = input.train.kernels;
  const std::vector<int64_t> parts =
      mesh.pp == 1 ? std::vector<int64_t>{} : fusion_parts(*programs.train);
  train = form_program(*programs.train, parts, 0, kernel_target_, *former_, train_passes);
  // Times are known: the last reduction over replicas gets something to hide behind.
  if (kernel_target_.is_gpu()) {
    train_passes.time("defer-gradients",
                      [&] { return defer_gradients(train, hardware_, mesh.dp), true; });
  }
  // Groups are what is placed: a kernel runs on one stage, or on several that each need its result.
  Placement& placement = input.train.placement;
  placement = train_passes.time("partition", [&] {
    return shape.begins.empty() ? partition(train, mesh.pp, hardware_)
                                : partition_at(train, shape.begins, hardware_);
  });
  // An evaluation has other groups; they may not cross the stages that training has chosen.
  const Graph& evaluation = programs.evaluation->graph;
  const std::vector<int64_t> stages = evaluation_stages(evaluation, train, placement);
  const auto checked = static_cast<int64_t>(checked_nodes(*programs.train).size());
  input.evaluate.emplace();
  KernelizedGraph& evaluate = input.evaluate->kernels;
  evaluate = form_program(evaluation, mesh.pp == 1 ? std::vector<int64_t>{} : stages, checked,
                          kernel_target_, *former_, evaluate_passes);
  input.evaluate->placement = evaluate_passes.time(
      "place-evaluation", [&] { return place_evaluation(evaluate, stages, train, placement); });
}

void Compilation::schedule(const Dims& dims, Programs& programs, PassRunner& passes) {
  PlanInput& input = programs.input;
  if (kernel_target_.is_gpu()) {
    check_gpu_code(input.train.kernels, diagnostics_);
    check_gpu_code(input.evaluate->kernels, diagnostics_);
    diagnostics_.checkpoint();
    input.communication_blocks = kCommunicationBlocks;
  }
  for (const LossRatio& ratio : programs.evaluation->ratios) {
    input.loss_terms.push_back({1.0, ratio.numerator, ratio.denominator, 0});
  }
  if (options_.schedule == "gpipe") input.schedule = PipelineSchedule::kGPipe;
  if (last_batch(options_) == LastBatch::kPad) input.row_weights = kRowWeights;
  input.model = model_->name();
  input.model_text = model_->structure_digest();
  if (!kernel_target_.is_gpu()) {
    input.cpu = target_.cpu;
    input.cpu_features = required_features(target_);
  }
  for (const auto& [name, size] : dims) input.dims[name] = size;
  input.optimizer = optimizer_name(optimizer_, *model_);
  input.hardware = hardware_;
  // Buffers, tasks and schedules: what the executable will do is decided here.
  programs.built = passes.time("build-plan", [&] {
    programs.weights = weights_;
    BuiltPlan built = build_plan(input, programs.weights);
    if (!kernel_target_.is_gpu() || input.mesh.dp == 1) return built;
    // Without replicas kernels are those of one GPU, and so are their bits.
    KernelizedGraph& train = input.train.kernels;
    leave_room(train, groups_beside_reductions(built, train, hardware_), *former_);
    programs.weights = weights_;
    return build_plan(input, programs.weights);
  });
  // Lifetimes are known: every buffer gets its place in the arena.
  BuiltPlan& built = programs.built;
  passes.time("assign-offsets", [&] { return assign_offsets(built.plan, built.uses), true; });
}

/// Takes over a plan that fits.
void Compilation::finish(Programs& programs, PassRunner& passes) {
  BuiltPlan& built = programs.built;
  // By a checker that shares no code with the scheduler.
  const auto faults = passes.time("verify-plan", [&] { return verify_plan(built.plan); });
  SGTC_CHECK(faults.empty(), "the plan is wrong: " + to_string(faults.front()));
  // The plan is whole and cannot wait for ever: what it will take is predicted.
  simulations_.push_back(passes.time("simulate", [&] { return predict(built.plan, hardware_); }));
  weights_ = std::move(programs.weights);
  std::move(built.kernels.begin(), built.kernels.end(), std::back_inserter(kernels_));
  plans_.push_back(std::move(built.plan));
}

void Compilation::emit(const KernelCode& code) const {
  for (const EmitRequest& request : options_.emit) {
    std::string text;
    if (request.what == "plan") {
      for (const plan::Plan& plan : plans_) text += to_text(plan);
    } else if (request.what == "plan-json") {
      text = plans_json();
    } else if (request.what == "html") {
      text = page_html(plans_, hardware_, simulations_);
    } else if (request.what == "dot") {
      text = to_dot(programs_.front()->input.train.kernels);
    } else if (request.what != "exe") {
      text = code_text(code, request.what);
    } else {
      continue;
    }
    emit_text(text, request.file);
  }
}

void Compilation::link(const KernelCode& code) const {
  ExecutableInput input;
  input.plans_json = plans_json();
  input.weights = weights_;
  // Ranks compare what they run: plans without predictions, code, and embedded weights.
  Sha256 fingerprint;
  for (plan::Plan plan : plans_) {
    plan.prediction = {};
    fingerprint.update(nlohmann::json(plan).dump());
  }
  add_code(code, input, fingerprint);
  for (const WeightsBlob::Segment& segment : weights_.segments()) {
    fingerprint.update(segment.literal->bytes());
  }
  input.fingerprint = fingerprint.hex_digest();
  write_executable(input, executable_path());
}

std::string Compilation::executable_path() const {
  for (const EmitRequest& request : options_.emit) {
    if (request.what == "exe" && !request.file.empty()) return request.file;
  }
  return options_.output.empty() ? "train" : options_.output;
}

void Compilation::refuse_meshes() const {
  for (const Mesh& mesh : meshes_) {
    if (mesh.tp > 1) {
      throw Error("--mesh " + to_string(mesh) +
                  ": tensor parallelism is not there yet; use pp and dp, with tp=1");
    }
  }
}

void Compilation::run() {
  refuse_meshes();
  check_code_options(options_);
  std::shared_ptr<const OrtCheckpoint> checkpoint;
  if (!options_.ort_checkpoint.empty()) {
    checkpoint = std::make_shared<OrtCheckpoint>(read_ort_checkpoint(options_.ort_checkpoint));
  }
  optimizer_ = choose_optimizer(options_, checkpoint);
  model_ =
      std::make_unique<OnnxModel>(OnnxModel::load(options_.model, diagnostics_, checkpoint.get()));
  diagnostics_.checkpoint();
  check_optimizer(options_, *model_, diagnostics_);
  check_last_batch(options_, *model_, diagnostics_);
  diagnostics_.checkpoint();
  target_ = make_target(options_.cpu);
  for (const Mesh& mesh : meshes_) {
    for (const Dims& dims : options_.dims) add_plan(dims, mesh);
  }
  KernelCode code;
  const bool early = !options_.stop_after.empty() && !stops_after("codegen");
  if (!early && (makes_executable(options_) || emits(options_, "llvm-ir") ||
                 emits(options_, "asm") || emits(options_, "ptx"))) {
    PassRunner passes(options_, "all");
    code = passes.time(
        "codegen", [&] { return compile_all_kernels(kernels_, options_, target_, diagnostics_); });
    timing_ += passes.timing();
  }
  if (!plans_.empty()) {
    emit(code);
    emit_simulations(options_, hardware_, plans_, simulations_);
  }
  if (options_.stop_after.empty() && makes_executable(options_)) {
    PassRunner passes(options_, "all");
    passes.time("link", [&] { return link(code), 0; });
    timing_ += passes.timing();
  }
  if (options_.time_passes) emit_text(timing_, "");
}

}  // namespace

const std::vector<PhaseInfo>& phases() {
  static const std::vector<PhaseInfo> kPhases = {
      {"import", "the ONNX graph with static shapes"},
      {"autodiff", "gradients and the optimizer's update"},
      {"optimize", "rewritten, compositions opened"},
      {"fuse", "kernels formed"},
      {"plan", "buffers, tasks and schedule decided"},
      {"codegen", "kernels compiled"},
  };
  return kPhases;
}

void compile(const Options& options, Diagnostics& diagnostics) {
  Compilation(options, diagnostics).run();
}

}  // namespace sgtc
