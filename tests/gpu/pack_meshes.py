"""Compiles small models for one Hopper GPU and for meshes of several, and writes their data.

pack_meshes.py FOLDER [MESH]...   with SGTC and SGTC_MODEL naming the two tools

FOLDER/NAME gets a program for each mesh, of that name and of the same rows per step, and
`arguments.json` with what a run is given. Meshes: 1x2 and 2x1 unless named; 1x1 always.
"""

import pathlib
import sys

import numpy as np

from packing import compile_programs, images, tokens

MICRO_BATCHES = 4  # of all replicas together
RANDOM = np.random.default_rng(23)

# By name: words for sgtc-model, words for sgtc, data.
MODELS = {
    "mlp": ("mlp --inputs 512 --hidden 2048,2048,1024 --classes 10 --batch 128", "",
            images(RANDOM, 4096, 512)),
    "cnn": ("cnn --channels 3 --size 16 --widths 8,16 --batch 8", "",
            images(RANDOM, 320, 3, 16, 16)),
    "gpt": ("gpt2 --layers 4 --width 256 --heads 4 --vocab 512 --seq 128 --dropout 0.1 --batch 4",
            "--clip-norm 1 --precision bf16", tokens(RANDOM, 320, 128, 512)),
}


def words_for(mesh, words):
    replicas = int(mesh.split("x")[1])
    return ["--target", "sm_90a", "--mesh", mesh, "--micro-batches", MICRO_BATCHES // replicas,
            *words.split()]


def main():
    meshes = ["1x1", *(sys.argv[2:] or ["1x2", "2x1"])]
    for name, (model, words, data) in MODELS.items():
        programs = {mesh: words_for(mesh, words) for mesh in meshes}
        compile_programs(pathlib.Path(sys.argv[1]).absolute() / name, model, programs, data)


main()
