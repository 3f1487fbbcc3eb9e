"""Writes ONNX's own node tests as files: write_node_data.py FOLDER.

Each case becomes FOLDER/NAME/{model.onnx,test_data_set_0/{input,output}_K.pb}. A case of a newer
operator set than sgtc reads is declared to be of that one where its operators exist there. Cases that
cannot be written (values that are no tensors, operators that are newer, foreign domains) must be
listed in node_data_left_out.txt, so that the lists tell of all that is not run. The tests of Gradient,
which the package keeps as files, are copied.
"""

import fnmatch
import pathlib
import shutil
import sys

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

NEWEST_OPSET = 23
DOMAINS = ("", "ai.onnx.preview.training")
LEFT_OUT = pathlib.Path(__file__).with_name("node_data_left_out.txt")


def tensors_of(values):
    """The values as TensorProtos, or None when one is not a tensor."""
    protos = []
    for value in values:
        if isinstance(value, onnx.TensorProto):
            protos.append(value)
        elif isinstance(value, (numpy.ndarray, numpy.generic)):
            protos.append(numpy_helper.from_array(numpy.asarray(value)))
        else:
            return None
    return protos


def readable_model(model):
    """The model, of an operator set that sgtc reads; None when its operators are in none of these."""
    if any(entry.domain not in DOMAINS for entry in model.opset_import):
        return None
    newer = [entry for entry in model.opset_import
             if entry.domain == "" and entry.version > NEWEST_OPSET]
    if not newer:
        return model
    older = onnx.ModelProto()
    older.CopyFrom(model)
    for entry in older.opset_import:
        if entry.domain == "":
            entry.version = NEWEST_OPSET
    try:
        onnx.checker.check_model(older)
    except onnx.checker.ValidationError:
        return None
    return older


def write_case(folder, case):
    """Whether the case could be written."""
    inputs, outputs = (tensors_of(values) for values in case.data_sets[0])
    model = readable_model(case.model)
    if inputs is None or outputs is None or model is None:
        return False
    data = folder / case.name / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (folder / case.name / "model.onnx").write_bytes(model.SerializeToString())
    for kind, protos in (("input", inputs), ("output", outputs)):
        for k, proto in enumerate(protos):
            (data / f"{kind}_{k}.pb").write_bytes(proto.SerializeToString())
    return True


def copy_gradient_cases(folder):
    cases = [case for case in load_model_tests(kind="simple")
             if case.name.startswith("test_gradient")]
    for case in cases:
        shutil.copytree(case.model_dir, folder / case.name)
    return len(cases)


def check_listed(left_out):
    """Ends the program when a case is neither written nor listed."""
    patterns = [line.split()[0] for line in LEFT_OUT.read_text().splitlines()
                if line and not line.startswith("#")]
    unlisted = [name for name in left_out
                if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
    if unlisted:
        sys.exit(f"not in {LEFT_OUT.name}: {' '.join(unlisted)}")


def main():
    folder = pathlib.Path(sys.argv[1])
    cases = load_model_tests(kind="node")
    left_out = [case.name for case in cases if not write_case(folder, case)]
    check_listed(left_out)
    written = len(cases) - len(left_out) + copy_gradient_cases(folder)
    print(f"{written} cases in {folder}, {len(left_out)} left out")


if __name__ == "__main__":
    main()
