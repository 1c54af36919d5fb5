#!/usr/bin/env python3
"""Packs a grid of schedules of rows for `normc-gpu sweep`: every geometry that holds a row in blocks or clusters.

    bench/gpu/grid.py FOLDER [--normc build/bin/normc] [--elements N] [--jobs N] [--most N] [--print] PROBLEM...

PROBLEM is like `layer_norm:backward@bf16[*x16384]`; FOLDER gets a bundle for each (docs/tuning.md), sm_90 is the
target. A thread has up to 64 elements of 16-byte accesses; blocks have 64 to 1024 threads, clusters up to 16 blocks, a team one
to four rows at once, with scale and bias in shared memory or not; registers for a thread are 32 to 255. What is illegal for the problem `normc tune export` leaves
out. --most N takes N of them, drawn with a fixed seed; --knob rows=2,3 those alone that have such values.
"""

import argparse
import concurrent.futures
import itertools
import pathlib
import random
import re
import subprocess
import sys

TEAMS = (64, 96, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 1024)
MULTIPROCESSORS, REGISTERS, THREADS, SHARED = 132, 65536, 2048, 228 << 10


def geometries(features, vector, backward):
    """Yields (threads, team, tile, shared, cluster): each thread of the team has accesses, and few lanes idle."""
    accesses = features // vector
    for threads, cluster in itertools.product(TEAMS, (1, 2, 4, 8, 16)):
        teams = {threads} if threads < 128 or cluster > 1 else {threads, threads // 2, threads // 4, 32}
        for team in teams:
            if team % 32 or (threads > 256 and team < 256):
                continue
            held = -(-accesses // (team * cluster))
            if held * team * cluster * vector > 1.17 * features or held * vector > 64:
                continue
            most = 32 if backward else 64
            if held * vector <= most:
                yield threads, team, held, 0, cluster
            for shared in {held // 3, held // 2, held * 2 // 3}:
                if shared and team == threads and threads >= 128 and (held - shared) * vector <= most:
                    yield threads, team, held - shared, shared, cluster


def schedules(features, data, backward):
    size = 2 if data in ("bf16", "f16") else 4
    vector = 16 // size
    for threads, team, tile, shared, cluster in geometries(features, vector, backward):
        held = tile * vector
        for rows in (1, 2, 3, 4):
            if rows * held > 64 or (rows > 1 and shared):
                continue
            blocks = {REGISTERS // (threads * registers) for registers in (32, 40, 48, 64, 80, 96, 128, 168, 255)}
            for count in sorted(n for n in blocks if n and n * threads <= THREADS):
                # Too few warps to hide anything, or registers that nothing needs.
                if count * threads < 256 or (REGISTERS / count / threads > 160 and held * rows < 16):
                    continue
                ahead = (0, 1, 2, 3, 5, 6, 7) if backward else (0, 1, 5, 6)
                for prefetch, hold in itertools.product(ahead, (0, 1)):
                    if prefetch >= 5 and shared:
                        continue
                    chunks = max(1, MULTIPROCESSORS * count // cluster)
                    hints = 1 if size == 2 and not backward else 0
                    yield (f"resident,threads={threads},team={team},vector={vector},tile={tile},rows={rows},"
                           f"chunks={chunks},blocks={count},prefetch={prefetch},cluster={cluster},hints={hints},"
                           f"hold={hold},grid=1,shared={shared}")


def streams(features, data, rereads):
    """Yields schedules of norms whose statistics are of features: every phase walks over rows."""
    widest = 16 // (2 if data in ("bf16", "f16") else 4)
    for threads, team, tile, vector, rows, prefetch, waves in itertools.product(
            (128, 256, 512, 1024), (8, 16, 32, 64, 128, 256), (1, 2), (widest, widest // 2), (1, 2, 3, 4, 6),
            (0, 1, 2, 3), (1, 2)):
        columns = team * vector * tile
        if team > threads or columns > features or rows * vector * tile > 48:
            continue
        for count in {n for n in (1, 2, 4, 8) if 512 <= n * threads <= THREADS}:
            chunks = max(1, min(256, waves * MULTIPROCESSORS * count * columns // features))
            yield (f"streamed,threads={threads},team={team},vector={vector},tile={tile},rows={rows},chunks={chunks},"
                   f"blocks={count},prefetch={prefetch},cluster=1,hints={rereads},hold=0,grid=1,shared=0")


def fits(text, size, reads, partials, vectors):
    """True if registers and shared memory hold about what the schedule keeps. An estimate, so that --most draws few that
    are illegal: what decides is `whyIllegal` (codegen/targets/cuda/Legality.cpp), and what it refuses is left out."""
    knob = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", text)}
    threads, blocks, vector, rows = knob["threads"], knob["blocks"], knob["vector"], knob["rows"]
    accesses, ahead = knob["tile"] * vector, knob["prefetch"]
    held = accesses * rows
    registers = held * size // 4 * reads + partials * accesses + (accesses if partials else 0) + 32
    registers += held * reads * size // 4 if ahead == 1 else 0
    registers += vector * reads if knob["shared"] else 0
    depth = 0 if ahead < 2 else ahead - 1 if ahead < 5 else ahead - 4
    copied = (depth + 1) * rows * accesses * size * reads * threads if depth else 0
    kept = knob["shared"] * vector * threads * ((depth + 1) * reads * size + 4 * partials)
    kept += knob["hold"] * (knob["tile"] + knob["shared"]) * knob["team"] * vector * vectors
    room = SHARED // blocks - 3072 - (8 * threads * vector if partials and threads != knob["team"] else 0)
    return registers <= min(255, REGISTERS // (threads * blocks)) and copied + kept <= room


def bundle(arguments, problem):
    norm, entry, data, features = re.match(r"(\w+):(\w+)@(\w+)\[\*x(\d+)\]", problem).groups()
    of_rows = norm not in ("batch_norm", "power_norm", "power_norm_v")
    make = (schedules(int(features), data, entry == "backward") if of_rows
            else streams(int(features), data, int(norm != "power_norm")))
    options = re.sub(r"\W+", "-", problem.partition("]")[2]).rstrip("-")
    folder = arguments.folder / f"{norm}-{entry}-{data}-{features}-{arguments.elements}{options}"
    command = [arguments.normc, "tune", "export", problem, "--policy", "cold", "--target", "sm_90",
               "--elements", str(arguments.elements), "-o", str(folder)]
    wanted = {name: set(values.split(",")) for name, values in (knob.split("=") for knob in arguments.knob)}
    texts = [text for text in dict.fromkeys(make)
             if all(value in wanted.get(name, {value}) for name, value in re.findall(r"(\w+)=(\d+)", text))]
    random.Random(1).shuffle(texts)
    if of_rows:
        backward = entry == "backward"
        partials = 0 if not backward else 1 if norm.startswith("rms") else 2
        reads = 2 if "residual" in norm and not backward else 3 if "residual" in norm else 1 + backward
        vectors = (4 if backward or norm.startswith("rms") else 8) // (2 if "params=" in problem else 1)
        size = 2 if data in ("bf16", "f16") else 4
        texts = [text for text in texts if fits(text, size, reads, partials, vectors)]
    chosen = texts[:arguments.most]
    if arguments.print:
        return f"{problem}: {len(chosen)} of {len(texts)} schedules"
    done = subprocess.run(command + [word for text in chosen for word in ("--schedule", text)],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"grid.py: {problem}: {done.stderr}")
    return f"{problem}: {len(list(folder.rglob('*.npk')))} packages, the default's among them, of {len(texts)} schedules"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("problems", nargs="+")
    parser.add_argument("--normc", default="build/bin/normc")
    parser.add_argument("--elements", type=int, default=1 << 25)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--most", type=int, default=1 << 30)
    parser.add_argument("--knob", action="append", default=[], metavar="NAME=VALUES", help="take these values alone")
    parser.add_argument("--print", action="store_true", help="count the schedules only")
    arguments = parser.parse_args()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for line in pool.map(lambda problem: bundle(arguments, problem), arguments.problems):
            print(line, flush=True)


if __name__ == "__main__":
    main()
