"""A checkpoint of ONNX Runtime's training API, as bytes."""

import struct

import numpy as np
import onnx


class FlatBuffer:
    """Writes a FlatBuffer front to back: parts are behind those that refer to them."""

    def __init__(self):
        self.bytes = bytearray()

    def append(self, layout, *values):
        at = len(self.bytes)
        self.bytes += struct.pack("<" + layout, *values)
        return at

    def refer(self, place, at):
        struct.pack_into("<I", self.bytes, place, at - place)

    def table(self, place, *sizes):
        """A table that `place` refers to; returns where its fields are (size 0: left out)."""
        offsets = [4 + sum(sizes[:i]) if size else 0 for i, size in enumerate(sizes)]
        start = self.append(f"HH{len(sizes)}H", 4 + 2 * len(sizes), 0, *offsets)
        at = self.append("i", len(self.bytes) - start)
        self.refer(place, at)
        self.bytes += bytes(sum(sizes))
        return [at + offset for offset in offsets]

    def vector(self, place, layout, values):
        self.refer(place, self.append("I", len(values)))
        return [self.append(layout, value) for value in values]

    def text(self, place, value):
        self.refer(place, self.append(f"I{len(value)}s", len(value), value.encode()))

    def tensor(self, place, name, values):
        fields = self.table(place, 4, 0, 4, 4, 4)
        self.text(fields[0], name)
        self.vector(fields[2], "q", [len(values)])
        struct.pack_into("<i", self.bytes, fields[3], onnx.TensorProto.FLOAT)
        self.vector(fields[4], "B", np.array(values, np.float32).tobytes())


def checkpoint():
    """A checkpoint of ONNX Runtime for the model of compile_model.cc, after three steps."""
    buffer = FlatBuffer()
    buffer.append("I4s", 0, b"ODTC")
    root = buffer.table(0, 4, 4, 4)
    module = buffer.table(root[1], 4, 4)
    buffer.tensor(*buffer.vector(module[0], "I", [0]), "w", [1, 2])
    buffer.tensor(*buffer.vector(module[1], "I", [0]), "frozen", [5])
    group = buffer.table(*buffer.vector(root[2], "I", [0]), 0, 8, 4, 4)
    struct.pack_into("<q", buffer.bytes, group[1], 3)
    state = buffer.table(*buffer.vector(group[3], "I", [0]), 4, 4)
    buffer.text(state[0], "w")
    for i, place in enumerate(buffer.vector(state[1], "I", [0, 0])):
        buffer.tensor(place, f"momentum{i}", [0.1, 0.2])
    return bytes(buffer.bytes)
