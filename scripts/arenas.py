#!/usr/bin/env python3
"""Arenas beside the largest live set, for models of sgtc-model in their published sizes.

    scripts/arenas.py [MODEL...]    default: all that plan within seconds; --mesh MESH may repeat

Plans each model on each mesh, where it has stages or replicas with several micro-batches, and prints
per position the arena divided by the largest live set of a step or an evaluation
(tests/tool/live_set.py), then the seconds that all that took. Needs build/bin (scripts/build.sh)
and numpy.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/tool"))

from live_set import arena_ratios, largest_live_sets  # pylint: disable=wrong-import-position

MODELS = ["mlp", "cnn", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "gpt2-124m",
          "gpt2-medium", "gpt2-large", "gpt2-xl", "llama-1b", "llama-7b", "llama-8b", "bert-base",
          "bert-large", "vit-s16", "vit-b16", "vit-l16"]
MESHES = ["1x1", "2x1", "1x2", "2x2", "4x1"]


def run(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                            check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {result.returncode}\n{result.stderr}")


def ratios(folder, options, mesh):
    path = folder / "plan.json"
    micro_batches = 1 if mesh == "1x1" else options.micro_batches
    run(options.bin / "sgtc", folder / "model.onnx", "--emit", f"plan-json={path}", "--mesh", mesh,
        "--micro-batches", micro_batches, *options.options.split())
    plan = json.loads(path.read_text())[0]
    return arena_ratios(plan, largest_live_sets(plan))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--mesh", action="append")
    parser.add_argument("--micro-batches", type=int, default=6)
    parser.add_argument("--options", default="", help="more options of sgtc, in one word")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for model in options.models:
            run(options.bin / "sgtc-model", model, "-o", folder / "model.onnx")
            for mesh in options.mesh or MESHES:
                start = time.monotonic()
                found = " ".join(f"{ratio:.4f}" for ratio in ratios(folder, options, mesh))
                print(f"{model} {mesh}: {found} ({time.monotonic() - start:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
