#!/usr/bin/env python3
"""Trains a linear layer that is followed by PowerNorm, in NumPy, and checks gradients of LayerNorm.

train.py PACKAGE.npk    a package of power_norm and layer_norm, forward and backward, f32
"""

import sys

import numpy as np

import normc

ROWS, INPUTS, FEATURES, STEPS = 64, 6, 8, 300


def check_layer_norm(package, rng):
    """Returns the largest difference between gradients and finite differences of sum(dy * y)."""
    norm = package.norm("layer_norm", FEATURES)
    x, dy = rng.standard_normal((2, ROWS, FEATURES), np.float32)
    scale, bias = rng.standard_normal((2, FEATURES), np.float32)
    norm.forward(x, scale, bias)
    worst = 0.0
    for values, gradients in zip((x, scale, bias), norm.backward(x, dy, scale, bias)):
        for index in list(np.ndindex(values.shape))[:20]:
            before, step, loss = values[index], np.float32(1e-2), []
            for side in (+1, -1):
                values[index] = before + side * step
                loss.append(np.sum(dy.astype(np.float64) * norm.forward(x, scale, bias)))
            values[index] = before
            worst = max(worst, abs((loss[0] - loss[1]) / (2 * step) - gradients[index]))
    return worst


def train_power_norm(package, rng):
    """Returns the loss before and after some steps."""
    norm = package.norm("power_norm", FEATURES)
    inputs = rng.uniform(-1, 1, (ROWS, INPUTS)).astype(np.float32)
    weight, wanted = rng.uniform(-1, 1, (2, INPUTS, FEATURES)).astype(np.float32)
    scale, bias, target = np.ones(FEATURES, np.float32), np.zeros(FEATURES, np.float32), inputs @ wanted
    losses = []
    for _ in range(STEPS):
        x = inputs @ weight
        dy = (norm.forward(x, scale, bias) - target) / np.float32(x.size)
        losses.append(0.5 * np.sum(dy**2) * x.size)
        dx, dscale, dbias = norm.backward(x, dy, scale, bias)
        weight, scale, bias = weight - 4 * (inputs.T @ dx), scale - 2 * dscale, bias - 2 * dbias
    assert norm.state["step"] == STEPS, norm.state["step"]
    return losses[0], losses[-1]


if len(sys.argv) != 2:
    sys.exit(f"usage: {sys.argv[0]} PACKAGE.npk")
package, rng = normc.Package(sys.argv[1]), np.random.default_rng(1)
error, (first, last) = check_layer_norm(package, rng), train_power_norm(package, rng)
print(f"largest gradient error: {error:.1e}; loss: {first:.3e} before, {last:.3e} after {STEPS} steps")
assert error < 5e-3 and last < 0.05 * first, "the gradients or the training are wrong"
