"""Compiles small models for a CPU and for a Hopper GPU, and writes their data.

pack_programs.py FOLDER   with SGTC and SGTC_MODEL naming the two tools

FOLDER/NAME gets the programs `cpu` and `gpu`, `ptx` (without machine code for the GPU), `ampere`
(for A100, which the driver compiles anew for Hopper), and `arguments.json` with what a run is
given.
"""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np

RANDOM = np.random.default_rng(17)


def images(rows, *shape):
    return {"x": RANDOM.normal(size=(rows, *shape)).astype(np.float32),
            "labels": RANDOM.integers(0, 10, rows)}


def tokens(rows, length, vocabulary):
    # A walk with few next tokens, so that there is something to learn.
    steps = RANDOM.integers(1, 4, (rows, length + 1))
    walk = np.cumsum(steps, axis=1) % vocabulary
    return {"input_ids": walk[:, :-1], "labels": walk[:, 1:]}


# By name: words for sgtc-model, words for sgtc, data.
PROGRAMS = {
    "mlp": ("mlp --inputs 61 --hidden 128,96 --classes 10 --batch 32",
            "--clip-norm 1 --micro-batches 2", images(640, 61)),
    "cnn": ("cnn --channels 3 --size 16 --widths 8,16 --batch 8", "", images(160, 3, 16, 16)),
    "gpt": ("gpt2 --layers 2 --width 96 --heads 3 --vocab 211 --seq 40 --dropout 0.1 --batch 2",
            "--clip-norm 1 --micro-batches 2", tokens(80, 40, 211)),
}


def tool(variable, *words):
    subprocess.run([os.environ[variable], *map(str, words)], check=True)


def pack(folder, model_words, words, data):
    folder.mkdir(parents=True, exist_ok=True)
    model = folder / "model.onnx"
    tool("SGTC_MODEL", *model_words.split(), "-o", model)
    for program, target in (("cpu", ["cpu"]), ("gpu", ["sm_90a"]),
                            ("ptx", ["sm_90a", "--ptxas", "none"]), ("ampere", ["sm_80"])):
        tool("SGTC", model, "-o", folder / program, "--target", *target, *words.split())
    arguments = []
    for name, values in data.items():
        np.save(folder / f"{name}.npy", values)
        arguments += ["--data", f"{name}={name}.npy", "--eval", f"{name}={name}.npy"]
    (folder / "arguments.json").write_text(json.dumps(arguments))


def main():
    for name, parts in PROGRAMS.items():
        pack(pathlib.Path(sys.argv[1]).absolute() / name, *parts)


main()
