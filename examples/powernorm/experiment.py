"""Runs everything of one form and writes raw data: a CSV for each kind. A second call goes on where the first ended.

experiment.py OUT [--form quick] [--jobs 1] [--steps N] [--seeds N] [--cache DIR] [--offline]
                  [--compiler PROGRAM]
"""

import argparse
import concurrent.futures
import dataclasses
import multiprocessing
import pathlib
import time

import normc
import torch

import corpus
import cost
import machine
import pairs
import digits
import schedule
import theory
import training
from images import Images
from language import Language
from rawdata import append, best_rates, read
from settings import FORMS, WATCHED
from translation import Translation

KEY = ("experiment", "norm", "placement", "rate", "seed", "steps", "tokens")
_process = {}


def prepare(splits, phrases, labelled, config, compiler):
    torch.set_num_threads(1)
    normc.compiler(compiler)
    splits = {name: torch.from_numpy(data.astype("int64")) for name, data in splits.items()}
    tasks = {"language": Language(splits, config), "translation": Translation(phrases, config)}
    tasks["mixed"] = Translation(phrases, config, mixed=True)
    labelled = {name: tuple(map(torch.from_numpy, part)) for name, part in labelled.items()}
    tasks["images"] = Images(labelled, config)
    _process.update(config=config, tasks=tasks)


def execute(run):
    """Returns the experiment's name and what `training.train` returns."""
    run = dict(run)
    task, name, config = run.pop("task"), run.pop("experiment"), _process["config"]
    watched = task in ("language", "images") and name == "main" and run["seed"] == 0
    probe = config.every if watched and run["norm"] in WATCHED else 0
    track = config.every * 3 if watched else 0
    return name, training.train(_process["tasks"][task], **run, probe=probe, track=track)


def run_all(pool, task, runs, out):
    path = out / f"{schedule.FILES[task]}.csv"
    done = {tuple(row[name] for name in KEY) for row in read(path)}
    left = [run for run in runs if tuple(run[name] for name in KEY) not in done]
    begin, unit = time.time(), "an image" if task == "images" else "a byte"
    for at, (name, (row, curve, statistics)) in enumerate(pool(execute, left)):
        append(out / "curves.csv", curve)
        append(out / "statistics.csv", statistics)
        append(path, [{"experiment": name, **row}])
        print(
            f"{at + 1} of {len(left)} after {time.time() - begin:.0f} s: {task}, {name} {row['placement']} {row['norm']} "
            f"rate {row['rate']:g} seed {row['seed']}: test {row['test']:.4f} bits {unit}",
            flush=True,
        )


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
    parser.add_argument("--offline", action="store_true", help="trains on texts of the system and fetches nothing")
    args = parser.parse_args()
    config = FORMS[args.form]
    if args.steps:
        steps = {"steps": args.steps, "search_steps": args.steps // 2}
        others = {name: dataclasses.replace(getattr(config, name), **steps) for name in ("translation", "images")}
        config = dataclasses.replace(config, **steps, every=max(1, args.steps // 30), **others)
    if args.seeds:
        config = dataclasses.replace(config, seeds=args.seeds)
    changed = "".join(f" --{name} {getattr(args, name)}" for name in ("steps", "seeds") if getattr(args, name))
    args.out.mkdir(parents=True, exist_ok=True)
    begin = time.time()
    splits, texts = corpus.load(args.cache, () if args.offline else corpus.PACKAGES)
    phrases, sources = pairs.load(args.cache, config.translation.context, () if args.offline else pairs.PACKAGES)
    labelled, sources_of_images = digits.load(args.cache, "" if args.offline else digits.PACKAGE)
    prepare(splits, phrases, labelled, config, args.compiler)
    command = f"examples/powernorm/run --{args.form}{changed}"
    tables = {"corpus": texts, "pairs": sources, "digits": sources_of_images}
    if why := machine.refusal(args.out, config, tables):
        parser.error(f"{args.out} holds {why}; name another folder, or remove it")
    machine.begin(args.out, config, args.form, command, machine.facts(args.jobs, torch.__version__))
    for name, rows in tables.items():
        if not (args.out / f"{name}.csv").exists():
            append(args.out / f"{name}.csv", rows)
    workers = args.jobs > 1 and concurrent.futures.ProcessPoolExecutor(
        args.jobs, multiprocessing.get_context("spawn"), prepare, (splits, phrases, labelled, config, args.compiler)
    )
    pool = workers.map if workers else map
    for name, rows in {
        "theory": lambda: theory.all_rows(args.form == "smoke"),
        "cost": lambda: cost.all_rows(config),
    }.items():
        if not (args.out / f"{name}.csv").exists():
            append(args.out / f"{name}.csv", rows())
    for task, name in schedule.FILES.items():
        run_all(pool, task, schedule.searches(config, task), args.out)
        rates = best_rates(read(args.out / f"{name}.csv"))
        run_all(pool, task, schedule.trials(config, task, rates), args.out)
    if workers:
        workers.shutdown()
    print(f"raw data in {args.out} after {time.time() - begin:.0f} s")


if __name__ == "__main__":
    main()
