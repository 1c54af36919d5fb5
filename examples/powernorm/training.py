"""One training run: a norm, a placement, a learning rate and a seed give bits per byte and what was logged."""

import copy
import math
import time

import torch
from torch import nn

from model import Decoder
from probe import COLUMNS, Probe

EVALUATED = 64  # sequences of a batch of evaluation


def rate_at(step, steps, warmup):
    """Returns the factor of the learning rate: linear to 1 during the warmup, then a cosine to 0.1."""
    if step < warmup:
        return (step + 1) / warmup
    return 0.55 + 0.45 * math.cos(math.pi * (step - warmup) / max(1, steps - warmup))


def loss_of(model, windows):
    """windows: bytes [batch, context + 1]. Returns the mean cross entropy in nats."""
    logits = model(windows[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


@torch.no_grad()
def bits_per_byte(model, data, context, limit, of_batch=False, sequences=EVALUATED):
    """Returns bits per byte over `limit` bytes of `data`: windows of `context`, drawn over all of it, always the same.

    of_batch: the norms use statistics of the batch of evaluation, `sequences` windows, as they do in training.
    """
    if of_batch:
        model = copy.deepcopy(model)  # a forward in training moves the state
    model.train(of_batch)
    windows = data.unfold(0, context + 1, context)
    drawn = torch.randperm(len(windows), generator=torch.Generator().manual_seed(0))[: max(1, limit // context)]
    full = [part for part in windows[drawn].split(sequences) if len(part) == min(sequences, len(drawn))]
    mean = sum(loss_of(model, part).item() for part in full) / len(full)
    return mean / math.log(2)


class Log:
    """Means and largest values of the probes over the last steps, as rows for a CSV."""

    def __init__(self, model, every, labels):
        sites = model.sites()
        watched = [next(iter(sites)), list(sites)[-1]]
        self.probes = {name: Probe(sites[name]) for name in dict.fromkeys(watched)}
        self.every, self.labels, self.rows, self.seen = every, labels, [], {name: [] for name in self.probes}

    def after(self, step):
        for name, probe in self.probes.items():
            self.seen[name].append(probe.row)
            if (step + 1) % self.every == 0:
                row = {**self.labels, "site": name, "step": step + 1}
                for column in COLUMNS:
                    values = [each[column] for each in self.seen[name] if column in each]
                    row[column] = sum(values) / len(values) if values else math.nan  # a first step has no distance
                    row["max_" + column] = max(values, default=math.nan)
                self.rows.append(row)
                self.seen[name] = []


def train(splits, config, norm, placement, rate, seed, steps, batch, probe=0, track=0):
    """Trains one model. splits: {name: bytes as int64}. Returns (row of results, rows of valid, rows of statistics).

    probe: statistics are written every so many steps, 0 for never. track: the same of the loss on valid.
    Equal seeds give each norm the same first weights and the same batches.
    """
    torch.manual_seed(seed)
    warmup = max(1, steps // 5)
    model = Decoder(norm, placement, config.width, config.layers, config.heads, config.context, warmup)
    labels = {
        "norm": norm,
        "placement": placement,
        "rate": rate,
        "seed": seed,
        "steps": steps,
        "tokens": batch * config.context,
    }
    log = Log(model, probe, labels) if probe else None
    optimizer = torch.optim.AdamW(model.parameters(), rate, betas=(0.9, 0.98), weight_decay=0.01)
    batches = torch.Generator().manual_seed(1000 + seed)
    data, curve, took, diverged, recent = splits["train"], [], 0.0, 0, []
    offsets = torch.arange(config.context + 1)
    for step in range(steps):
        at = torch.randint(len(data) - config.context - 1, (batch, 1), generator=batches)
        for group in optimizer.param_groups:
            group["lr"] = rate * rate_at(step, steps, warmup)
        model.train()
        begin = time.process_time()
        loss = loss_of(model, data[at + offsets])
        loss.backward()
        finite = all(torch.isfinite(p.grad).all() for p in model.parameters()) if step % 10 == 9 else True
        optimizer.step(), optimizer.zero_grad()
        took += time.process_time() - begin
        value = loss.item()
        if not (math.isfinite(value) and finite):
            diverged = step + 1
            break
        recent = (recent + [value])[-20:]
        if log:
            log.after(step)
        if track and (step + 1) % track == 0:
            valid = bits_per_byte(model, splits["valid"], config.context, config.valid)
            curve.append({**labels, "step": step + 1, "train": sum(recent) / len(recent) / math.log(2), "valid": valid})
    result = {
        **labels,
        "parameters": sum(p.numel() for p in model.parameters()),
        "diverged": diverged,
        "milliseconds": 1e3 * took / (step + 1),
    }
    result["train"] = math.nan if diverged else sum(recent) / len(recent) / math.log(2)
    for name, split, of_batch in (("valid", "valid", False), ("test", "test", False), ("test_of_batch", "test", True)):
        result[name] = (
            math.nan
            if diverged
            else bits_per_byte(
                model, splits[split], config.context, getattr(config, split), of_batch, batch if of_batch else EVALUATED
            )
        )
    return result, curve, log.rows if log else []
