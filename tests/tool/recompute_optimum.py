"""What runs again on random small graphs costs at most 2% more than the optimum of CP-SAT.

The problem is stated here once more, from its definition (compiler/recompute/recompute_problem.h):
nothing is shared with the compiler but the numbers.
"""

import json
import os
import subprocess
import sys

from ortools.sat.python import cp_model

CASES, FEWEST, MOST = 200, 6, 24
TOLERANCE = 1.02
SECONDS = 60  # of the solver per graph


class Problem:
    """Nodes, values and the moments of one position's step."""

    def __init__(self, text):
        self.nodes, self.values = text["nodes"], text["values"]
        self.other, self.slots = text["other_bytes"], text["slots"]
        self.backward_end = text["backward_end"]
        self.times = range(len(self.other))
        self.readers = [[n for n, node in enumerate(self.nodes)
                         if any(operand["value"] == v for operand in node["operands"])]
                        for v in range(len(self.values))]

    def cost(self, runs):
        """Seconds and peak when the nodes in `runs` run again, each at its first reader."""
        first = [value["first_backward"] for value in self.values]
        last = [value["last_backward"] for value in self.values]
        time = {}
        for n in reversed(range(len(self.nodes))):
            needs = [first[r] for r in self.nodes[n]["results"] if first[r] >= 0]
            if n not in runs or not needs:
                continue
            time[n] = min(needs)
            for operand in self.nodes[n]["operands"]:
                v = operand["value"]
                first[v] = time[n] if first[v] < 0 else min(first[v], time[n])
                last[v] = max(last[v], time[n])
        seconds = sum(self.nodes[n]["seconds"] + sum(
            operand["seconds"] for operand in self.nodes[n]["operands"]
            if self.values[operand["value"]]["node"] not in time) for n in time)
        live = list(self.other)
        for v, value in enumerate(self.values):
            again = value["node"] in time
            kept = first[v] >= 0 and not again
            for t in self.times:
                end = max(value["last_forward"], last[v] if kept else -1)
                here = value["made"] <= t <= end and (kept or value["stored"])
                more = kept and t <= self.backward_end
                later = (again and value["stored"] and first[v] >= 0
                         and time[value["node"]] <= t <= last[v])
                live[t] += value["bytes"] * (here + more * (self.slots - 1) + later)
        return seconds, max(live)

    def optimum(self, budget):
        """The least seconds within the budget, or None if the solver does not prove any."""
        model = cp_model.CpModel()
        runs = [model.new_bool_var(f"runs{n}") for n in range(len(self.nodes))]
        # done[n][t]: node n has run again by t. wanted[v][t]: somebody has read v by t.
        done = [[model.new_bool_var(f"done{n}.{t}") for t in self.times] for n in range(len(runs))]
        wanted = [[self.wanted(model, done, v, t) for t in self.times]
                  for v in range(len(self.values))]
        for n, node in enumerate(self.nodes):
            if not node["may_rerun"]:
                model.add(runs[n] == 0)
            for t in self.times:
                any_result = either(model, [wanted[r][t] for r in node["results"]])
                model.add_multiplication_equality(done[n][t], [runs[n], any_result])
        self.limit(model, budget, runs, done, wanted)
        end = len(self.times) - 1
        cost = []
        for n, node in enumerate(self.nodes):
            cost.append(int(node["seconds"]) * done[n][end])
            for operand in node["operands"]:
                maker = self.values[operand["value"]]["node"]
                alone = both(model, [done[n][end], done[maker][end].negated()])
                cost.append(int(operand["seconds"]) * alone)
        model.minimize(sum(cost))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 2
        solver.parameters.max_time_in_seconds = SECONDS
        status = solver.solve(model)
        return solver.objective_value if status == cp_model.OPTIMAL else None

    def wanted(self, model, done, v, t):
        first = self.values[v]["first_backward"]
        if 0 <= first <= t:
            return model.new_constant(1)
        return either(model, [done[n][t] for n in self.readers[v]])

    def limit(self, model, budget, runs, done, wanted):
        """At each time what is live has room."""
        end = len(self.times) - 1
        bytes_at = [[other] for other in self.other]
        for v, value in enumerate(self.values):
            again = done[value["node"]]
            kept = both(model, [wanted[v][end], runs[value["node"]].negated()])
            for t in self.times:
                # Whether the backward phase reads it at t or later.
                later = model.new_constant(1) if value["last_backward"] >= t else either(
                    model, [both(model, [done[n][end], done[n][t - 1].negated()] if t > 0
                                 else [done[n][end]]) for n in self.readers[v]])
                terms = []
                if value["made"] <= t <= value["last_forward"]:
                    terms.append(1 if value["stored"] else kept)
                elif t > value["made"]:
                    terms.append(both(model, [kept, later]))
                if t <= self.backward_end:
                    terms.append((self.slots - 1) * kept)
                if value["stored"]:
                    terms.append(both(model, [again[t], later, wanted[v][end]]))
                bytes_at[t] += [value["bytes"] * term for term in terms]
        for terms in bytes_at:
            model.add(sum(terms) <= budget)


def either(model, literals):
    if not literals:
        return model.new_constant(0)
    result = model.new_bool_var("")
    model.add_max_equality(result, literals)
    return result


def both(model, literals):
    result = model.new_bool_var("")
    model.add_min_equality(result, literals)
    return result


def main():
    lines = subprocess.run([os.environ["SGTC_RECOMPUTE_CASES"], str(CASES), str(FEWEST), str(MOST)],
                           capture_output=True, text=True, check=True).stdout.splitlines()
    faults, exact, worst = [], 0, 1.0
    for case in map(json.loads, lines):
        problem = Problem(case["problem"])
        runs = {n for n, chosen in enumerate(case["choice"]) if chosen}
        if problem.cost(runs) != (case["seconds"], case["peak_bytes"]):
            faults.append(f"seed {case['seed']}: costs {problem.cost(runs)}, said to be "
                          f"{case['seconds']}, {case['peak_bytes']}")
        if case["peak_bytes"] > case["budget"]:
            faults.append(f"seed {case['seed']}: the peak {case['peak_bytes']} exceeds the budget")
        best = problem.optimum(case["budget"])
        if best is None:
            faults.append(f"seed {case['seed']}: no optimum in {SECONDS} s")
            continue
        exact += case["seconds"] == best
        ratio = case["seconds"] / best if best > 0 else 1.0 + case["seconds"]
        worst = max(worst, ratio)
        if ratio > TOLERANCE or case["seconds"] < best:
            faults.append(f"seed {case['seed']}, {len(problem.nodes)} nodes: {case['seconds']} s, "
                          f"the optimum is {best}")
    print(f"{len(lines)} graphs, {exact} at the optimum, at worst {worst:.3f} times it")
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
