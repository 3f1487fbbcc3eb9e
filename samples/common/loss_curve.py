"""Prints the loss curve of a run from its log: loss_curve.py LOG.jsonl [LINES]

Each line is the mean over a stretch of steps, with a bar from zero to the largest of them.
"""

import json
import sys

WIDTH = 48


def main():
    path, lines = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10
    with open(path) as log:
        records = [json.loads(line) for line in log]
    losses = [(r["step"], r["loss"]) for r in records if isinstance(r.get("loss"), float)]
    held_out = [(r["step"], r["eval_loss"]) for r in records if "eval_loss" in r]
    stretch = max(1, -(-len(losses) // lines))
    means = []
    for begin in range(0, len(losses), stretch):
        part = losses[begin:begin + stretch]
        means.append((part[0][0], part[-1][0], sum(loss for _, loss in part) / len(part)))
    top = max((mean for _, _, mean in means), default=1)
    for first, last, mean in means:
        bar = "#" * max(1, round(WIDTH * mean / top))
        print(f"steps {first:5d}-{last:<5d} | loss {mean:8.4f} | {bar}")
    for step, loss in held_out:
        print(f"held out, after step {step} | loss {loss:8.4f}")


if __name__ == "__main__":
    main()
