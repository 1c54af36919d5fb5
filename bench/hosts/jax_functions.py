"""Measures normc.jax beside formulas of jax.numpy, both under jax.jit, in one run: prints a table.

    PYTHONPATH=build/python python3 bench/hosts/jax.py [--seconds N] [--shape ROWSxFEATURES]...

Both take turns in windows of some milliseconds; a figure is the median of their windows' least wall time of a call,
and the ratio the median of the ratios of neighbouring windows. `identity` is a jitted function that copies x: what
JAX itself takes for a call.
"""

import argparse
import os
import statistics
import sys
import time

sys.path = [folder for folder in sys.path if os.path.abspath(folder or ".") != os.path.dirname(os.path.abspath(__file__))]

import jax
import jax.numpy as jnp
import normc.jax as nj


def layer_norm(x, scale, bias):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * scale + bias


def with_gradients(norm):
    def run(x, scale, bias, dy):
        y, back = jax.vjp(norm, x, scale, bias)
        return y, back(dy)
    return run


def window(function, given, seconds=0.004):
    """Returns the least wall time of a call, in microseconds."""
    least, end = float("inf"), time.perf_counter() + seconds
    while (begin := time.perf_counter()) < end:
        jax.block_until_ready(function(*given))
        least = min(least, time.perf_counter() - begin)
    return least * 1e6


def measure(functions, given, seconds):
    """Returns the windows of each function, taken in turns."""
    compiled = [jax.jit(function) for function in functions]
    for function in compiled:
        for _ in range(10):
            jax.block_until_ready(function(*given))
    windows, end = [[] for _ in compiled], time.perf_counter() + seconds
    while time.perf_counter() < end:
        for function, taken in zip(compiled, windows):
            taken.append(window(function, given))
    return windows


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=4, help="of each row of the table")
    options.add_argument("--shape", action="append", help="8x64 and 128x768 if none is given")
    options = options.parse_args()
    with open("/proc/loadavg") as file:
        load = file.read().split()[0]
    print(f"layer_norm, f32, JAX {jax.__version__}, {len(os.sched_getaffinity(0))} processors, load {load}\n")
    print("| shape | | normc, us | jnp, us | normc / jnp | identity, us |")
    print("|---|---|---|---|---|---|")
    for shape in options.shape or ("8x64", "128x768"):
        rows, features = map(int, shape.split("x"))
        keys = jax.random.split(jax.random.key(0), 4)
        x, dy = jax.random.normal(keys[0], (rows, features)), jax.random.normal(keys[1], (rows, features))
        scale, bias = jax.random.normal(keys[2], (features,)), jax.random.normal(keys[3], (features,))
        for what, form, given in (("forward", lambda norm: norm, (x, scale, bias)),
                                  ("forward, gradients", with_gradients, (x, scale, bias, dy))):
            identity = lambda *a: a[0] + 0
            ours, theirs, nothing = measure((form(nj.layer_norm), form(layer_norm), identity), given, options.seconds)
            ratio = statistics.median(a / b for a, b in zip(ours, theirs))
            print(f"| {shape} | {what} | {statistics.median(ours):.1f} | {statistics.median(theirs):.1f} | {ratio:.2f} "
                  f"| {statistics.median(nothing):.1f} |", flush=True)


if __name__ == "__main__":
    main()
