"""Trains the exported model in PyTorch and compares losses.

    compare.py LOG.jsonl TOKENS.bin LR [options of export_gpt2.py]

The options are those of the export: they make the same model with the same initial weights.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "models" / "export"), str(ROOT / "samples" / "common")]

import export_gpt2  # noqa: E402
import torch_run  # noqa: E402


def main():
    log, tokens, lr = sys.argv[1:4]
    arguments = export_gpt2.parse(sys.argv[4:])
    module = export_gpt2.NextTokenLoss(export_gpt2.build(arguments)).train()
    found = torch_run.logged(log)
    expected = torch_run.train(module, module.parameters(),
                               torch_run.windows(tokens, arguments.seq), arguments.batch,
                               len(found), float(lr), weight_decay=0.0)
    torch_run.compare(found, expected, tolerance=1e-4)


if __name__ == "__main__":
    main()
