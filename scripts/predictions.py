#!/usr/bin/env python3
"""Predicted and measured times of a step on this machine, for a small GPT on one rank and on meshes.

    scripts/predictions.py [MESH...]    default: 1x1 2x2; --rounds N, --turns N, --steps N

A round is turns of: calibrate the program, predict with that profile, train. A machine whose memory
other guests use drifts within seconds by more than a prediction may be wrong; turns let slow moments
fall on both. Prints the means of predictions and of measured steps. Needs build/bin
(scripts/build.sh) and numpy.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
UNITS = {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}  # in milliseconds
MODEL = ["gpt2", "--layers", "4", "--width", "128", "--heads", "4", "--vocab", "256", "--seq", "64",
         "--context", "64", "--batch", "12"]
DATA = ["--tokens", "input_ids,labels=train.bin"]


def run(folder, *command):
    result = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True,
                            text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {result.returncode}\n{result.stderr}")
    return result.stdout


def predicted(folder, compiler, profile):
    report = run(folder, *compiler, "--hardware", profile, "--simulate")
    number, unit = re.search(r"^  step +([0-9.]+) (\w+)$", report, re.MULTILINE).groups()
    return float(number) * UNITS[unit]


def measured(folder, program, steps):
    run(folder, program, *DATA, "--steps", steps, "--quiet", "--log", "log.jsonl")
    lines = (folder / "log.jsonl").read_text().splitlines()
    return [json.loads(line)["ms"] for line in lines][1:]


def take_turns(folder, compiler, turns, steps):
    guesses = []
    times = []
    for _ in range(turns):
        run(folder, "./train", *DATA, "--calibrate", "profile.json")
        guesses.append(predicted(folder, compiler, "profile.json"))
        times += measured(folder, "./train", steps)
    return guesses, times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("meshes", nargs="*", default=["1x1", "2x2"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--steps", type=int, default=15, help="of a turn")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    options = parser.parse_args()
    options.bin = options.bin.absolute()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run(folder, sys.executable, ROOT / "samples/byte-gpt/prepare.py", ".")
        run(folder, options.bin / "sgtc-model", *MODEL, "-o", "gpt.onnx")
        for mesh in options.meshes:
            compiler = [options.bin / "sgtc", "gpt.onnx", "--mesh", mesh, "--micro-batches", "4",
                        "--optimizer", "adamw", "--clip-norm", "1"]
            run(folder, *compiler, "-o", "train")
            for _ in range(options.rounds):
                guesses, times = take_turns(folder, compiler, options.turns, options.steps)
                guess, time = statistics.mean(guesses), statistics.mean(times)
                print(f"{mesh}: predicted {guess:.1f} ms ({min(guesses):.0f} to {max(guesses):.0f}), "
                      f"measured {time:.1f} ms ({min(times):.0f} to {max(times):.0f}, median "
                      f"{statistics.median(times):.1f}), ratio {guess / time:.2f}", flush=True)


if __name__ == "__main__":
    main()
