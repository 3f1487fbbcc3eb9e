"""Trains the modules behind exported models in PyTorch and writes sketches of their final weights.

    make_final_sketches.py SGTC DATA/exported FILE

GPT-2 and BERT are transformers' own modules, with the sizes and the weights of the exported file
(which `SGTC` and `./train --steps 0 --save` read); ResNet is the file itself, run in PyTorch, since
its module is not known. Steps are those of expected.json. A module is accepted if its losses are
those of expected.json. FILE is tests/tool/reference/final_weights.json. Needs torch and
transformers.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

import numpy as np
import torch
import transformers

from onnx_in_torch import TorchGraph
from sketch import sketch

LOSS_TOLERANCE = 1e-5
OPTIONS = {"hf_bert_mlm/ts17": ["--padding-index", "m.bert.embeddings.word_embeddings.weight=0"]}


def read_safetensors(path):
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    return {name: np.frombuffer(data[begin + e["data_offsets"][0]:begin + e["data_offsets"][1]],
                                "<f4").reshape(e["shape"])
            for name, e in header.items() if name != "__metadata__"}


def initial_weights(sgtc, path, inputs):
    with tempfile.TemporaryDirectory() as folder:
        program, weights = f"{folder}/train", pathlib.Path(folder, "weights.safetensors")
        options = OPTIONS.get(f"{path.parent.name}/{path.stem}", [])
        subprocess.run([sgtc, path, "-o", program, *options], check=True,
                       stderr=subprocess.DEVNULL)
        data = [f"--data={name}={path.parent / name}.npy" for name in inputs]
        subprocess.run([program, *data, "--quiet", "--steps", "0", "--save", weights], check=True)
        return read_safetensors(weights)


def gpt2(weights, feeds, heads):
    positions, width = weights["embedding_1"].shape[1:]
    config = transformers.GPT2Config(
        vocab_size=weights["m.lm_head.weight"].shape[0], n_positions=positions, n_embd=width,
        n_layer=2, n_head=heads, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    module = transformers.GPT2LMHeadModel(config)
    names = {f"m.{name}": name for name in module.state_dict()}
    names["embedding_1"] = "transformer.wpe.weight"

    def loss():
        return module(feeds["input_ids"], labels=feeds["labels"]).loss

    return module, names, loss


def bert(weights, feeds, heads):
    embeddings = "m.bert.embeddings.word_embeddings.weight"
    vocabulary, width = weights[embeddings].shape
    config = transformers.BertConfig(
        vocab_size=vocabulary, hidden_size=width, num_hidden_layers=2, num_attention_heads=heads,
        intermediate_size=weights["m.bert.encoder.layer.0.intermediate.dense.bias"].size,
        max_position_embeddings=weights["m.bert.embeddings.position_embeddings.weight"].shape[0],
        type_vocab_size=weights["m.bert.embeddings.token_type_embeddings.weight"].shape[0],
        hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    module = transformers.BertForMaskedLM(config)

    def loss():
        return module(feeds["input_ids"], attention_mask=feeds["attention_mask"],
                      labels=feeds["labels"]).loss

    return module, {f"m.{name}": name for name in module.state_dict()}, loss


MODULES = {"hf_gpt2/dynamo23": gpt2, "hf_bert_mlm/ts17": bert}


def optimizer_of(name, parameters, settings):
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=settings["lr"])
    return torch.optim.AdamW(parameters, lr=settings["lr"], betas=tuple(settings["betas"]),
                             eps=settings["eps"], weight_decay=settings["weight_decay"])


def train(parameters, loss, name, settings):
    optimizer = optimizer_of(name, parameters, settings)
    losses = []
    for _ in settings["losses"]:
        value = loss()
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return max(abs(a - b) / abs(b) for a, b in zip(losses, settings["losses"]))


def trained_module(build, weights, feeds, name, settings):
    """Final tensors by the file's names. Of numbers of heads, which no weight shows, the one that
    fits the losses best is taken."""
    found = []
    for heads in (1, 2, 4, 8):
        module, names, loss = build(weights, feeds, heads)
        state = {names[n]: torch.from_numpy(w.copy()).reshape(module.state_dict()[names[n]].shape)
                 for n, w in weights.items() if n in names}
        module.load_state_dict(state, strict=False)
        module.tie_weights()
        module.train()
        off = train(list(module.parameters()), loss, name, settings)
        final = module.state_dict()
        found.append((off, {n: final[names[n]].numpy() for n in weights if n in names}))
    off, final = min(found, key=lambda entry: entry[0])
    if off > LOSS_TOLERANCE:
        raise SystemExit("no number of heads gives the losses of expected.json")
    return final, off


def trained_file(path, feeds, name, settings):
    graph = TorchGraph(path)
    off = train([graph.weights[n] for n in graph.trained], lambda: graph.loss(feeds), name,
                settings)
    return {n: t.detach().numpy() for n, t in graph.weights.items()}, off


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sgtc")
    parser.add_argument("exported", type=pathlib.Path)
    parser.add_argument("file", type=pathlib.Path)
    arguments = parser.parse_args()
    sketches = {}
    for model in ("hf_gpt2/dynamo23", "hf_bert_mlm/ts17", "tv_resnet_small/ts17"):
        path = arguments.exported / f"{model}.onnx"
        expected = json.loads((path.parent / "expected.json").read_text())
        feeds = {name: torch.from_numpy(np.load(path.parent / f"{name}.npy"))
                 for name in expected["inputs"]}
        for name in ("sgd", "adamw"):
            if model in MODULES:
                weights = initial_weights(arguments.sgtc, path, expected["inputs"])
                final, off = trained_module(MODULES[model], weights, feeds, name, expected[name])
            else:
                final, off = trained_file(path, feeds, name, expected[name])
            sketches[f"{model} {name}"] = {"tensors": sorted(final), **sketch(final)}
            print(f"{model} {name}: {len(final)} tensors, losses differ by at most {off:.1e}")
    arguments.file.write_text(json.dumps(sketches, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
