"""Writes ONNX's own node tests as files: write_node_data.py FOLDER.

Each case becomes FOLDER/NAME/{model.onnx,test_data_set_0/{input,output}_K.pb}; cases whose values
are not tensors are left out. The tests of Gradient, which the package keeps as files, are copied.
"""

import pathlib
import shutil
import sys

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests


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


def write_case(folder, case):
    inputs, outputs = (tensors_of(values) for values in case.data_sets[0])
    if inputs is None or outputs is None:
        return False
    data = folder / case.name / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (folder / case.name / "model.onnx").write_bytes(case.model.SerializeToString())
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


def main():
    folder = pathlib.Path(sys.argv[1])
    written = sum(write_case(folder, case) for case in load_model_tests(kind="node"))
    written += copy_gradient_cases(folder)
    print(f"{written} cases in {folder}")


if __name__ == "__main__":
    main()
