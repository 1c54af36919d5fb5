"""Runs everything of one form and writes raw data: a CSV for each kind. A second call goes on where the first ended.

experiment.py OUT [--form quick] [--jobs 1] [--steps N] [--seeds N] [--cache DIR] [--offline]
                  [--compiler PROGRAM]
"""

import argparse
import concurrent.futures
import dataclasses
import json
import multiprocessing
import os
import pathlib
import platform
import time

import normc
import torch

import corpus
import cost
import theory
import training
from rawdata import append, best_rates, read
from settings import FORMS, NORMS, PLACEMENTS, WATCHED

KEY = ("experiment", "norm", "placement", "rate", "seed", "steps", "tokens")


def compared(config):
    """Returns the (experiment, norm, placement, batch) that are compared, each at a learning rate of its own."""
    base = [("main", norm, placement, config.batch) for placement in PLACEMENTS for norm in NORMS]
    return base + [("batch", norm, "post", batch) for batch in config.batches for norm in WATCHED]


def run_of(config, experiment, norm, placement, batch, rate, seed, steps):
    """steps: those with the form's own batch. Other batches take as many bytes in all."""
    steps = max(1, steps * config.batch // batch)
    return dict(experiment=experiment, norm=norm, placement=placement, rate=rate, seed=seed, steps=steps, batch=batch)


def searches(config):
    return [
        run_of(config, "search", *case, rate=rate, seed=99, steps=config.search_steps)
        for _, *case in compared(config)
        for rate in config.rates
    ]


def trials(config, rates):
    """Returns the runs behind the search: seeds outermost, so that a part of them is a complete comparison."""
    return [
        run_of(config, *case, rate=rates[norm, placement, batch * config.context], seed=seed, steps=config.steps)
        for seed in range(config.seeds)
        for case in compared(config)
        for _, norm, placement, batch in [case]
    ]


_process = {}


def prepare(splits, config, compiler):
    torch.set_num_threads(1)
    normc.compiler(compiler)
    _process.update(
        splits={name: torch.from_numpy(data.astype("int64")) for name, data in splits.items()}, config=config
    )


def execute(run):
    """Returns the experiment's name and what `training.train` returns."""
    run = dict(run)
    name, config = run.pop("experiment"), _process["config"]
    watched = name == "main" and run["seed"] == 0
    probe = config.every if watched and run["norm"] in WATCHED else 0
    return name, training.train(
        _process["splits"], config, **run, probe=probe, track=config.every * 3 if watched else 0
    )


def run_all(pool, runs, out, config):
    done = {tuple(row[name] for name in KEY) for row in read(out / "runs.csv")}
    left = [
        run for run in runs if tuple({**run, "tokens": run["batch"] * config.context}[name] for name in KEY) not in done
    ]
    begin = time.time()
    for at, (name, (row, curve, statistics)) in enumerate(pool(execute, left)):
        append(out / "curves.csv", curve)
        append(out / "statistics.csv", statistics)
        append(out / "runs.csv", [{"experiment": name, **row}])
        print(
            f"{at + 1} of {len(left)} after {time.time() - begin:.0f} s: {name} {row['placement']} {row['norm']} "
            f"rate {row['rate']:g} seed {row['seed']}: test {row['test']:.4f} bits a byte",
            flush=True,
        )


def machine(config, form, jobs, command):
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else []
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return {
        "processor": model,
        "processors": os.cpu_count(),
        "load": os.getloadavg()[0],
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "form": form,
        "jobs": jobs,
        "date": time.strftime("%Y-%m-%d"),
        "command": command,
        "config": dataclasses.asdict(config),
    }


def settled(config):
    """Returns the settings that all runs of a folder share: those but the number of seeds, which may grow."""
    return {name: json.dumps(value) for name, value in config.items() if name != "seeds"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--form", choices=FORMS, default="quick")
    parser.add_argument("--jobs", type=int, default=1, help="processes that train, with one thread each")
    parser.add_argument("--steps", type=int, help="in place of the form's; the search runs for half as many")
    parser.add_argument("--seeds", type=int, help="in place of the form's")
    parser.add_argument(
        "--cache", default=pathlib.Path.home() / ".cache" / "normc-corpus", help="where packages of text lie"
    )
    parser.add_argument("--compiler", default="", help="the program normc")
    parser.add_argument("--offline", action="store_true", help="trains on the system's licences and fetches nothing")
    args = parser.parse_args()
    config = FORMS[args.form]
    if args.steps:
        config = dataclasses.replace(
            config, steps=args.steps, search_steps=args.steps // 2, every=max(1, args.steps // 30)
        )
    if args.seeds:
        config = dataclasses.replace(config, seeds=args.seeds)
    changed = "".join(f" --{name} {getattr(args, name)}" for name in ("steps", "seeds") if getattr(args, name))
    args.out.mkdir(parents=True, exist_ok=True)
    about = machine(config, args.form, args.jobs, f"examples/powernorm/run --{args.form}{changed}")
    before = args.out / "machine.json"
    if before.exists() and settled(json.loads(before.read_text())["config"]) != settled(about["config"]):
        parser.error(f"{args.out} holds data of other settings; name another folder, or remove it")
    begin = time.time()
    splits, sources = corpus.load(args.cache, () if args.offline else corpus.PACKAGES)
    prepare(splits, config, args.compiler)
    if not (args.out / "corpus.csv").exists():
        append(args.out / "corpus.csv", sources)
    before.write_text(json.dumps(about, indent=1) + "\n")
    workers = args.jobs > 1 and concurrent.futures.ProcessPoolExecutor(
        args.jobs, multiprocessing.get_context("spawn"), prepare, (splits, config, args.compiler)
    )
    pool = workers.map if workers else map
    for name, rows in {
        "theory": lambda: theory.all_rows(args.form == "smoke"),
        "cost": lambda: cost.all_rows(config),
    }.items():
        if not (args.out / f"{name}.csv").exists():
            append(args.out / f"{name}.csv", rows())
    run_all(pool, searches(config), args.out, config)
    run_all(pool, trials(config, best_rates(read(args.out / "runs.csv"))), args.out, config)
    if workers:
        workers.shutdown()
    print(f"raw data in {args.out} after {time.time() - begin:.0f} s")


if __name__ == "__main__":
    main()
