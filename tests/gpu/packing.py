"""What pack_programs.py and pack_meshes.py share: data of small models, and folders of programs."""

import json
import os
import subprocess

import numpy as np


def images(random, rows, *shape):
    return {"x": random.normal(size=(rows, *shape)).astype(np.float32),
            "labels": random.integers(0, 10, rows)}


def tokens(random, rows, length, vocabulary):
    # A walk with few next tokens, so that there is something to learn.
    steps = random.integers(1, 4, (rows, length + 1))
    walk = np.cumsum(steps, axis=1) % vocabulary
    return {"input_ids": walk[:, :-1], "labels": walk[:, 1:]}


def tool(variable, *words):
    subprocess.run([os.environ[variable], *map(str, words)], check=True)


def compile_programs(folder, model_words, programs, data):
    """Into `folder`: a program of the model for each name in `programs`, with those words for sgtc,
    the data, and `arguments.json` with what a run is given."""
    folder.mkdir(parents=True, exist_ok=True)
    model = folder / "model.onnx"
    tool("SGTC_MODEL", *model_words.split(), "-o", model)
    for name, words in programs.items():
        tool("SGTC", model, "-o", folder / name, *words)
    model.unlink()
    arguments = []
    for name, values in data.items():
        np.save(folder / f"{name}.npy", values)
        arguments += ["--data", f"{name}={name}.npy", "--eval", f"{name}={name}.npy"]
    (folder / "arguments.json").write_text(json.dumps(arguments))
