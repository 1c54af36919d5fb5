#!/usr/bin/env python3
"""Times modules of normc.torch beside those of torch.nn: what a call costs, by torch's own way to call it.

    PYTHONPATH=build/python .deps/python/bin/python bench/hosts/torch_modules.py
        [--compiler build/bin/normc] [--cases NAME,...] [--no-compile] [--rounds 60] [--quick]

Both run in turns in one process, f32, on one thread. A window is as many calls as take half a millisecond. A time is
the least CPU time of the thread over all windows; a ratio is the median over windows that follow each other, and the
brackets hold half of them.
"""

import argparse
import os
import pathlib
import platform
import tempfile
import time

import normc
import normc.torch as nt
import torch

CASES = {
    "LayerNorm 8x64": (nt.LayerNorm, torch.nn.LayerNorm, (64,), (8, 64)),
    "LayerNorm 128x768": (nt.LayerNorm, torch.nn.LayerNorm, (768,), (128, 768)),
    "LayerNorm 4096x1024": (nt.LayerNorm, torch.nn.LayerNorm, (1024,), (4096, 1024)),
    "RMSNorm 8x64": (nt.RMSNorm, torch.nn.RMSNorm, (64,), (8, 64)),
    "RMSNorm 128x768": (nt.RMSNorm, torch.nn.RMSNorm, (768,), (128, 768)),
    "BatchNorm1d 128x768": (nt.BatchNorm1d, torch.nn.BatchNorm1d, (768,), (128, 768)),
    "BatchNorm2d 8x64x16x16": (nt.BatchNorm2d, torch.nn.BatchNorm2d, (64,), (8, 64, 16, 16)),
    "GroupNorm 8x64x16x16": (nt.GroupNorm, torch.nn.GroupNorm, (32, 64), (8, 64, 16, 16)),
    "PowerNorm 128x768 beside LayerNorm": (nt.PowerNorm, torch.nn.LayerNorm, (768,), (128, 768)),
}


def calls_of(module, shape, compiled):
    """Returns the ways to call a module: a function without arguments for each column."""
    call = torch.compile(module, fullgraph=True) if compiled else module
    x = torch.randn(shape)
    wanted = x.clone().requires_grad_()
    dy = torch.randn(shape)
    inputs = [wanted, *module.parameters()]
    return {
        "no_grad": torch.no_grad()(lambda: call(x)),
        "grad": lambda: call(wanted),
        "fwd+bwd": lambda: torch.autograd.grad(call(wanted), inputs, dy),
    }


def window(call, count):
    """Returns the CPU time of a call in microseconds."""
    begin = time.thread_time_ns()
    for _ in range(count):
        call()
    return (time.thread_time_ns() - begin) / count / 1000


def race(ours, theirs, rounds):
    """Returns both least times, and the quartiles of their ratio."""
    for call in (ours, theirs):
        window(call, 5)
    count = max(1, int(500 / max(window(theirs, 5), 1)))
    pairs = []
    for turn in range(rounds):
        first, second = (ours, theirs) if turn % 2 else (theirs, ours)
        a, b = window(first, count), window(second, count)
        pairs.append((a, b) if turn % 2 else (b, a))
    ratios = sorted(a / b for a, b in pairs)
    at = lambda share: ratios[int(share * (len(ratios) - 1))]
    return min(a for a, _ in pairs), min(b for _, b in pairs), at(0.5), at(0.25), at(0.75)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default="build/bin/normc")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--no-compile", action="store_true", help="without the columns of torch.compile")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--quick", action="store_true", help="4 rounds")
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    load = lambda: f"{os.getloadavg()[0]:.1f}"
    print(f"torch {torch.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores, "
          f"{torch.backends.cpu.get_cpu_capability()}, one thread; load at the begin {load()}\n")
    columns = ["no_grad", "grad", "fwd+bwd"]
    print("| us of CPU: normc / torch.nn, and the ratio |", " | ".join(columns), end=" |")
    print("" if given.no_compile else " " + " | ".join("compiled " + each for each in columns[::2]) + " |")
    print("|---|" + "---|" * (len(columns) + 2 * (not given.no_compile)))
    with tempfile.TemporaryDirectory() as cache:
        normc.compiler(str(pathlib.Path(given.compiler).absolute()) if given.compiler else "", cache)
        for name in given.cases.split(","):
            kind, other, arguments, shape = CASES[name]
            row = []
            torch._dynamo.reset()
            for compiled in (False,) if given.no_compile else (False, True):
                ours = calls_of(kind(*arguments), shape, compiled)
                theirs = calls_of(other(*arguments), shape, compiled)
                for column in columns[:: 2 if compiled else 1]:
                    a, b, middle, low, high = race(ours[column], theirs[column], 4 if given.quick else given.rounds)
                    row.append(f"{a:.1f} / {b:.1f} = {middle:.2f} [{low:.2f}, {high:.2f}]")
            print(f"| {name} |", " | ".join(row), "|", flush=True)
    print(f"\nload at the end {load()}")


main()
