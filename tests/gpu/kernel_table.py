"""Prints what each kernel of a GPU program takes of a step, beside the least that it could take.

    kernel_table.py TRACE.json PLAN.json       of ./train --trace FILE and ./train --print-plan

The time of a kernel is the median of its launches. Its floor is the larger of its bytes over the
bandwidth of memory and its operations over the rate of matrix products, by default what one H200
sustained (4.27 TB/s copying, 660 TFLOP/s in bfloat16). Needs no package.
"""

import argparse
import collections
import json
import statistics


def calls_per_step(plan):
    """How often a step calls each symbol."""
    counts = collections.Counter()
    for position in plan["positions"]:
        tasks = {task["name"]: task for task in position["tasks"]}
        for entry in position["schedules"]["train"]:
            counts.update(call["kernel"] for call in tasks[entry["task"]].get("calls", []))
    return counts


def rows_of(trace, plan, bandwidth, rate):
    """Per symbol: seconds of a step, of its floor, calls, and the kernel."""
    times = collections.defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            times[event["name"]].append(event["dur"] * 1e-6)
    kernels = {kernel["symbol"]: kernel for kernel in plan["kernels"]}
    rows = []
    for symbol, calls in calls_per_step(plan).items():
        if symbol not in times:
            raise SystemExit(f"the trace has no kernel {symbol}: it is not of this plan")
        kernel = kernels[symbol]
        floor = max(kernel["bytes"] / bandwidth, kernel["flops"] / rate)
        rows.append((calls * statistics.median(times[symbol]), calls * floor, calls, kernel))
    return sorted(rows, key=lambda row: -row[0])


def nodes_text(nodes):
    more = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
    return (nodes[0] if nodes else "no node") + more


def show(rows):
    total = sum(row[0] for row in rows)
    print(f"{'ms/step':>8} {'share':>6} {'calls':>5} {'us':>8} {'GB/s':>6} {'TFLOP/s':>7} "
          f"{'floor ms':>8} {'x floor':>7}  kernel")
    for seconds, floor, calls, kernel in rows:
        each = seconds / calls
        print(f"{seconds * 1e3:8.3f} {seconds / total:6.1%} {calls:5} {each * 1e6:8.1f} "
              f"{kernel['bytes'] / each * 1e-9:6.0f} {kernel['flops'] / each * 1e-12:7.1f} "
              f"{floor * 1e3:8.3f} {seconds / floor if floor else 0:7.2f}  "
              f"{kernel['symbol']} ({kernel['kind']}; {nodes_text(kernel['nodes'])})")
    floor = sum(row[1] for row in rows)
    print(f"{total * 1e3:8.3f} {1:6.0%} {sum(row[2] for row in rows):5} {'':8} {'':6} {'':7} "
          f"{floor * 1e3:8.3f} {total / floor if floor else 0:7.2f}  all, one after another")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("plan")
    parser.add_argument("--bandwidth", type=float, default=4.27e12, help="bytes per second")
    parser.add_argument("--rate", type=float, default=660e12, help="operations per second")
    arguments = parser.parse_args()
    with open(arguments.trace) as trace, open(arguments.plan) as plan:
        plans = json.load(plan)
        if len(plans) != 1:
            raise SystemExit(f"{arguments.plan}: expected one plan, found {len(plans)}")
        show(rows_of(json.load(trace), plans[0], arguments.bandwidth, arguments.rate))


if __name__ == "__main__":
    main()
