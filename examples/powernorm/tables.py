"""The tables of a report: losses, learning rates, batches, times and sources, from raw data."""

import math

from evidence import DESIGN, interval, shown
from rawdata import CLOSE, best_rates, close_rates, read
from settings import TITLES


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows] + [""]


def losses(data, columns):
    """columns: {column of a run: its title}."""
    runs_of = {}
    for row in data.runs:
        if row["experiment"] == "main":
            runs_of.setdefault((row["placement"], row["norm"]), []).append(row)
    rows, ranked = [], []
    for placement in [each for each in ("post", "pre") if each in {of for of, _ in runs_of}]:
        norms = [norm for of, norm in runs_of if of == placement]
        means = {norm: interval(list(data.losses(norm, placement).values()))[0] for norm in norms}
        ranks = sorted((norm for norm in norms if math.isfinite(means[norm])), key=means.get)
        ranked.append(f"{DESIGN[placement]}: {', '.join(TITLES[norm] for norm in ranks)}")
        for norm in norms:
            runs = runs_of[placement, norm]
            cells = [shown(interval([row[column] for row in runs])) for column in columns]
            rates = ", ".join(f"{rate:g}" for rate in sorted({row["rate"] for row in runs}))
            head = DESIGN[placement], TITLES[norm], rates, len(runs)
            rows.append((*head, sum(row["diverged"] > 0 for row in runs), *cells))
    titles = ("placement", "norm", "rate", "runs", "diverged", *columns.values())
    return table(titles, rows) + ["From the least mean on test to the largest, " + "; ".join(ranked) + ".", ""]


def search(data):
    """The grid of learning rates. Says where the best one is at its edge. Sizes of a batch are named if they differ."""
    rates, runs = best_rates(data.runs), [row for row in data.runs if row["experiment"] == "search"]
    sizes, grid = {row["tokens"] for row in runs}, sorted({row["rate"] for row in runs})
    found = {(row["norm"], row["placement"], row["tokens"], row["rate"]): row["valid"] for row in runs}

    def named(norm, placement, tokens):
        return f"{TITLES[norm]} {DESIGN[placement]}" + (f" with {tokens} bytes" if len(sizes) > 1 else "")

    rows, edges = [], []
    close = [
        f"{named(*key)} ({rates[key]:g}, but also {', '.join(f'{other:g}' for other in others)})"
        for key, others in close_rates(data.runs).items()
    ]
    for key, best in rates.items():
        norm, placement, tokens = key
        cells = [found.get((*key, rate), math.nan) for rate in grid]
        marks = [f"**{cell:.4f}**" if rate == best else f"{cell:.4f}" for rate, cell in zip(grid, cells)]
        rows.append((*((tokens,) if len(sizes) > 1 else ()), DESIGN[placement], TITLES[norm], *marks))
        if best in (grid[0], grid[-1]):
            edges.append(f"{named(*key)} ({best:g})")
    told = f"At an edge of the grid is the best rate of {', '.join(edges)}." if edges else "No best rate is at an edge."
    if close:
        told += (
            f" One run does not decide between rates that differ by less than {CLOSE}: {'; '.join(close)}. Differences of "
            "losses that need these rates are open above."
        )
    head = (*(("bytes a step",) if len(sizes) > 1 else ()), "placement", "norm", *(f"{rate:g}" for rate in grid))
    return ["Loss on valid; the best is bold.", "", *table(head, sorted(rows)), told, ""]


def images(data):
    """Loss and accuracy of each run of the network for images."""
    columns = ("valid", "test", "test_of_batch", "accuracy")
    titles = ("rate", "seed", "valid", "test", "test, statistics of the batch", "accuracy on test")
    runs = [row for row in data.runs if row["experiment"] == "main"]
    return table(titles, [(f"{row['rate']:g}", row["seed"], *(f"{row[name]:.4f}" for name in columns)) for row in runs])


def of_batches(data):
    """Fig. 5. The runs of the form's own batch are those of the table of losses."""
    norms = list(dict.fromkeys(row["norm"] for row in data.runs if row["experiment"] == "batch"))
    runs = [row for row in data.runs if row["experiment"] in ("main", "batch") and row["placement"] == "post"]
    sizes = sorted({row["tokens"] for row in runs})
    series = {
        TITLES[norm]: [
            interval([row["test"] for row in runs if (row["norm"], row["tokens"]) == (norm, size)]) for size in sizes
        ]
        for norm in norms
    }
    rows = [(name, *(shown(triple) for triple in triples)) for name, triples in series.items()]
    return table(("norm", *(f"{size} bytes a step" for size in sizes)), rows), (sizes, series)


def timed(data):
    whats, norms = (list(dict.fromkeys(row[name] for row in data.cost)) for name in ("what", "norm"))
    rows = []
    for norm in norms:
        cells = []
        for what in whats:
            times = sorted(row["microseconds"] for row in data.cost if (row["what"], row["norm"]) == (what, norm))
            cells.append(f"{times[len(times) // 2]:.1f} ({data.ratio(what, norm, 'ln')[0]:.2f})")
        rows.append((TITLES[norm], *cells))
    return table(("norm", *whats), rows)


def sources(path):
    rows = read(path)
    return table(tuple(rows[0]), [tuple(row.values()) for row in rows])
