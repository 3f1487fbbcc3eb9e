"""Writes the licences that every Debian machine has as a stream of bytes: prepare.py FOLDER

The text is that of the files in /usr/share/common-licenses, in the order of their names. The last
10 % are held out. A token is a byte, stored as uint16.
"""

import pathlib
import sys

import numpy as np

LICENCES = pathlib.Path("/usr/share/common-licenses")


def main():
    folder = pathlib.Path(sys.argv[1])
    files = sorted(path for path in LICENCES.iterdir() if not path.is_symlink())
    text = b"".join(path.read_bytes() for path in files)
    tokens = np.frombuffer(text, np.uint8).astype("<u2")
    train = len(tokens) * 9 // 10
    tokens[:train].tofile(folder / "train.bin")
    tokens[train:].tofile(folder / "held_out.bin")
    print(f"text: {len(files)} files of {LICENCES}, {train} bytes to train on, "
          f"{len(tokens) - train} held out")


if __name__ == "__main__":
    main()
