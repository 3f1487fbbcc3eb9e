"""Trains exported models in PyTorch in float32 and under autocast, and writes both losses.

    make_bf16_losses.py DATA/exported FILE

Each model is run as its file says, in PyTorch's operators, for STEPS full-batch steps of AdamW with
the settings of expected.json. Under autocast the operators that are float32 on GPUs are float32
here too. FILE is tests/tool/reference/bf16_losses.json. Needs torch.
"""

import argparse
import json
import pathlib

import numpy as np
import torch

from onnx_in_torch import TorchGraph

STEPS = 20
MODELS = ("hf_bert_mlm/ts17", "hf_gpt2/dynamo18", "hf_gpt2/dynamo23", "hf_llama_gqa/dynamo23",
          "hf_vit/dynamo23", "torch_vae/ts17", "tv_resnet_small/ts17")


def losses(path, feeds, settings, is_mixed):
    graph = TorchGraph(path, torch.float32)
    optimizer = torch.optim.AdamW([graph.weights[name] for name in graph.trained],
                                  lr=settings["lr"], betas=tuple(settings["betas"]),
                                  eps=settings["eps"], weight_decay=settings["weight_decay"])
    found = []
    for _ in range(STEPS):
        with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
            loss = graph.loss(feeds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("exported", type=pathlib.Path)
    parser.add_argument("file", type=pathlib.Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    table = {}
    for model in MODELS:
        path = arguments.exported / f"{model}.onnx"
        expected = json.loads((path.parent / "expected.json").read_text())
        feeds = {name: torch.from_numpy(np.load(path.parent / f"{name}.npy"))
                 for name in expected["inputs"]}
        wide, mixed = (losses(path, feeds, expected["adamw"], m) for m in (False, True))
        table[model] = {"fp32": wide, "bf16": mixed}
        off = max(abs(a - b) for a, b in zip(wide, mixed))
        print(f"{model}: bf16 differs by at most {off:.1e}, from {wide[0]:.4f} to {wide[-1]:.4f}")
    arguments.file.write_text(json.dumps(table, indent=0) + "\n")


if __name__ == "__main__":
    main()
