#!/usr/bin/env python3
"""What synchronised statistics cost on the ranks of this machine: the time of a step, the bytes that a rank sends and
the number of collectives, for layers of BatchNorm (two exchanges each) and of PowerNorm (one for all).

    PYTHONPATH=build/python .deps/python/bin/python bench/hosts/ranks.py [--ranks 2] [--layers 12]

Ranks are processes of one thread that share the cores, joined by gloo. Forms take turns in each round; printed is
the median of the rounds. The load of the machine stands in the first line.
"""

import argparse
import os
import statistics
import time

import normc.torch as nt
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


class Counter:
    """Counts what torch.distributed is asked for."""

    def __init__(self):
        self.calls = self.bytes = 0
        for name in ("all_reduce", "all_gather_into_tensor"):
            self.wrap(dist, name)
        self.wrap(nt._ranks.collectives, "all_reduce")

    def wrap(self, module, name):
        inner = getattr(module, name)

        def counted(tensor, *rest, **named):
            self.calls, self.bytes = self.calls + 1, self.bytes + tensor.numel() * tensor.element_size()
            return inner(tensor, *rest, **named)

        setattr(module, name, counted)

    def take(self):
        taken, self.calls, self.bytes = (self.calls, self.bytes), 0, 0
        return taken


def model(kind, layers, features):
    norms = {"batch": nt.BatchNorm1d, "power_v": nt.PowerNormV, "power": nt.PowerNorm}
    name = kind.split()[0]
    made = torch.nn.Sequential(*(norms[name](features) for _ in range(layers)))
    return nt.synchronise(made) if "synchronised" in kind else made


KINDS = ["batch", "batch, synchronised", "power_v", "power_v, synchronised", "power", "power, synchronised"]


def run(rank, options, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=options.ranks)
    kinds = [kind.replace(",", "") for kind in KINDS]
    models = {kind: model(kind, options.layers, options.features) for kind in kinds}
    x = torch.randn(options.rows, options.features)
    counter, times, sent = Counter(), {kind: [] for kind in kinds}, {}
    for _ in range(options.rounds):
        for kind, each in models.items():
            dist.barrier()
            counter.take()
            begin = time.perf_counter()
            each(x.requires_grad_()).sum().backward()
            if kind == "power synchronised":
                nt.commit(each)
            times[kind].append(time.perf_counter() - begin)
            sent[kind] = counter.take()
    if rank == 0:
        print(f"{'form':26} {'ms a step':>10} {'collectives':>12} {'bytes':>10}")
        for kind in kinds:
            calls, size = sent[kind]
            print(f"{kind:26} {1e3 * statistics.median(times[kind][2:]):10.2f} {calls:12} {size:10}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    for name, value in dict(ranks=2, layers=12, features=512, rows=512, rounds=30).items():
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    print(f"{options}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; torch {torch.__version__}")
    mp.spawn(run, (options, 29500 + os.getpid() % 2000), options.ranks)
