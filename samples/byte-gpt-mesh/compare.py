"""Prints the losses of two runs side by side and fails if they differ by more than 1e-5.

    compare.py LOG LOG
"""

import json
import sys

TOLERANCE = 1e-5  # relative; sums over replicas associate differently


def losses(path):
    records = [json.loads(line) for line in open(path)]
    return {record["step"]: record["loss"] for record in records if "loss" in record}


def main():
    first, second = losses(sys.argv[1]), losses(sys.argv[2])
    worst = max(abs(first[step] - second[step]) / abs(second[step]) for step in second)
    steps = sorted(second)
    for step in steps[:: max(1, len(steps) // 8)] + steps[-1:]:
        print(f"step {step:4}: {first[step]:.6f} {second[step]:.6f}")
    print(f"largest relative difference {worst:.1e}")
    sys.exit(0 if len(first) == len(second) and worst <= TOLERANCE else 1)


main()
