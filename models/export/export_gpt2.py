"""Exports GPT-2 of the transformers package, with its loss, as an ONNX training graph.

    export_gpt2.py --layers 2 --width 64 --heads 4 --vocab 256 --seq 64 --batch 8 -o gpt2.onnx
    export_gpt2.py --from gpt2 --seq 256 --batch 4 -o gpt2.onnx       a published checkpoint

The inputs are input_ids and labels, both [batch, seq]; labels are the next tokens, that is
input_ids shifted by one, as `./train --tokens input_ids,labels=FILE` gives them.
Needs torch, transformers and onnxscript.
"""

import argparse

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from training_graph import export_training_graph


class NextTokenLoss(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, labels):
        logits = self.model(input_ids, use_cache=False).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def build(arguments):
    if arguments.checkpoint:
        return GPT2LMHeadModel.from_pretrained(
            arguments.checkpoint, resid_pdrop=arguments.dropout, embd_pdrop=arguments.dropout,
            attn_pdrop=arguments.dropout)
    torch.manual_seed(arguments.seed)
    return GPT2LMHeadModel(GPT2Config(
        n_layer=arguments.layers, n_embd=arguments.width, n_head=arguments.heads,
        vocab_size=arguments.vocab, n_positions=max(arguments.seq, arguments.context),
        resid_pdrop=arguments.dropout, embd_pdrop=arguments.dropout,
        attn_pdrop=arguments.dropout, bos_token_id=0, eos_token_id=0))


def parse(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", dest="output", required=True, help="ONNX file to write")
    parser.add_argument("--from", dest="checkpoint", help="name or folder of a checkpoint")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--vocab", type=int, default=50257)
    parser.add_argument("--context", type=int, default=0, help="positions (default: --seq)")
    parser.add_argument("--seq", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--exporter", choices=["auto", "torchscript", "dynamo"], default="auto")
    return parser.parse_args(words)


def main():
    arguments = parse()
    model = build(arguments)
    tokens = torch.randint(model.config.vocab_size, (arguments.batch, arguments.seq + 1))
    inputs = {"input_ids": tokens[:, :-1].contiguous(), "labels": tokens[:, 1:].contiguous()}
    export_training_graph(NextTokenLoss(model), inputs, arguments.output, arguments.exporter)


if __name__ == "__main__":
    main()
