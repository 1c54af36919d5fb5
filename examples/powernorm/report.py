"""Writes report.md and plots of a folder of raw data, from its CSV files alone.

report.py FOLDER
"""

import json
import math
import pathlib
import sys

from evidence import DESIGN, Data, interval, shown
from findings import Finding, all_findings
from plots import plots
from rawdata import CLOSE, best_rates, close_rates, read
from settings import TITLES


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows] + [""]


def losses(data, rates, norms, tokens):
    rows, ranked = [], []
    for placement in ("post", "pre"):
        means = {norm: interval(list(data.losses(norm, placement).values()))[0] for norm in norms}
        ranks = sorted((norm for norm in norms if math.isfinite(means[norm])), key=means.get)
        ranked.append(f"{DESIGN[placement]}: {', '.join(TITLES[norm] for norm in ranks)}")
        for norm in norms:
            runs = [
                row
                for row in data.runs
                if (row["experiment"], row["norm"], row["placement"]) == ("main", norm, placement)
            ]
            cells = [shown(interval([row[column] for row in runs])) for column in ("valid", "test", "test_of_batch")]
            head = DESIGN[placement], TITLES[norm], f"{rates[norm, placement, tokens]:g}", len(runs)
            rows.append((*head, sum(row["diverged"] > 0 for row in runs), *cells))
    titles = ("placement", "norm", "rate", "runs", "diverged", "valid", "test", "test, statistics of the batch")
    return table(titles, rows) + ["From the least mean on test to the largest, " + "; ".join(ranked) + ".", ""]


def search(data, rates):
    """The grid of learning rates. Says where the best one is at its edge."""
    runs = [row for row in data.runs if row["experiment"] == "search"]
    grid = sorted({row["rate"] for row in runs})
    found = {(row["norm"], row["placement"], row["tokens"], row["rate"]): row["valid"] for row in runs}
    rows, edges = [], []
    close = [
        f"{TITLES[norm]} {DESIGN[placement]} with {tokens} bytes ({rates[norm, placement, tokens]:g}, but also "
        f"{', '.join(f'{other:g}' for other in others)})"
        for (norm, placement, tokens), others in close_rates(data.runs).items()
    ]
    for (norm, placement, tokens), best in rates.items():
        cells = [found.get((norm, placement, tokens, rate), math.nan) for rate in grid]
        marks = [f"**{cell:.4f}**" if rate == best else f"{cell:.4f}" for rate, cell in zip(grid, cells)]
        rows.append((tokens, DESIGN[placement], TITLES[norm], *marks))
        if best in (grid[0], grid[-1]):
            edges.append(f"{TITLES[norm]} {DESIGN[placement]} with {tokens} bytes ({best:g})")
    told = f"At an edge of the grid is the best rate of {', '.join(edges)}." if edges else "No best rate is at an edge."
    if close:
        told += (
            f" One run does not decide between rates that differ by less than {CLOSE}: {'; '.join(close)}. Differences of "
            "losses that need these rates are open above."
        )
    return table(("bytes a step", "placement", "norm", *(f"{rate:g}" for rate in grid)), sorted(rows)) + [told, ""]


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


def introduction(about, parameters):
    """Returns the lines on the command, the machine and what is trained."""
    config = about["config"]
    return [
        "# The claims of the PowerNorm paper on normc's kernels",
        "",
        f"Command: `{about['command']}`. {about['processor']}, {about['processors']} processors; training in "
        f"{about['jobs']} of them, with one thread each; load {about['load']:.1f} at the start. {about['system']}, "
        f"Python {about['python']}, PyTorch {about['torch']}, {about['date']}.",
        "",
        f"A decoder of {config['layers']} layers, {config['width']} features and {config['heads']} heads that sees "
        f"{config['context']} bytes: {parameters} parameters. {config['steps']} steps of {config['batch']} sequences, "
        f"{config['seeds']} seeds; with equal seeds all norms see the same batches. AdamW without clipping of gradients; "
        "the learning rate rises over a fifth of the steps and falls as a cosine. It is searched for each norm, "
        f"placement and batch, by runs of {config['search_steps']} steps. Losses are in bits a byte; brackets hold 95 % "
        "of Student's t over seeds, without a correction for many comparisons.",
        "",
        "So small a model and so few steps say what these norms do here; they do not refute results of larger ones.",
        "",
    ]


def claims(data):
    findings = all_findings(data)
    kinds = ("supported", "contradicted", "mixed", "open")
    counts = ", ".join(f"{sum(finding.verdict == kind for finding in findings)} {kind}" for kind in kinds)
    return [
        "## Claims",
        "",
        f"{counts}. `findings.py` and `evidence.py` hold the rule of each verdict. Figures of Fig. 2 to 4 are of one seed, "
        "each norm at its own learning rate. "
        "Not done: the translation tasks of Table 1, and the networks for images of Fig. 2 and 3. BN and PN-V take "
        "statistics over all positions, so in training, and where the table says statistics of the batch, they see later "
        "bytes of the text that they predict.",
        "",
        *table(Finding._fields, findings),
    ]


def write(folder):
    data = Data(*(read(folder / f"{name}.csv") for name in ("runs", "statistics", "theory", "cost")))
    curves, sources = read(folder / "curves.csv"), read(folder / "corpus.csv")
    about = json.loads((folder / "machine.json").read_text())
    config, rates = about["config"], best_rates(data.runs)
    norms = list(dict.fromkeys(row["norm"] for row in data.runs))
    parameters = next(row["parameters"] for row in data.runs if row["experiment"] == "main")
    batch_table, batches = of_batches(data)
    sections = {
        "Losses": losses(data, rates, norms, config["batch"] * config["context"]),
        "Learning rates": ["Loss on valid; the best is bold.", "", *search(data, rates)],
        "Bytes a step": ["Post-norm, loss on test, with as many bytes in all.", "", *batch_table],
        "Time": [
            "Median microseconds of processor time, in parentheses the median ratio to LN. A norm is forward and "
            "backward with all gradients.",
            "",
            *timed(data),
        ],
        "Text": [
            *table(("source", "bytes", "train", "valid", "test"), [tuple(row.values()) for row in sources]),
            f"Of valid {config['valid']} and of test {config['test']} bytes are evaluated, in windows drawn over all of it.",
            "",
        ],
        "Plots": plots(data, curves, folder, batches),
    }
    lines = [*introduction(about, parameters), *claims(data)]
    for title, content in sections.items():
        lines += [f"## {title}", "", *content]
    (folder / "report.md").write_text("\n".join(lines))


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]))
