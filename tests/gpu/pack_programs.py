"""Compiles small models for a CPU and for a Hopper GPU, and writes their data.

pack_programs.py FOLDER   with SGTC and SGTC_MODEL naming the two tools

FOLDER/NAME gets the programs `cpu` and `gpu`, `ptx` (without machine code for the GPU), `ampere`
(for A100, which the driver compiles anew for Hopper), and `arguments.json` with what a run is
given.
"""

import pathlib
import sys

import numpy as np

from packing import compile_programs, images, tokens

RANDOM = np.random.default_rng(17)

# By name: words for sgtc-model, words for sgtc, data.
PROGRAMS = {
    "mlp": ("mlp --inputs 61 --hidden 128,96 --classes 10 --batch 32",
            "--clip-norm 1 --micro-batches 2", images(RANDOM, 640, 61)),
    "cnn": ("cnn --channels 3 --size 16 --widths 8,16 --batch 8", "",
            images(RANDOM, 160, 3, 16, 16)),
    "resnet": ("resnet --blocks 1,1,1 --width 8 --size 32 --classes 10 --batch 8", "",
               images(RANDOM, 160, 3, 32, 32)),
    "gpt": ("gpt2 --layers 2 --width 96 --heads 3 --vocab 211 --seq 40 --dropout 0.1 --batch 2",
            "--clip-norm 1 --micro-batches 2", tokens(RANDOM, 80, 40, 211)),
}


TARGETS = {"cpu": ["cpu"], "gpu": ["sm_90a"], "ptx": ["sm_90a", "--ptxas", "none"],
           "ampere": ["sm_80"]}


def main():
    for name, (model, words, data) in PROGRAMS.items():
        programs = {program: ["--target", *target, *words.split()]
                    for program, target in TARGETS.items()}
        compile_programs(pathlib.Path(sys.argv[1]).absolute() / name, model, programs, data)


main()
