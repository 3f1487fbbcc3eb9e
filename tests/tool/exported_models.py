"""Compiles and trains the models that PyTorch exported and compares every loss with PyTorch's.

usage: exported_models.py [--one-optimizer] SGTC EXPORTED_FOLDER WORK_FOLDER [MODEL/FILE...]

Each folder has expected.json (losses of 8 full-batch steps), the inputs as .npy, and the files of
several exporters, as .onnx or .onnx.gz. With --one-optimizer each file is trained by SGD or by
AdamW, but every model by both. Prints one line per run; exits with 1 if a loss is off by more than
the tolerances below.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys

TOLERANCE = 1e-4
# SqueezeNet's losses depend on the last bits: some inputs of a ReLU or a maximum lie within 1e-6 of
# a tie, rounding may decide it, and the high learning rates multiply the difference. PyTorch does
# not reproduce itself: running ts17 with one thread moves its losses by up to 7.1e-3 from SGD's
# third step and by up to 1.4e-2 from AdamW's fourth (double precision: 1e-3 and 4e-3); the losses
# before move by 2e-5 at most. sgtc was seen to follow the run with one thread within 2e-5. So this
# many losses are held to TOLERANCE and the others to 1.4 times PyTorch's own deviation. ResNet's
# losses move by 4e-5 at most. The small ShuffleNet's last loss by SGD moves by 5.0e-4 in PyTorch's
# own single precision.
REPRODUCIBLE = {("tv_squeezenet1_1", "sgd"): 2, ("tv_squeezenet1_1", "adamw"): 3,
                ("shufflenet", "sgd"): 7}
CHAOTIC_TOLERANCE = {("tv_squeezenet1_1", "sgd"): 1e-2, ("tv_squeezenet1_1", "adamw"): 2e-2,
                     ("shufflenet", "sgd"): 7e-4}
# The torch.export exporter freezes BatchNormalization, and its optimizer leaves -exp(A_log) of a
# state space in place of A_log: such files cannot train as PyTorch does.
LOST_IN_EXPORT = {
    "tv_resnet_small": ("dynamo18", "dynamo23"), "mobilenet_v3": ("dynamo18", "dynamo23"),
    "mamba": ("dynamo18", "dynamo23"),
}
# What a file without the exporter's record does not say of its model: the padding of a table.
PADDED_TABLES = {
    "hf_bert_mlm": "m.bert.embeddings.word_embeddings.weight",
    "albert": "model.albert.embeddings.word_embeddings.weight",
    "deberta": "model.deberta.embeddings.word_embeddings.weight",
    "distilbert": "model.distilbert.embeddings.word_embeddings.weight",
    "lstm_classifier": "model.embedding.weight",
}
# Parameters that PyTorch does not train, which no file says.
FROZEN = {
    ("whisper_encoder", "ts17"): "model.encoder.embed_positions.weight",
    ("whisper_encoder", "dynamo18"): "embedding",
}


def run(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"exit {result.returncode}: {' '.join(command)}\n{result.stderr}")


def optimizer_options(name, expected):
    if name == "sgd":
        return ["--optimizer", "sgd"]
    betas = ",".join(map(str, expected["betas"]))
    return ["--optimizer", "adamw", "--betas", betas, "--eps", str(expected["eps"]),
            "--weight-decay", str(expected["weight_decay"])]


def model_file(folder, file, work):
    """The path of a model; a compressed one is unpacked into the folder `work`."""
    path = os.path.join(folder, file + ".onnx")
    if os.path.exists(path):
        return path
    unpacked = os.path.join(work, file + ".onnx")
    with gzip.open(path + ".gz") as source, open(unpacked, "wb") as target:
        target.write(source.read())
    return unpacked


def losses(sgtc, folder, file, optimizer, expected, work):
    program = os.path.join(work, "train")
    log = os.path.join(work, "log.jsonl")
    if os.path.exists(log):
        os.remove(log)
    model = model_file(folder, file, work)
    name = os.path.basename(folder)
    table, frozen = PADDED_TABLES.get(name), FROZEN.get((name, file))
    extra = ["--padding-index", f"{table}=0"] if table and file == "ts17" else []
    extra += ["--freeze", frozen] if frozen else []
    run([sgtc, model, "-o", program] + optimizer_options(optimizer, expected[optimizer]) + extra)
    command = [program, "--steps", str(len(expected[optimizer]["losses"])), "--lr",
               str(expected[optimizer]["lr"]), "--log", log, "--quiet"]
    for name in expected["inputs"]:
        command += ["--data", f"{name}={os.path.join(folder, name + '.npy')}"]
    run(command)
    with open(log) as lines:
        steps = [json.loads(line) for line in lines]
    return [step["loss"] for step in steps if "loss" in step]


def check(sgtc, root, model, file, optimizer, work):
    folder = os.path.join(root, model)
    with open(os.path.join(folder, "expected.json")) as text:
        expected = json.load(text)
    try:
        found = losses(sgtc, folder, file, optimizer, expected, work)
    except RuntimeError as error:
        print(f"FAIL {model}/{file} {optimizer}: {error}")
        return False
    wanted = expected[optimizer]["losses"]
    if len(found) != len(wanted):
        print(f"FAIL {model}/{file} {optimizer}: {len(found)} losses, expected {len(wanted)}")
        return False
    off = [abs(f - w) / abs(w) for f, w in zip(found, wanted)]
    reproducible = REPRODUCIBLE.get((model, optimizer), len(off))
    worst = max(off[:reproducible])
    within = worst <= TOLERANCE and all(
        difference <= CHAOTIC_TOLERANCE[model, optimizer] for difference in off[reproducible:])
    comparable = file not in LOST_IN_EXPORT.get(model, ())
    good = within or (not comparable and found[-1] < found[0])
    note = "" if comparable else " (lost in export: must only learn)"
    if reproducible < len(off):
        note = f" (first {reproducible} losses; worst of all {max(off):.1e})"
    print(f"{'ok  ' if good else 'FAIL'} {model}/{file} {optimizer}: worst relative {worst:.1e}{note}")
    return good


def files_of(folder):
    """Names of the models in a folder, without extensions."""
    names = [name.removesuffix(".gz") for name in sorted(os.listdir(folder))]
    return [name.removesuffix(".onnx") for name in names if name.endswith(".onnx")]


def optimizers_of(position, one):
    """Those that train the file at `position` of its folder."""
    return (("adamw", "sgd")[position % 2],) if one else ("sgd", "adamw")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--one-optimizer", action="store_true")
    parser.add_argument("sgtc")
    parser.add_argument("root")
    parser.add_argument("work")
    parser.add_argument("chosen", nargs="*")
    a = parser.parse_args()
    good = True
    for model in sorted(os.listdir(a.root)):
        if model == "torch_unet_tiny" and not a.chosen:
            continue
        for position, file in enumerate(files_of(os.path.join(a.root, model))):
            if a.chosen and f"{model}/{file}" not in a.chosen:
                continue
            for optimizer in optimizers_of(position, a.one_optimizer):
                good = check(a.sgtc, a.root, model, file, optimizer, a.work) and good
    sys.exit(0 if good else 1)


main()
