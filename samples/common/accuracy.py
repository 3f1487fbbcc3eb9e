"""Prints how many rows have their largest logit at the label: accuracy.py LOGITS.npy LABELS.npy"""

import sys

import numpy as np


def main():
    logits, labels = np.load(sys.argv[1]), np.load(sys.argv[2])
    assert logits.shape[0] == labels.shape[0], (logits.shape, labels.shape)
    right = int((logits.argmax(-1) == labels).sum())
    print(f"held-out accuracy: {right} of {labels.size} ({100 * right / labels.size:.1f} %)")


if __name__ == "__main__":
    main()
