#!/usr/bin/env python3
"""What NumPy can hold and DLPack cannot say is refused by examples/python/normc.py with a sentence, and what is no
checkpoint of a norm by examples/python/checkpoint.py.

    python_refusals.py PACKAGE.npk

The package must hold layer_norm and power_norm, forward and backward, f32.
"""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"))
import checkpoint  # noqa: E402
import normc  # noqa: E402

ROWS, FEATURES = 4, 8


def wrong_checkpoints(package):
    """How many checkpoints are refused otherwise than they should be."""
    layer, plain = package.norm("power_norm", FEATURES), package.norm("layer_norm", FEATURES)
    phi, gz = np.arange(FEATURES, dtype=np.float32), np.full((1, FEATURES), 4, np.float32)
    negative, infinite = phi.copy(), phi.copy()
    negative[3], infinite[2] = -1, np.inf
    holds = "a checkpoint of PowerNorm holds step, psi2 and nu; the state holds nothing"
    mean = "; a mean of squares is finite and not negative"
    cases = [
        ((plain, phi, gz, 7), {}, holds),
        ((layer, phi[:5], gz, 7), {}, "the checkpoint's running_phi has 5 features; the state has 8"),
        ((layer, phi, gz[:, :0], 7), {}, "the checkpoint's ema_gz has 0 features; the state has 8"),
        ((layer, phi, gz, -1), {}, "the checkpoint's iters is -1; it counts steps"),
        ((layer, phi, gz, 7), {"backward_decay": 1}, "the checkpoint's backward_decay is 1; it must be at least 0 and less than 1 (0.9 in the released scripts)"),
        ((layer, negative, gz, 7), {}, "the checkpoint's running_phi is -1 at feature 3" + mean),
        ((layer, infinite, gz, 7), {}, "the checkpoint's running_phi is inf at feature 2" + mean),
    ]  # fmt: skip
    wrong = 0
    for arguments, options, sentence in cases:
        try:
            checkpoint.load(*arguments, **options)
            said = "nothing"
        except ValueError as error:
            said = str(error)
        if said != sentence:
            wrong += 1
            print(f"expected: {sentence}\n    said: {said}")
    assert layer.state["step"] == 0, "what is refused changes nothing"
    checkpoint.load(layer, phi, gz, np.int64(4321), backward_decay=0.75)
    np.testing.assert_array_equal(layer.state["psi2"], phi)
    np.testing.assert_array_equal(layer.state["nu"], np.ones(FEATURES))
    assert layer.state["step"] == 4321
    return wrong


def main():
    package = normc.Package(sys.argv[1])
    norm = package.norm("layer_norm", FEATURES)
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
    wrong += wrong_checkpoints(package)
    sys.exit(f"{wrong} refusals are wrong" if wrong else 0)


if __name__ == "__main__":
    main()
