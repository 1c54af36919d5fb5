"""One training run: a norm, a placement, a learning rate and a seed give bits per byte and what was logged."""

import math
import time

import torch

from probe import COLUMNS, Probe


def rate_at(step, steps, warmup):
    """Returns the factor of the learning rate: linear to 1 during the warmup, then a cosine to 0.1."""
    if step < warmup:
        return (step + 1) / warmup
    return 0.55 + 0.45 * math.cos(math.pi * (step - warmup) / max(1, steps - warmup))


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


def train(task, norm, placement, rate, seed, steps, batch, tokens, probe=0, track=0):
    """Trains one model. Returns (row of results, rows of valid, rows of statistics).

    task: a model, batches and losses, as in language.py and translation.py. tokens: bytes of a step, at most.
    probe: statistics are written every so many steps, 0 for never. track: the same of the loss on valid.
    Equal seeds give each norm the same first weights and the same batches.
    """
    torch.manual_seed(seed)
    warmup = max(1, steps // 5)
    model = task.model(norm, placement, warmup)
    labels = {
        "norm": norm,
        "placement": placement,
        "rate": rate,
        "seed": seed,
        "steps": steps,
        "tokens": tokens,
    }
    log = Log(model, probe, labels) if probe else None
    optimizer = torch.optim.AdamW(model.parameters(), rate, betas=(0.9, 0.98), weight_decay=0.01)
    batches = torch.Generator().manual_seed(1000 + seed)
    curve, took, diverged, recent = [], 0.0, 0, []
    for step in range(steps):
        drawn = task.draw(batch, batches)
        for group in optimizer.param_groups:
            group["lr"] = rate * rate_at(step, steps, warmup)
        model.train()
        begin = time.process_time()
        loss = task.loss(model, drawn)
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
            valid = task.bits(model, "valid")
            curve.append({**labels, "step": step + 1, "train": sum(recent) / len(recent) / math.log(2), "valid": valid})
    result = {
        **labels,
        "parameters": sum(p.numel() for p in model.parameters()),
        "diverged": diverged,
        "milliseconds": 1e3 * took / (step + 1),
        "train": math.nan if diverged else sum(recent) / len(recent) / math.log(2),
    }
    result.update(dict.fromkeys(task.measured, math.nan) if diverged else task.results(model, batch))
    return result, curve, log.rows if log else []
