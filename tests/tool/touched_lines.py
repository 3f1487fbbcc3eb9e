"""Which memory of its arena a program touched, beside what its plan has buffers for.

A program that SGTC_POISON fills with a pattern prints what of each rank's arena it changed, in lines
of 64 bytes.
"""

import re

import numpy as np

LINE = 64  # bytes


def planned_lines(position, alignment=LINE):
    """Numbers of the lines in which the buffers of a position of a plan (JSON) lie, with what fills
    each up to the alignment."""
    lines = np.zeros(position["arena_bytes"] // LINE, bool)
    for buffer in position["buffers"]:
        for instance in range(buffer.get("count", 1)):
            begin = buffer.get("offset", 0) + instance * buffer.get("stride", 0)
            end = -(-(begin + buffer["bytes"]) // alignment) * alignment
            lines[begin // LINE:end // LINE] = True
    return np.flatnonzero(lines)


def compare_touched(position, touched, alignment=LINE):
    """Whether a rank touched all lines of its plan's buffers and no other, and a text of both. With
    another alignment than a line what fills buffers up to it may be touched, and the number of lines
    can hide a missing one."""
    highest, total, lines = touched
    planned = planned_lines(position)
    filled = len(planned_lines(position, alignment))
    equal = (total == position["arena_bytes"] and planned[-1] * LINE < highest <= total and
             len(planned) <= lines // LINE <= filled)
    return equal, (f"touches {lines} bytes of the plan's {len(planned) * LINE}, "
                   f"up to byte {highest} of {total}")


def touched_lines(output):
    """(end of the highest byte, bytes of the arena, bytes in touched lines) of each rank."""
    found = re.findall(r"highest byte touched (\d+) of (\d+), (\d+) bytes in touched lines of 64",
                       output)
    return [tuple(int(number) for number in each) for each in found]
