"""Compiles small models for one Hopper GPU and for meshes of several, and writes their data.

pack_meshes.py FOLDER [MESH]...   with SGTC and SGTC_MODEL naming the two tools

FOLDER/NAME gets a program for each mesh, of that name and of the same rows per step, and
`arguments.json` with what a run is given. Meshes: 1x2 and 2x1 unless named; 1x1 always.
"""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np

MICRO_BATCHES = 4  # of all replicas together
RANDOM = np.random.default_rng(23)


def images(rows, *shape):
    return {"x": RANDOM.normal(size=(rows, *shape)).astype(np.float32),
            "labels": RANDOM.integers(0, 10, rows)}


def tokens(rows, length, vocabulary):
    # A walk with few next tokens, so that there is something to learn.
    steps = RANDOM.integers(1, 4, (rows, length + 1))
    walk = np.cumsum(steps, axis=1) % vocabulary
    return {"input_ids": walk[:, :-1], "labels": walk[:, 1:]}


# By name: words for sgtc-model, words for sgtc, data.
MODELS = {
    "mlp": ("mlp --inputs 512 --hidden 2048,2048,1024 --classes 10 --batch 128", "",
            images(4096, 512)),
    "cnn": ("cnn --channels 3 --size 16 --widths 8,16 --batch 8", "", images(320, 3, 16, 16)),
    "gpt": ("gpt2 --layers 4 --width 256 --heads 4 --vocab 512 --seq 128 --dropout 0.1 --batch 4",
            "--clip-norm 1 --precision bf16", tokens(320, 128, 512)),
}


def tool(variable, *words):
    subprocess.run([os.environ[variable], *map(str, words)], check=True)


def pack(folder, meshes, model_words, words, data):
    folder.mkdir(parents=True, exist_ok=True)
    model = folder / "model.onnx"
    tool("SGTC_MODEL", *model_words.split(), "-o", model)
    for mesh in meshes:
        replicas = int(mesh.split("x")[1])
        tool("SGTC", model, "-o", folder / mesh, "--target", "sm_90a", "--mesh", mesh,
             "--micro-batches", MICRO_BATCHES // replicas, *words.split())
    model.unlink()
    arguments = []
    for name, values in data.items():
        np.save(folder / f"{name}.npy", values)
        arguments += ["--data", f"{name}={name}.npy", "--eval", f"{name}={name}.npy"]
    (folder / "arguments.json").write_text(json.dumps(arguments))


def main():
    meshes = ["1x1", *(sys.argv[2:] or ["1x2", "2x1"])]
    for name, parts in MODELS.items():
        pack(pathlib.Path(sys.argv[1]).absolute() / name, meshes, *parts)


main()
