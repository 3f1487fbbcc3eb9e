#include "driver/predict.h"

#include "cost/hardware_file.h"
#include "driver/emit.h"
#include "simulate/report.h"
#include "support/diagnostics.h"

namespace sgtc {

Hardware choose_hardware(const Options& options) {
  Hardware hardware =
      options.hardware.empty() ? default_hardware(options.target) : read_hardware(options.hardware);
  if (hardware.is_gpu() != (options.target != "cpu")) {
    throw Error("--hardware " + options.hardware + ": expected a " +
                (hardware.is_gpu() ? "CPU" : "GPU") + " for --target " + options.target +
                ", found a " + (hardware.is_gpu() ? "GPU" : "CPU") + ", " + hardware.name);
  }
  return hardware;
}

Simulation predict(plan::Plan& plan, const Hardware& hardware) {
  Simulation simulation = simulate(plan, hardware);
  plan.prediction.step_seconds = simulation.seconds;
  plan.prediction.bubble = simulation.bubble;
  return simulation;
}

void emit_simulations(const Options& options, const Hardware& hardware,
                      const std::vector<plan::Plan>& plans,
                      const std::vector<Simulation>& simulations) {
  if (options.simulate.empty()) return;
  const bool traces = options.simulate != "-";
  if (traces && plans.size() > 1) {
    throw Error("--simulate=" + options.simulate + ": a timeline is of one plan, found " +
                std::to_string(plans.size()) +
                "; compile one --mesh and one --dim size, or leave the file out");
  }
  for (size_t i = 0; i < plans.size(); ++i) {
    emit_text(report_text(plans[i], hardware, simulations[i]), "");
  }
  if (traces) emit_text(trace_json(plans[0], simulations[0]), options.simulate);
}

}  // namespace sgtc
