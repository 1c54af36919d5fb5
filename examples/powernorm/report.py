"""Writes report.md and plots of a folder of raw data, from its CSV files alone.

report.py FOLDER
"""

import pathlib
import sys

import machine
import schedule
import tables
from evidence import DESIGN, Data, interval
from findings import Finding, all_findings
from plots import plots
from rawdata import read
from settings import TITLES, config_from


def translation(translated, mixed, columns):
    """Losses, learning rates, and how much the sources help. columns: of the other losses."""
    columns = {**columns, "test_exchanged": "test, sources exchanged"}
    cases = dict.fromkeys((row["norm"], row["placement"]) for row in translated.runs if row["experiment"] == "main")
    means = {
        case: [interval(list(translated.losses(*case, column).values()))[0] for column in ("test", "test_exchanged")]
        for case in cases
    }
    (norm, placement), (best, exchanged) = min(means.items(), key=lambda item: (item[1][0] != item[1][0], item[1]))
    return [
        "Bits a byte of the German text, given the English one and the bytes before. *Sources exchanged*: each text gets "
        f"the source of another one of about its length. {TITLES[norm]} {DESIGN[placement]}, the best of the first table, "
        f"then has {exchanged:.4f} in place of {best:.4f}. The paper compares BLEU. With {best:.4f} bits a byte the byte "
        f"that is to be found has a probability of {2**-best:.2f} in the geometric mean, too little for whole sentences, "
        "so losses are compared.",
        "",
        "The texts of a batch have about equal lengths, as those of the paper's training with fairseq, whose batches are "
        "larger.",
        "",
        *tables.losses(translated, columns),
        *tables.search(translated),
        "The same with texts of all lengths in a batch, post-norm:",
        "",
        *tables.losses(mixed, columns),
        *tables.search(mixed),
    ]


def places(folder, about):
    """Returns a sentence for each call that filled the folder; where there are several, with the rows that it added."""
    calls = machine.added(folder, about["calls"])
    told = []
    for call, rows in calls:
        added = ", ".join(f"{name}.csv ({count} row{'s'[: count - 1]})" for name, count in rows.items())
        told.append(
            f"{call['processor']}, {call['processors']} processors; training in {call['jobs']} of them, with one thread "
            f"each; load {call['load']:.1f} at the start. {call['system']}, Python {call['python']}, PyTorch "
            f"{call['torch']}, {call['date']}." + (f" This call added {added}." if len(calls) > 1 else "")
        )
    return told if len(told) < 2 else ["", "", *(f"- {each}" for each in told)]


def introduction(folder, about, parameters):
    """Returns the lines on the command, the machines and what is trained. parameters: those of the three models."""
    config = about["config"]
    pairs = config["translation"]
    first, *others = places(folder, about)
    return [
        "# The claims of the PowerNorm paper on normc's kernels",
        "",
        f"Command: `{about['command']}`. {first}".rstrip(),
        *others,
        "",
        f"A decoder of {config['layers']} layers, {config['width']} features and {config['heads']} heads that sees "
        f"{config['context']} bytes: {parameters[0]} parameters. {config['steps']} steps of {config['batch']} sequences, "
        f"{config['seeds']} seeds; with equal seeds all norms see the same batches. AdamW without clipping of gradients; "
        "the learning rate rises over a fifth of the steps and falls as a cosine. It is searched for each norm, "
        f"placement and batch, by runs of {config['search_steps']} steps. Losses are in bits a byte; brackets hold 95 % "
        "of Student's t over seeds, without a correction for many comparisons.",
        "",
        f"For translation an encoder and a decoder of {config['layers']} layers each: {parameters[1]} parameters. "
        f"{pairs['steps']} steps of {pairs['batch']} pairs with at most {pairs['context']} bytes a side, all else as above; "
        f"the search by runs of {pairs['search_steps']} steps.",
        "",
        f"For images a residual network of three stages with {config['images']['units']} units each and "
        f"{config['images']['width']} channels in the first: {parameters[2]} parameters. {config['images']['steps']} steps "
        f"of {config['images']['batch']} images with BN alone, all else as above; the search by runs of "
        f"{config['images']['search_steps']} steps.",
        "",
        "So small models and so few steps say what these norms do here; they do not refute results of larger ones.",
        "",
    ]


