"""Writes scikit-learn's 1,797 digits of 8x8 pixels as .npy files: digits.py FOLDER [--images]

The last 20 % are held out, as other people wrote them. Pixels become numbers from 0 to 1, in rows
of 64, or with --images in the shape [1, 8, 8].
"""

import argparse
import pathlib

import numpy as np
from sklearn.datasets import load_digits


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--images", action="store_true")
    arguments = parser.parse_args()
    x, labels = load_digits(return_X_y=True)
    x = (x / 16).astype(np.float32)
    if arguments.images:
        x = x.reshape(-1, 1, 8, 8)
    train = len(x) * 8 // 10
    for name, part in (("train", slice(None, train)), ("held_out", slice(train, None))):
        np.save(arguments.folder / f"{name}_x.npy", x[part])
        np.save(arguments.folder / f"{name}_labels.npy", labels[part].astype(np.int64))


if __name__ == "__main__":
    main()
