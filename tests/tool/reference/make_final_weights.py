"""Trains exported models in PyTorch and writes the final weights as references for sgtc.

    make_final_weights.py DATA/exported OUTPUT [NAME...]

For each MODEL/FILE.onnx under the folder of exported models, or those whose path contains a NAME,
it trains as many steps of full-batch SGD and AdamW as expected.json has losses, from the weights in
the file, and writes OUTPUT/MODEL/FILE.{sgd,adamw}.safetensors with all float tensors under their
names in the file, and FILE.losses.json. It prints the largest relative difference of its losses
from those of the module that was exported. They differ where the file trains something else: the
torch.export exporter's optimizer merges parameters that begin equal (biases of zeros), and a Gather
trains the padding row that the module's embedding keeps. Needs torch.
"""

import argparse
import json
import pathlib
import sys

import numpy as np
import torch

from onnx_in_torch import TorchGraph

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from safetensors_file import write_safetensors  # noqa: E402


def optimizer_of(name, parameters, settings):
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=settings["lr"])
    return torch.optim.AdamW(parameters, lr=settings["lr"], betas=tuple(settings["betas"]),
                             eps=settings["eps"], weight_decay=settings["weight_decay"])


def train(path, feeds, name, settings):
    graph = TorchGraph(path)
    optimizer = optimizer_of(name, [graph.weights[n] for n in graph.trained], settings)
    losses = []
    for _ in settings["losses"]:
        loss = graph.loss(feeds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return graph, losses


def make(path, output):
    expected = json.loads((path.parent / "expected.json").read_text())
    feeds = {name: torch.from_numpy(np.load(path.parent / f"{name}.npy"))
             for name in expected["inputs"]}
    found = {}
    for name in ("sgd", "adamw"):
        graph, losses = train(path, feeds, name, expected[name])
        worst = max(abs(a - b) / abs(b) for a, b in zip(losses, expected[name]["losses"]))
        target = output / path.parent.name / f"{path.stem}.{name}.safetensors"
        write_safetensors(target, {n: w.detach().numpy() for n, w in graph.weights.items()})
        found[name] = losses
        print(f"{path.parent.name}/{path.name} {name}: {len(graph.trained)} trained tensors, "
              f"losses differ by at most {worst:.1e}")
    (output / path.parent.name / f"{path.stem}.losses.json").write_text(json.dumps(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("exported", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    for path in sorted(arguments.exported.glob("*/*.onnx")):
        if arguments.names and not any(name in str(path) for name in arguments.names):
            continue
        try:
            make(path, arguments.output)
        except NotImplementedError as error:
            print(f"{path.parent.name}/{path.name}: skipped: {error}")


if __name__ == "__main__":
    main()
