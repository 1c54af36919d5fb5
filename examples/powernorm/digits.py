"""Images of handwritten digits with their labels, split into train, valid and test.

They are those of scikit-learn, 8 x 8 pixels of 17 greys, which Debian's package python3-sklearn holds; it is fetched as
those of corpus.py. Where that fails, gratings of ten directions with noise serve: the report's table of images names
what served.
"""

import gzip
import math
import pathlib
import subprocess

import numpy as np

import corpus

PACKAGE = "python3-sklearn"
DIGITS = "usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz"
SIDE, KINDS = 8, 10  # pixels of a side, and kinds of images
FALLBACK, GRATINGS = "fallback: gratings", 1800


def downloaded(package, cache):
    """Returns (images [count, side, side] about 0, labels)."""
    path = corpus.unpacked(package, pathlib.Path(cache)) / DIGITS
    table = np.loadtxt(gzip.decompress(path.read_bytes()).decode().splitlines(), delimiter=",")
    return table[:, :-1].reshape(-1, SIDE, SIDE) / 8 - 1, table[:, -1].astype(int)


def gratings():
    """Returns the same of waves whose direction is the label: no photographs, but a task of the same form everywhere."""
    drawn = np.random.default_rng(0)
    labels = np.arange(GRATINGS) % KINDS
    y, x = np.mgrid[:SIDE, :SIDE]
    angle, phase = math.pi * labels / KINDS, drawn.uniform(0, 2 * math.pi, GRATINGS)
    along = np.cos(angle)[:, None, None] * x + np.sin(angle)[:, None, None] * y
    return np.sin(2 * along + phase[:, None, None]) + 0.5 * drawn.normal(size=along.shape), labels


def load(cache, package=PACKAGE):
    """Returns ({split: (images as float32, labels as int64)}, [{"source", "images", "train", "valid", "test"}]).

    Of ten neighbours eight are train, one is valid and one is test.
    """
    try:
        source, (images, labels) = (package, downloaded(package, cache)) if package else (FALLBACK, gratings())
    except (OSError, subprocess.SubprocessError):
        source, (images, labels) = FALLBACK, gratings()
    rest = np.arange(len(labels)) % 10
    parts = {"train": rest < 8, "valid": rest == 8, "test": rest == 9}
    splits = {name: (images[part].astype("float32"), labels[part].astype("int64")) for name, part in parts.items()}
    counts = {name: int(part.sum()) for name, part in parts.items()}
    return splits, [{"source": source, "images": len(labels), **counts}]
