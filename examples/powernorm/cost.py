"""Time of a norm alone and of a training step, PN beside the others, on one thread."""

import time

import torch

import norms
from language import loss_of
from model import Decoder

NORMS = ("ln", "rms", "bn", "pnv", "pn", "pn_released", "pn_composed", "ln_torch")


def _alone(norm, rows, features, heads):
    """Returns a function that runs forward and backward of the norm once, with all gradients."""
    module = norms.make(norm, features, heads, warmup=0)
    x, dy = torch.randn(rows, features, requires_grad=True), torch.randn(rows, features)

    def once():
        x.grad = module.weight.grad = None
        module(x).backward(dy)

    return once


def _step(norm, placement, config, batch):
    """Returns a function that runs one training step of a model."""
    torch.manual_seed(0)
    model = Decoder(norm, placement, config.width, config.layers, config.heads, config.context, warmup=0)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    windows = torch.randint(256, (batch, config.context + 1))

    def once():
        loss_of(model, windows).backward()
        optimizer.step(), optimizer.zero_grad()

    return once


def _timed(functions, rounds, seconds):
    """Returns {name: [processor seconds of a call for each round]}. All run in turns, so that they meet the same load."""
    repeats = {}
    for name, once in functions.items():
        for _ in range(3):
            once()
        begin = time.perf_counter()
        once()
        repeats[name] = max(1, int(seconds / max(1e-7, time.perf_counter() - begin)))
    times = {name: [] for name in functions}
    for each in range(rounds):
        order = list(functions)[each % len(functions) :] + list(functions)[: each % len(functions)]
        for name in order:
            begin = time.process_time()
            for _ in range(repeats[name]):
                functions[name]()
            times[name].append((time.process_time() - begin) / repeats[name])
    return times


def all_rows(config):
    """Returns rows {"what", "norm", "round", "microseconds"}: `what` is a shape of the norm alone, or a step."""
    rows = []
    for count, features in config.shapes:
        functions = {norm: _alone(norm, count, features, config.heads) for norm in NORMS}
        for norm, times in _timed(functions, config.rounds, config.seconds).items():
            rows += [
                {"what": f"norm {count}x{features}", "norm": norm, "round": at, "microseconds": 1e6 * t}
                for at, t in enumerate(times)
            ]
    functions = {norm: _step(norm, "post", config, config.batch) for norm in NORMS}
    for norm, times in _timed(functions, config.rounds, config.seconds).items():
        rows += [{"what": "step", "norm": norm, "round": at, "microseconds": 1e6 * t} for at, t in enumerate(times)]
    return rows
