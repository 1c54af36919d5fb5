"""CSV files of raw data, and which learning rates they choose."""

import csv
import math

CLOSE = 0.02  # bits a byte on valid between two rates of the search that one run does not tell apart


def append(path, rows):
    """Writes rows behind those of a CSV; the first one makes its header. Numbers have 7 digits."""
    if not rows:
        return
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        if fresh:
            writer.writeheader()
        writer.writerows({k: f"{v:.7g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)


def read(path):
    """Returns the rows of a CSV, with numbers as numbers."""

    def value(text):
        try:
            return int(text)
        except ValueError:
            try:
                return float(text)
            except ValueError:
                return text

    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [{name: value(text) for name, text in row.items()} for row in csv.DictReader(file)]


def best_rates(runs):
    """Returns {(norm, placement, tokens): the rate whose loss on valid is least}. Where all diverged it is the smallest."""
    found = {}
    for row in sorted((row for row in runs if row["experiment"] == "search"), key=lambda row: row["rate"]):
        key = row["norm"], row["placement"], row["tokens"]
        loss = row["valid"] if math.isfinite(row["valid"]) else math.inf
        if key not in found or loss < found[key][1]:
            found[key] = row["rate"], loss
    return {key: rate for key, (rate, _) in found.items()}


def close_rates(runs):
    """Returns {(norm, placement, tokens): [the other rates whose loss is within CLOSE of the best]}, where there are any."""
    best, found = best_rates(runs), {}
    searched = [row for row in runs if row["experiment"] == "search"]
    for key, rate in best.items():
        losses = {
            row["rate"]: row["valid"] for row in searched if (row["norm"], row["placement"], row["tokens"]) == key
        }
        others = [other for other, loss in losses.items() if other != rate and loss - losses[rate] < CLOSE]
        if others:
            found[key] = others
    return found
