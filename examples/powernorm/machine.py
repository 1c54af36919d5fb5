"""The calls that filled a folder, in its machine.json: the machine of each, and the rows that it found."""

import dataclasses
import json
import os
import pathlib
import platform
import time

import rawdata

FACTS = ("processor", "processors", "load", "system", "python", "torch", "jobs", "date")
COUNTED = ("runs", "translation", "mixed", "images", "theory", "cost")


def facts(jobs, torch_version):
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else []
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    load, day = os.getloadavg()[0], time.strftime("%Y-%m-%d")
    values = model, os.cpu_count(), load, platform.system(), platform.python_version(), torch_version, jobs, day
    return dict(zip(FACTS, values))


def rows_in(folder):
    """Returns {name of a CSV: its rows}, of those whose rows take time."""
    paths = {name: folder / f"{name}.csv" for name in COUNTED}
    return {name: len(path.read_text().splitlines()) - 1 for name, path in paths.items() if path.exists()}


def settled(config):
    """Returns the settings that all runs of a folder share: those but the number of seeds, which may grow."""
    return {name: json.dumps(value) for name, value in config.items() if name != "seeds"}


def read(folder):
    """Returns machine.json with "calls", None if there is none. Older files hold one call, beside the settings."""
    path = folder / "machine.json"
    about = json.loads(path.read_text()) if path.exists() else None
    if about and "calls" not in about:
        about["calls"] = [{**{name: about.pop(name) for name in FACTS}, "found": {}}]
    return about


def refusal(folder, config, sources):
    """Returns why a folder takes no runs of these settings on these data; an empty text if it takes them. A setting, or a
    CSV, that the folder lacks is newer than its data. sources: {name of a CSV: its rows, one for each source}."""
    before = read(folder)
    if before:
        old, new = settled(before["config"]), settled(dataclasses.asdict(config))
        if any(name not in new or old[name] != new[name] for name in old):
            return "data of other settings"
    for name, now in sources.items():
        kept = rawdata.read(folder / f"{name}.csv")
        if kept and kept != now:
            was, would = lines_beside(now, kept), lines_beside(kept, now)
            return f"runs on other data: {name}.csv has {was}, now it would have {would}"
    return ""


def lines_beside(others, rows):
    """Returns the lines of the rows that are not among the others."""
    return "; ".join(",".join(map(str, row.values())) for row in rows if row not in others) or "no other line"


def apart(call):
    """Returns what tells calls apart: those of a day on a machine are one."""
    return [call[name] for name in FACTS if name != "load"]


def begin(folder, config, form, command, of_now):
    """Writes that a call begins, in a folder that takes its runs. Where the folder has more seeds, these and the command
    that asked for them stay."""
    before, config = read(folder), dataclasses.asdict(config)
    calls = before["calls"] if before else []
    if before and before["config"]["seeds"] > config["seeds"]:
        config["seeds"], command = before["config"]["seeds"], before["command"]
    if not calls or apart(calls[-1]) != apart(of_now):
        calls.append({**of_now, "found": rows_in(folder)})
    about = {"form": form, "command": command, "config": config, "calls": calls}
    (folder / "machine.json").write_text(json.dumps(about, indent=1) + "\n")


def added(folder, calls):
    """Returns [(call, {CSV: rows that it added})] of the calls that added any."""
    ends = [call["found"] for call in calls[1:]] + [rows_in(folder)]
    found = []
    for call, end in zip(calls, ends):
        rows = {name: count - call["found"].get(name, 0) for name, count in end.items()}
        found.append((call, {name: count for name, count in rows.items() if count > 0}))
    return [(call, rows) for call, rows in found if rows]
