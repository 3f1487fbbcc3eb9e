"""Writes scikit-learn's 1,797 digits of 8x8 pixels as .npy files: digits.py FOLDER [--images] [--shifts]

The last 20 % are held out, as other people wrote them. Pixels become numbers from 0 to 1, in rows
of 64, or with --images in the shape [1, 8, 8]. With --shifts each training image is there nine
times: as it is, and moved by one pixel in each of the eight directions.
"""

import argparse
import pathlib

import numpy as np
from sklearn.datasets import load_digits


def shifted(images):
    """Nine copies of images [N, 64], in the order of the shifts."""
    padded = np.pad(images.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    copies = [padded[:, dy:dy + 8, dx:dx + 8] for dy in range(3) for dx in range(3)]
    return np.concatenate(copies).reshape(-1, 64)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--images", action="store_true")
    parser.add_argument("--shifts", action="store_true")
    arguments = parser.parse_args()
    x, labels = load_digits(return_X_y=True)
    x = (x / 16).astype(np.float32)
    train = len(x) * 8 // 10
    for name, part in (("train", slice(None, train)), ("held_out", slice(train, None))):
        images, classes = x[part], labels[part].astype(np.int64)
        if arguments.shifts and name == "train":
            images, classes = shifted(images), np.tile(classes, 9)
        if arguments.images:
            images = images.reshape(-1, 1, 8, 8)
        np.save(arguments.folder / f"{name}_x.npy", images)
        np.save(arguments.folder / f"{name}_labels.npy", classes)


if __name__ == "__main__":
    main()
