"""Writes report.md and plots of a folder of raw data, from its CSV files alone.

    report.py FOLDER
"""

import json
import math
import pathlib
import sys

import svg
from findings import DESIGN, Data, all_findings, interval, shown
from rawdata import best_rates, read
from settings import TITLES


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows] + [""]


def losses(data, rates, norms):
    rows = []
    for placement in ("post", "pre"):
        for norm in norms:
            runs = [row for row in data.runs if row["experiment"] == "main" and (row["norm"], row["placement"]) == (norm, placement)]
            cells = [shown(interval([row[column] for row in runs])) for column in ("valid", "test", "test_of_batch")]
            rows.append((DESIGN[placement], TITLES[norm], f"{rates[norm, placement]:g}", len(runs), sum(row["diverged"] > 0 for row in runs), *cells))
    return table(("placement", "norm", "rate", "runs", "diverged", "valid", "test", "test, statistics of the batch"), rows)


def search(data, rates):
    """The grid of learning rates. Says where the best one is at its edge."""
    grid = sorted({row["rate"] for row in data.runs if row["experiment"] == "search"})
    found = {(row["norm"], row["placement"], row["rate"]): row["valid"] for row in data.runs if row["experiment"] == "search"}
    rows, edges = [], []
    for (norm, placement), best in rates.items():
        cells = [found.get((norm, placement, rate), math.nan) for rate in grid]
        rows.append((DESIGN[placement], TITLES[norm], *(f"**{c:.4f}**" if rate == best else f"{c:.4f}" for rate, c in zip(grid, cells))))
        if best in (grid[0], grid[-1]):
            edges.append(f"{TITLES[norm]} {DESIGN[placement]} ({best:g})")
    told = f"The best rate is at an edge of the grid for: {', '.join(edges)}." if edges else "No best rate is at an edge of the grid."
    return table(("placement", "norm", *(f"{rate:g}" for rate in grid)), rows) + [told, ""]


def of_batches(data):
    """Fig. 5. The runs of the form's own batch are those of the table of losses."""
    norms = list(dict.fromkeys(row["norm"] for row in data.runs if row["experiment"] == "batch"))
    runs = [row for row in data.runs if row["experiment"] in ("main", "batch") and row["placement"] == "post"]
    sizes = sorted({row["tokens"] for row in runs})
    series = {TITLES[norm]: [interval([row["test"] for row in runs if (row["norm"], row["tokens"]) == (norm, size)]) for size in sizes] for norm in norms}
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


def plots(data, curves, folder, batches):
    """Writes the plots. Returns lines of the report that show them."""
    made = []

    def write(name, text, caption):
        (folder / name).write_text(text)
        made.extend([f"![{caption}]({name})", "", caption, ""])

    for placement in ("post", "pre"):
        design = DESIGN[placement]
        norms = list(dict.fromkeys(row["norm"] for row in curves if row["placement"] == placement))
        series = {TITLES[n]: [(row["step"], row["valid"]) for row in curves if (row["norm"], row["placement"]) == (n, placement)] for n in norms}
        write(f"loss-{placement}.svg", svg.lines(f"Loss on valid, {design}, seed 0", "step", "bits a byte", series),
              f"Loss over training, {design} (curves.csv)")
        for kind, title in (("distance", "Distance of batch to running statistics / features"), ("relative", "Relative distance of batch to running statistics")):
            series = {f"{name} of {TITLES[n]}": data.series(n, placement, 0, f"max_{kind}_{name}") for n, name in (("bn", "mu"), ("bn", "var"), ("pnv", "psi2"), ("pn", "psi2"))}
            write(f"{kind}-{placement}.svg", svg.lines(title, "step", "largest of each interval", series, log=True),
                  f"Fig. 2 and 4, left: {kind} at the first norm, {design} (statistics.csv, max_{kind}_*)")
        series = {f"{name} of {TITLES[n]}": data.series(n, placement, 0, name) for n, name in (("bn", "g_mu"), ("bn", "g_var"), ("pnv", "g_psi"), ("pn", "g_psi"))}
        write(f"gradients-{placement}.svg", svg.lines("Gradient statistics / features", "step", "mean of each interval", series, log=True),
              f"Fig. 3 and 4, right: gradient statistics at the first norm, {design} (statistics.csv, g_*)")
    sizes, series = batches
    write("batches.svg", svg.intervals("Bytes a step, post-norm", "test, bits a byte", [f"{size} bytes" for size in sizes], series),
          "Fig. 5: loss over the batch at equal bytes, with intervals of 95 % (runs.csv)")
    cases = list(dict.fromkeys(row["case"] for row in data.theory if row["check"] == "bounded"))
    for quantity in ("nu", "dx"):
        series = {case: [(row["step"], row["value"]) for row in data.theory if (row["check"], row["case"], row["quantity"]) == ("bounded", case, quantity)] for case in cases}
        write(f"bounded-{quantity}.svg", svg.lines(f"Largest |{quantity}| of PN on hostile data", "step", f"|{quantity}|", series, log=True),
              f"Theorems 3 and 4: |{quantity}| over steps (theory.csv, bounded)")
    return made


