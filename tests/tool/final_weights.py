"""Trains models that PyTorch exported and compares the final weights with PyTorch's.

usage: final_weights.py SGTC EXPORTED_FOLDER WORK_FOLDER

reference/final_weights.json holds sketches of the weights after the steps of expected.json
(reference/make_final_sketches.py makes them). The relative Frobenius distance of the whole model,
estimated from the sketches, has to be within the tolerance.
"""

import json
import pathlib
import subprocess
import sys

from harness import read_safetensors

sys.path.insert(0, str(pathlib.Path(__file__).parent / "reference"))
from sketch import relative_distance, sketch  # noqa: E402

TOLERANCE = 1e-3
OPTIONS = {"hf_bert_mlm/ts17": ["--padding-index", "m.bert.embeddings.word_embeddings.weight=0"]}


def final_weights(sgtc, model, optimizer, expected, work):
    options = ["--optimizer", optimizer]
    settings = expected[optimizer]
    if optimizer == "adamw":
        options += ["--betas", ",".join(map(str, settings["betas"])), "--eps",
                    str(settings["eps"]), "--weight-decay", str(settings["weight_decay"])]
    options += OPTIONS.get(f"{model.parent.name}/{model.stem}", [])
    program, weights = work / "train", work / "weights.safetensors"
    subprocess.run([sgtc, model, "-o", program, *options], check=True, stderr=subprocess.DEVNULL)
    data = [f"--data={name}={model.parent / name}.npy" for name in expected["inputs"]]
    subprocess.run([program, *data, "--quiet", "--steps", str(len(settings["losses"])), "--lr",
                    str(settings["lr"]), "--save", weights], check=True)
    return read_safetensors(weights)


def main():
    sgtc, root, work = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    text = (pathlib.Path(__file__).parent / "reference/final_weights.json").read_text()
    failed = False
    for key, reference in json.loads(text).items():
        name, optimizer = key.split()
        model = root / f"{name}.onnx"
        expected = json.loads((model.parent / "expected.json").read_text())
        found = final_weights(sgtc, model, optimizer, expected, work)
        missing = sorted(set(reference["tensors"]) - set(found))
        if missing:
            print(f"FAIL {key}: not saved: {', '.join(missing)}")
            failed = True
            continue
        distance = relative_distance(sketch({n: found[n] for n in reference["tensors"]}), reference)
        good = distance <= TOLERANCE
        failed |= not good
        print(f"{'ok  ' if good else 'FAIL'} {key}: relative distance {distance:.1e}")
    sys.exit(1 if failed else 0)


main()
