"""Exports the modules of exports/ and writes how PyTorch trains them, for exported_models.py.

    make_exported_models.py FOLDER [MODEL...]

For each MODEL (default: all) a folder: its inputs as .npy, the files of both exporters, and
expected.json with the losses of 8 steps on one batch by SGD and AdamW, in double precision. Files
are as the exporters write them, with their records but without the traces that name paths, and
compressed with gzip; options are those that docs/exporting.md recommends for training:
- ts17: torch.onnx.export(dynamo=False), opset 17, in training mode, without constant folding.
- dynamo18 and dynamo23: torch.onnx.export(dynamo=True) of these opsets, with its own optimizer.
tests/data/exported keeps some of these files, which tests/tool/exported_samples.sh trains. An
exporter that refuses a model, or whose file would differ in the opset alone, is listed with the
reason. Needs torch, torchvision, transformers and onnxscript.
"""

import copy
import gzip
import io
import json
import pathlib
import sys
import warnings

import numpy as np
import onnx
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent / "exports"))
import language_models  # noqa: E402
import other_models  # noqa: E402
import vision_models  # noqa: E402

MODELS = {make.__name__: make
          for make in language_models.MODELS + vision_models.MODELS + other_models.MODELS}
STEPS = 8
OPTIMIZERS = {
    "sgd": {"lr": 0.05},
    "adamw": {"lr": 0.001, "weight_decay": 0.01, "betas": [0.9, 0.999], "eps": 1e-8},
}


def double(tensor):
    return tensor.double() if tensor.is_floating_point() else tensor


def losses_of(module, inputs, name):
    module = copy.deepcopy(module).double().train()
    kind = torch.optim.SGD if name == "sgd" else torch.optim.AdamW
    optimizer = kind(module.parameters(), **OPTIMIZERS[name])
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = module(*(double(tensor) for tensor in inputs))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def export_torchscript(module, inputs, names, file):
    torch.onnx.export(module, inputs, file, input_names=names, output_names=["loss"],
                      opset_version=17, training=torch.onnx.TrainingMode.TRAINING,
                      do_constant_folding=False, dynamo=False)


def export_dynamo(module, inputs, names, file, opset):
    program = torch.onnx.export(module, inputs, input_names=names, output_names=["loss"],
                                opset_version=opset, dynamo=True, verbose=False)
    file.write(program.model_proto.SerializeToString())


EXPORTERS = {
    "ts17": export_torchscript,
    "dynamo18": lambda *arguments: export_dynamo(*arguments, 18),
    "dynamo23": lambda *arguments: export_dynamo(*arguments, 23),
}


def export(module, inputs, exporter):
    """The file's bytes, or the first line of what the exporter says against it, at its root."""
    file = io.BytesIO()
    try:
        EXPORTERS[exporter](copy.deepcopy(module).train(), tuple(inputs.values()), list(inputs),
                            file)
    except Exception as error:  # pylint: disable=broad-except
        while error.__cause__:
            error = error.__cause__
        text = str(error).strip() or type(error).__name__
        return None, text.splitlines()[0][:200]
    return file.getvalue(), None


def drop_traces(nodes):
    for node in nodes:
        node.ClearField("doc_string")
        kept = [entry for entry in node.metadata_props if "stack_trace" not in entry.key]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
        for attribute in node.attribute:
            drop_traces(attribute.g.node)


def without_traces(data):
    model = onnx.load_model_from_string(data)
    drop_traces(model.graph.node)
    for function in model.functions:
        drop_traces(function.node)
    return model


def write_model(folder, name):
    torch.manual_seed(7)
    module, inputs = MODELS[name]()
    folder.mkdir(parents=True, exist_ok=True)
    left_out, known = {}, []
    for exporter in EXPORTERS:
        data, reason = export(module, inputs, exporter)
        model = without_traces(data) if data else None
        operators = [node.op_type for node in model.graph.node] if model else None
        if operators in known:
            reason = "has the nodes of another opset"
        if reason:
            left_out[exporter] = reason
        else:
            known.append(operators)
            packed = gzip.compress(model.SerializeToString(), 9, mtime=0)
            (folder / f"{exporter}.onnx.gz").write_bytes(packed)
        print(f"{name}/{exporter}: {reason or f'{len(packed)} bytes'}", flush=True)
    for key, tensor in inputs.items():
        np.save(folder / f"{key}.npy", tensor.numpy())
    expected = {"torch": torch.__version__, "inputs": list(inputs), "left_out": left_out}
    for optimizer, settings in OPTIMIZERS.items():
        losses = losses_of(module, list(inputs.values()), optimizer)
        expected[optimizer] = {**settings, "losses": losses}
        print(f"{name} {optimizer}: {losses[0]:.6f} to {losses[-1]:.6f}", flush=True)
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


def main():
    target = pathlib.Path(sys.argv[1])
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    failed = []
    for name in sys.argv[2:] or MODELS:
        try:
            write_model(target / name, name)
        except Exception as error:  # pylint: disable=broad-except
            failed.append(name)
            print(f"{name}: {error}", flush=True)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