def write(folder):
    names = ("runs", "statistics", "theory", "cost")
    data = Data(*(read(folder / f"{name}.csv") for name in names))
    curves, sources = read(folder / "curves.csv"), read(folder / "corpus.csv")
    about = json.loads((folder / "machine.json").read_text())
    config, rates = about["config"], best_rates(data.runs)
    norms = list(dict.fromkeys(row["norm"] for row in data.runs))
    findings = all_findings(data)
    counts = {verdict: sum(f[3] == verdict for f in findings) for verdict in ("supported", "contradicted", "mixed", "open")}
    main = [row for row in data.runs if row["experiment"] == "main"]
    batch_table, batches = of_batches(data)
    text = [
        "# The claims of the PowerNorm paper on normc's kernels", "",
        f"Command: `{about['command']}`. {about['processor']}, {about['processors']} processors, {about['jobs']} process with one thread each, load {about['load']:.1f} at the start, "
        f"{about['system']}, Python {about['python']}, PyTorch {about['torch']}, {about['date']}.", "",
        f"A decoder of {config['layers']} layers, {config['width']} features, {config['heads']} heads, a context of {config['context']} bytes, {main[0]['parameters']} parameters; "
        f"{config['steps']} steps of {config['batch']} sequences, {config['seeds']} seeds, the same batches for each norm. AdamW, a linear warmup of the learning rate over a fifth of the steps, then a cosine; no clipping of gradients. "
        f"The rate is searched for each norm and placement with runs of {config['search_steps']} steps. Loss is in bits a byte; intervals are 95 % of Student's t over seeds, without a correction for many comparisons.", "",
        f"So small a model and so few steps say what these norms do here. They do not refute results of larger models.", "",
        "## Claims", "",
        f"{counts['supported']} supported, {counts['contradicted']} contradicted, {counts['mixed']} mixed, {counts['open']} open. `findings.py` holds the rule of each verdict; "
        "figures of the statistics are of one seed. Left out: the translation tasks of Table 1, and the networks for images of Fig. 2 and 3.", "",
        *table(("claim", "source", "evidence", "verdict"), findings),
        "## Losses", "", *losses(data, rates, norms),
        "## Learning rates", "", "Loss on valid; the best is bold.", "", *search(data, rates),
        "## Bytes a step", "", *batch_table,
        "## Time", "", "Median microseconds of processor time, in parentheses the median ratio to LN. A norm is forward and backward with all gradients.", "", *timed(data),
        "## Text", "", *table(("source", "bytes", "train", "valid", "test"), [tuple(row.values()) for row in sources]),
        f"Of valid {config['valid']} and of test {config['test']} bytes are evaluated, in windows drawn over all of it.", "",
        "## Plots", "", *plots(data, curves, folder, batches),
    ]
    (folder / "report.md").write_text("\n".join(text))


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]))
