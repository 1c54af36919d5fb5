#!/usr/bin/env python3
"""What NumPy can hold and DLPack cannot say is refused by examples/python/normc.py with a sentence.

    python_refusals.py PACKAGE.npk

The package must hold layer_norm, forward and backward, f32.
"""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"))
import normc  # noqa: E402

ROWS, FEATURES = 4, 8


def main():
    norm = normc.Package(sys.argv[1]).norm("layer_norm", FEATURES)
    x, one = np.ones((ROWS, FEATURES), np.float32), np.ones(FEATURES, np.float32)
    packed = np.zeros((ROWS, FEATURES), [("flag", np.uint8), ("value", np.float32)])["value"]
    frozen = np.empty_like(x)
    frozen.flags.writeable = False
    cases = [
        ((x.astype(">f4"), one, one), {}, "x has dtype >f4, which has no name in DLPack"),
        ((x.astype(np.complex64), one, one), {}, "x has dtype complex64, which has no name in DLPack"),
        ((packed, one, one), {"out": x}, "x has strides of (40, 5) bytes; they must be multiples of its elements' 4"),
        ((x, one, one), {"out": frozen}, "y is written, and is a read-only array"),
        ((x, [1.0] * FEATURES, one), {}, "scale is a list; it must be a NumPy array"),
    ]
    wrong = 0
    for arguments, options, sentence in cases:
        try:
            norm.forward(*arguments, **options)
            said = "nothing"
        except normc.Error as error:
            said = str(error)
        if said != sentence:
            wrong += 1
            print(f"expected: {sentence}\n    said: {said}")
    np.testing.assert_array_equal(norm.forward(x, one, one), one * np.ones_like(x))
    assert norm.forward(np.zeros((0, FEATURES), np.float32), one, one).shape == (0, FEATURES), "an empty batch is none"
    sys.exit(f"{wrong} of {len(cases)} refusals are wrong" if wrong else 0)


if __name__ == "__main__":
    main()
