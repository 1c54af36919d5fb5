#!/usr/bin/env python3
"""Trains a linear layer that is followed by PowerNorm, in NumPy, and checks its gradients.

    train.py PACKAGE.npk

The package must hold power_norm and layer_norm, forward and backward, f32.
"""

import sys

import numpy as np

import normc

ROWS, INPUTS, FEATURES, STEPS = 64, 6, 8, 300


def check_layer_norm(package, rng):
    """The largest difference between gradients and finite differences of sum(dy * y)."""
    norm = package.norm("layer_norm", FEATURES)
    x, dy = rng.standard_normal((2, ROWS, FEATURES), np.float32)
    scale, bias = rng.standard_normal((2, FEATURES), np.float32)
    norm.forward(x, scale, bias)
    dx, dscale, dbias = norm.backward(x, dy, scale, bias)
    worst = 0.0
    for values, gradients in ((x, dx), (scale, dscale), (bias, dbias)):
        for index in list(np.ndindex(values.shape))[:20]:
            before, step, loss = values[index], np.float32(1e-2), []
            for side in (+1, -1):
                values[index] = before + side * step
                loss.append(np.sum(dy.astype(np.float64) * norm.forward(x, scale, bias)))
            values[index] = before
            worst = max(worst, abs((loss[0] - loss[1]) / (2 * step) - gradients[index]))
    return worst


def train_power_norm(package, rng):
    """The loss before and after some steps."""
    norm = package.norm("power_norm", FEATURES)
    print(norm.describe())
    inputs = rng.uniform(-1, 1, (ROWS, INPUTS)).astype(np.float32)
    weight = rng.uniform(-1, 1, (INPUTS, FEATURES)).astype(np.float32)
    scale, bias = np.ones(FEATURES, np.float32), np.zeros(FEATURES, np.float32)
    target = inputs @ rng.uniform(-1, 1, (INPUTS, FEATURES)).astype(np.float32)
    losses = []
    for _ in range(STEPS):
        x = inputs @ weight
        y = norm.forward(x, scale, bias)
        losses.append(0.5 * np.mean((y - target) ** 2))
        dy = (y - target) / np.float32(y.size)
        dx, dscale, dbias = norm.backward(x, dy, scale, bias)
        weight -= 4 * (inputs.T @ dx)
        scale -= 2 * dscale
        bias -= 2 * dbias
    assert norm.state["step"] == STEPS, norm.state["step"]
    return losses[0], losses[-1]


def main():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} PACKAGE.npk")
    package, rng = normc.Package(sys.argv[1]), np.random.default_rng(1)
    error = check_layer_norm(package, rng)
    print(f"largest gradient error against finite differences: {error:.1e}")
    first, last = train_power_norm(package, rng)
    print(f"loss: {first:.3e} before, {last:.3e} after {STEPS} steps")
    if not (error < 5e-3 and last < 0.05 * first):
        sys.exit("FAILED: the gradients or the training are wrong")


if __name__ == "__main__":
    main()
