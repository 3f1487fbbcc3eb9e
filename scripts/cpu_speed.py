#!/usr/bin/env python3
"""Training steps of sgtc's programs beside PyTorch on this machine's CPU, as a table of ratios.

    scripts/cpu_speed.py [MODEL...]     default: all; --rounds N, --seconds S, --threads N

For each model PyTorch (eager and torch.compile) and programs for the default CPU and `--cpu native`
train from the same weights on the same rows with AdamW. They take turns of some seconds, round
after round, while the others wait; the figures are medians over the steps of all turns, and each
turn's first steps count for nothing. A ratio is PyTorch's time over sgtc's: above 1 sgtc is faster.
Memory is the most that a process had resident; PyTorch's has Python and the library in it, about
whose size the last column tells. Fails if losses of the first steps differ by more than 0.1 %.
Needs build/bin (scripts/build.sh), a C++ compiler for torch.compile, and a Python with torch and
numpy, as `pip install torch numpy` gives it.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
WARM_UP = 2  # steps of each turn that do not count
COMPARED = 5  # losses
FEW = 3  # steps of the shortest turn
ADAMW = ["--optimizer", "adamw", "--betas", "0.9,0.999", "--eps", "1e-8", "--weight-decay", "0.01"]
TEXT = ("input_ids", "labels")

# Arguments of sgtc-model, and inputs: (name, shape of a row, numbers below; 0: floats).
MODELS = {
    "byte-gpt": (["gpt2", "--layers", "6", "--width", "384", "--heads", "6", "--vocab", "256",
                  "--seq", "256", "--context", "256", "--batch", "4"],
                 [(name, [256], 256) for name in TEXT]),
    "gpt2-124m": (["gpt2-124m", "--heads", "12", "--seq", "256", "--batch", "1"],
                  [(name, [256], 50257) for name in TEXT]),
    "resnet18": (["resnet18", "--batch", "8"], [("x", [3, 224, 224], 0), ("labels", [], 1000)]),
    "lenet": (["cnn", "--channels", "1", "--size", "28", "--widths", "8,16", "--batch", "64"],
              [("x", [1, 28, 28], 0), ("labels", [], 10)]),
    "mlp": (["mlp", "--inputs", "1024", "--hidden", "1024,1024,1024", "--batch", "64"],
            [("x", [1024], 0), ("labels", [], 10)]),
    "bert-layer": (["bert-base", "--layers", "1", "--heads", "12", "--vocab", "1024", "--seq",
                    "128", "--classes", "2", "--batch", "8"],
                   [("input_ids", [128], 1024), ("attention_mask", [128], 2),
                    ("token_type_ids", [128], 2), ("labels", [], 2)]),
}


def run(folder, *command):
    """Runs a program and returns the most memory that it had resident, in MiB."""
    with tempfile.TemporaryFile("w+") as output:
        child = subprocess.Popen([str(word) for word in command], cwd=folder, stdout=output,
                                 stderr=output)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            output.seek(0)
            sys.exit(f"{' '.join(map(str, command))}: exit {child.returncode}\n{output.read()}")
    return usage.ru_maxrss / 1024


class Program:
    """What sgtc compiled; each turn is a process."""

    def __init__(self, options, folder, name, cpu, feeds):
        self.folder, self.name, self.options = folder, name, options
        flags = ["--cpu", cpu] if cpu else []
        run(folder, options.bin / "sgtc", "model.onnx", "-o", name, *ADAMW, *flags)
        self.feeds = [f"--data={feed}={feed}.npy" for feed in feeds]
        self.peak = self.idle = 0

    def train(self, steps):
        """Losses and milliseconds of the steps."""
        self.peak = max(self.peak, run(
            self.folder, "./" + self.name, *self.feeds, "--steps", steps, "--lr", self.options.lr,
            "--threads", self.options.threads, "--quiet", "--log", "log.jsonl"))
        lines = (self.folder / "log.jsonl").read_text().splitlines()
        records = [json.loads(line) for line in lines]
        return [r["loss"] for r in records], [r["ms"] for r in records]

    def end(self):
        pass


class Peer:
    """PyTorch in a process that waits between its turns."""

    def __init__(self, options, folder, name, model, feeds):
        self.name = name
        command = [sys.executable, ROOT / "scripts/torch_peer.py", json.dumps(model), *feeds,
                   "--lr", options.lr, "--threads", options.threads]
        if name == "torch.compile":
            command.append("--compile")
        self.process = subprocess.Popen([str(word) for word in command], cwd=folder, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.peak = self.idle = 0

    def train(self, steps):
        print(steps, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.name} ended with {self.process.wait()}")
        turn = json.loads(line)
        self.peak, self.idle = turn["peak"], turn["idle"]
        return turn["losses"], turn["ms"]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def write_feeds(folder, inputs, batch):
    """Rows of COMPARED steps at least, which come again after that."""
    random = np.random.default_rng(0)
    for name, shape, below in inputs:
        shape = [batch * COMPARED, *shape]
        rows = (random.integers(below, size=shape) if below else
                random.standard_normal(shape).astype(np.float32))
        if name == "attention_mask":
            rows = np.ones_like(rows)
        np.save(folder / f"{name}.npy", rows)


def start(options, folder, model):
    """Writes model, rows and initial weights; returns who takes turns."""
    command, inputs = MODELS[model]
    feeds = [name for name, _, _ in inputs]
    write_feeds(folder, inputs, int(command[command.index("--batch") + 1]))
    run(folder, options.bin / "sgtc-model", *command, "-o", "model.onnx")
    runners = [Program(options, folder, "sgtc", None, feeds),
               Program(options, folder, "sgtc-native", "native", feeds)]
    run(folder, "./sgtc", *runners[0].feeds, "--steps", 0, "--save", "initial.safetensors")
    for name in ("eager", "torch.compile"):
        runners.append(Peer(options, folder, name, command, feeds))
    return runners


def check_losses(model, losses):
    """Prints the losses of the first steps, and fails where they differ."""
    for name, found in losses.items():
        print(f"{model}: {name}: losses {' '.join(f'{loss:.6f}' for loss in found)}")
    expected = losses["eager"]
    worst = max(abs(a - b) / abs(b) for found in losses.values() for a, b in zip(found, expected))
    if not worst < 1e-3:
        sys.exit(f"{model}: losses of the first {COMPARED} steps differ by {worst:.1e}")


def measure(options, model):
    """Median milliseconds and peaks by runner."""
    with tempfile.TemporaryDirectory() as name:
        runners = start(options, pathlib.Path(name), model)
        losses, steps, times = {}, {}, {runner.name: [] for runner in runners}
        for runner in runners:
            losses[runner.name], first = runner.train(COMPARED)
            steps[runner.name] = max(FEW, round(options.seconds * 1000 / min(first)))
        check_losses(model, losses)
        for turn in range(options.rounds):
            for runner in runners[turn % 2::2] + runners[1 - turn % 2::2]:
                times[runner.name] += runner.train(WARM_UP + steps[runner.name])[1][WARM_UP:]
        for runner in runners:
            runner.end()
    medians = {name: statistics.median(ms) for name, ms in times.items()}
    return medians, {runner.name: (runner.peak, runner.idle) for runner in runners}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=4, help="of a turn")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    options = parser.parse_args()
    options.bin = options.bin.resolve()
    unknown = set(options.models) - set(MODELS)
    if unknown:
        parser.error(f"no model {', '.join(sorted(unknown))}; there are {', '.join(MODELS)}")
    rows, logs = [], {}
    for model in options.models or MODELS:
        ms, peaks = measure(options, model)
        best = min("eager", "torch.compile", key=lambda name: ms[name])
        for name in ("sgtc", "sgtc-native"):
            logs.setdefault(name, []).append(math.log(ms[best] / ms[name]))
            rows.append(f"| {model} | {name} | {ms[name]:.2f} | {ms['eager']:.2f} | "
                        f"{ms['torch.compile']:.2f} | {ms['eager'] / ms[name]:.2f} | "
                        f"{ms['torch.compile'] / ms[name]:.2f} | {peaks[name][0]:.0f} | "
                        f"{peaks[best][0]:.0f} | {peaks[name][0] / peaks[best][0]:.2f} | "
                        f"{peaks[best][1]:.0f} |")
            print(rows[-1], flush=True)
    print(f"\n{options.threads} threads, {options.rounds} rounds of {options.seconds:g} s\n")
    print("| model | program | ms | eager ms | compile ms | ratio to eager | to compile | "
          "MiB | the faster PyTorch's MiB | ratio | of these at its start |")
    print("| --- " * 11 + "|")
    print("\n".join(rows))
    for name, ratios in logs.items():
        print(f"{name}: geometric mean of the ratios to the faster PyTorch "
              f"{math.exp(statistics.mean(ratios)):.2f}")


if __name__ == "__main__":
    main()
