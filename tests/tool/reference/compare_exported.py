"""Compiles exported models with sgtc, trains them, and compares with PyTorch's references.

    compare_exported.py SGTC DATA/exported REFERENCE [NAME...]

REFERENCE is the folder that make_final_weights.py wrote. For each MODEL/FILE.onnx with a reference
(and whose path contains a NAME), and for SGD and AdamW, it prints the largest relative difference
of a loss and the largest difference of a final weight, relative to the largest weight of its tensor
or the step that the optimizer can have made.

Some models are chaotic: a rounding that turns a Relu or a maximum the other way grows until
PyTorch's own float32 and float64 runs differ in the third digit of the last losses. Likewise AdamW
turns a gradient that is zero but for rounding into whole steps. So the first losses are held to
tight tolerances, the last ones and the weights to loose ones. Needs numpy.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from safetensors_file import read_safetensors  # noqa: E402

EARLY_STEPS, EARLY_TOLERANCE = 2, 1e-5
LOSS_TOLERANCE = 1e-2
WEIGHT_TOLERANCE = {"sgd": 5e-2, "adamw": 1.0}


def train(sgtc, path, name, settings, inputs, folder):
    """Losses and final weights of an executable of sgtc."""
    options = ["--optimizer", name]
    if name == "adamw":
        options += ["--betas", ",".join(map(str, settings["betas"])), "--eps", str(settings["eps"]),
                    "--weight-decay", str(settings["weight_decay"])]
    program, log = folder / "train", folder / "log.jsonl"
    weights = folder / "weights.safetensors"
    log.unlink(missing_ok=True)
    subprocess.run([sgtc, path, "-o", program, *options], check=True, stderr=subprocess.DEVNULL)
    data = [f"--data={feed}={path.parent / feed}.npy" for feed in inputs]
    subprocess.run([program, *data, "--quiet", "--steps", str(len(settings["losses"])), "--lr",
                    str(settings["lr"]), "--log", log, "--save", weights], check=True)
    records = [json.loads(line) for line in log.read_text().splitlines()]
    return [record["loss"] for record in records], read_safetensors(weights)


def weight_difference(found, expected, initial_step):
    """The largest over all tensors, and the tensor's name."""
    worst = (0.0, "")
    for name, tensor in found.items():
        scale = max(float(np.abs(expected[name]).max(initial=0)), initial_step)
        difference = float(np.abs(tensor - expected[name]).max(initial=0)) / scale
        worst = max(worst, (difference, name))
    return worst


def compare(sgtc, path, reference, folder):
    expected = json.loads((path.parent / "expected.json").read_text())
    losses = json.loads((reference / path.parent.name / f"{path.stem}.losses.json").read_text())
    good = True
    for name in ("sgd", "adamw"):
        settings = expected[name]
        found, weights = train(sgtc, path, name, settings, expected["inputs"], folder)
        differences = [abs(a - b) / abs(b) for a, b in zip(found, losses[name])]
        target = reference / path.parent.name / f"{path.stem}.{name}.safetensors"
        weight, tensor = weight_difference(weights, read_safetensors(target),
                                           settings["lr"] * len(losses[name]))
        early, loss = max(differences[:EARLY_STEPS]), max(differences)
        fits = (len(found) == len(losses[name]) and early <= EARLY_TOLERANCE and
                loss <= LOSS_TOLERANCE and weight <= WEIGHT_TOLERANCE[name])
        good = good and fits
        print(f"{path.parent.name}/{path.name} {name}: first losses {early:.1e}, all {loss:.1e}, "
              f"weights {weight:.1e} "
              f"({tensor}, of {len(weights)}){'' if fits else '  DIFFERS'}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sgtc", type=pathlib.Path)
    parser.add_argument("exported", type=pathlib.Path)
    parser.add_argument("reference", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for losses in sorted(arguments.reference.glob("*/*.losses.json")):
            name = losses.name.replace(".losses.json", ".onnx")
            path = arguments.exported / losses.parent.name / name
            if arguments.names and not any(part in str(path) for part in arguments.names):
                continue
            try:
                bad += not compare(arguments.sgtc, path, arguments.reference, pathlib.Path(folder))
            except subprocess.CalledProcessError as error:
                print(f"{path.parent.name}/{path.name}: {error}", flush=True)
                bad += 1
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
