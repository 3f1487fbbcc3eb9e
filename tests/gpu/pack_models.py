"""Compiles models of sgtc-model for a GPU and for CPUs, with data, for models_check.py.

    pack_models.py BIN FOLDER [NAME...]     BIN is the folder of sgtc and sgtc-model

Writes FOLDER/NAME/{run.json, fp32, bf16, cpu, INPUT.npy}: programs without weights, which begin as
random numbers of a seed. Needs numpy.
"""

import json
import pathlib
import subprocess
import sys

import numpy as np

OPTIMIZER = {"betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1, "clip_norm": 1.0}
# Options of sgtc-model, and rate and number of steps in which the loss falls by a tenth and more.
RUNS = {
    "gpt2-124m": {"--seq": 256, "--batch": 4, "lr": 1e-4, "steps": 20},
    "bert-base": {"--seq": 128, "--batch": 8, "lr": 1e-4, "steps": 20},
    "llama-1b": {"--layers": 2, "--width": 1024, "--heads": 16, "--kv-heads": 4, "--hidden": 2816,
                 "--vocab": 32000, "--seq": 256, "--batch": 4, "lr": 1e-4, "steps": 20},
    "vit-b16": {"--batch": 8, "--classes": 100, "lr": 1e-4, "steps": 20},
    # Small enough for tools that slow a program down a thousandfold.
    "gpt2": {"--layers": 1, "--width": 64, "--heads": 1, "--vocab": 250, "--seq": 64,
             "--batch": 2, "lr": 1e-3, "steps": 20},
}
# Programs for GPUs compute scores in so many chunks of rows.
ROW_CHUNKS = {"bert-base": 2, "gpt2": 3}
DEFAULTS = {"gpt2-124m": {"--vocab": 50257, "--heads": 12}, "vit-b16": {"--heads": 12},
            "bert-base": {"--vocab": 30522, "--heads": 12}}


def tokens(random, vocab, shape):
    """Token numbers as rare as words of a text: the n-th has a share of 1/n."""
    return (vocab ** random.uniform(size=shape)).astype(np.int64) - 1


def feeds(name, options):
    """Arrays of the graph's inputs for one step; every step has the same rows."""
    random = np.random.RandomState(31)
    batch = options["--batch"]
    if name.startswith("vit"):
        classes = options["--classes"]
        return {"x": random.normal(size=(batch, 3, 224, 224)).astype(np.float32),
                "labels": random.randint(classes, size=batch)}
    shape = (batch, options["--seq"])
    if not name.startswith("bert"):
        stream = tokens(random, options["--vocab"], (batch, shape[1] + 1))
        return {"input_ids": stream[:, :-1].copy(), "labels": stream[:, 1:].copy()}
    ids = tokens(random, options["--vocab"], shape)
    lengths = random.randint(shape[1] // 2, shape[1] + 1, size=(batch, 1))
    mask = (np.arange(shape[1]) < lengths).astype(np.int64)
    guessed = (random.uniform(size=shape) < 0.15) & (mask == 1)
    return {"input_ids": ids, "attention_mask": mask,
            "token_type_ids": (np.arange(shape[1]) >= lengths // 2).astype(np.int64),
            "labels": np.where(guessed, ids, -100)}


def compile_model(sgtc, model, output, *options):
    betas = ",".join(map(str, OPTIMIZER["betas"]))
    subprocess.run([sgtc, model, "-o", output, "--optimizer", "adamw", "--betas", betas, "--eps",
                    str(OPTIMIZER["eps"]), "--weight-decay", str(OPTIMIZER["weight_decay"]),
                    "--clip-norm", str(OPTIMIZER["clip_norm"]), *options], check=True)


def pack(tools, folder, name):
    run = RUNS[name]
    options = {key: value for key, value in run.items() if key.startswith("--")}
    folder.mkdir(parents=True, exist_ok=True)
    model = folder / "model.onnx"
    words = [str(word) for pair in options.items() for word in pair]
    subprocess.run([tools / "sgtc-model", name, *words, "-o", model], check=True)
    sgtc = tools / "sgtc"
    compile_model(sgtc, model, folder / "cpu", "--target", "cpu")
    for precision in ("fp32", "bf16"):
        compile_model(sgtc, model, folder / precision, "--target", "sm_90a", "--precision",
                      precision, "--row-chunks", str(ROW_CHUNKS.get(name, "none")))
    model.unlink()
    options = DEFAULTS.get(name, {}) | options
    arrays = feeds(name, options)
    for feed, array in arrays.items():
        np.save(folder / f"{feed}.npy", array)
    (folder / "run.json").write_text(json.dumps(
        {"model": name, "options": options, "feeds": list(arrays), "lr": run["lr"],
         "steps": run["steps"], **OPTIMIZER}, indent=1))


def main():
    tools, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    for name in sys.argv[3:] or RUNS:
        pack(tools, folder / name, name)
        print(f"packed {name}", flush=True)


if __name__ == "__main__":
    main()