def claims(*parts):
    findings = all_findings(*parts)
    kinds = ("supported", "contradicted", "mixed", "open")
    counts = ", ".join(f"{sum(finding.verdict == kind for finding in findings)} {kind}" for kind in kinds)
    return [
        "## Claims",
        "",
        f"{counts}. `findings.py` and `evidence.py` hold the rule of each verdict. Figures of Fig. 2 to 4 are of one seed, "
        "each norm at its own learning rate. "
        "BN and PN-V take statistics over all positions, so in "
        "training, and where a table says statistics of the batch, they see later bytes of the text that they predict.",
        "",
        *tables.table(Finding._fields, findings),
    ]


def lacking(folder):
    """Returns which comparisons of the settings have no run yet, as "task: norm placement tokens"."""
    config, found = config_from(machine.read(folder)["config"]), []
    for task, name in schedule.FILES.items():
        runs = {tuple(row[key] for key in ("experiment", "norm", "placement", "tokens")) for row in read(folder / f"{name}.csv")}
        for experiment, norm, placement, batch in schedule.compared(config, task):
            tokens = schedule.tokens_of(config, task, batch)
            if (experiment, norm, placement, tokens) not in runs:
                found.append(f"{task}: {norm} {placement} {tokens}")
    return found


def main():
    folder = pathlib.Path(sys.argv[1])
    if machine.read(folder) is None:
        sys.exit(f"report.py: {folder} has no machine.json, which experiment.py writes")
    if missing := lacking(folder):
        sys.exit(f"report.py: {folder} lacks runs of {len(missing)} comparisons, first {missing[0]}; "
                 f"{machine.read(folder)['command']} with this folder goes on")
    write(folder)


def write(folder):
    data = Data(*(read(folder / f"{name}.csv") for name in ("runs", "statistics", "theory", "cost")))
    others = ("translation", "mixed", "images")
    translated, mixed, images = (Data(read(folder / f"{name}.csv"), [], [], []) for name in others)
    curves, about = read(folder / "curves.csv"), machine.read(folder)
    config = about["config"]
    models = (data, translated, images)
    parameters = [next(row["parameters"] for row in of.runs if row["experiment"] == "main") for of in models]
    columns = {"valid": "valid", "test": "test", "test_of_batch": "test, statistics of the batch"}
    batch_table, batches = tables.of_batches(data)
    sections = {
        "Losses": tables.losses(data, columns),
        "Learning rates": tables.search(data),
        "Bytes a step": ["Post-norm, loss on test, with as many bytes in all.", "", *batch_table],
        "Translation": translation(translated, mixed, columns),
        "Images": [
            "Cross entropy in bits an image.",
            "",
            *tables.images(images),
            *tables.sources(folder / "digits.csv"),
        ],
        "Time": [
            "Median microseconds of processor time, in parentheses the median ratio to LN. A norm is forward and "
            "backward with all gradients.",
            "",
            *tables.timed(data),
        ],
        "Text": [
            *tables.sources(folder / "corpus.csv"),
            f"Of valid {config['valid']} and of test {config['test']} bytes are evaluated, in windows drawn over all of it.",
            "",
            *tables.sources(folder / "pairs.csv"),
            f"Of valid and of test {config['translation']['pairs']} pairs are evaluated, where there are as many.",
            "",
        ],
        "Plots": plots(data, curves, folder, batches),
    }
    lines = [*introduction(folder, about, parameters), *claims(data, translated, mixed)]
    for title, content in sections.items():
        lines += [f"## {title}", "", *content]
    (folder / "report.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
