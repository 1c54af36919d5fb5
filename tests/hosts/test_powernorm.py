"""examples/powernorm runs as a whole on little, and its report says what its raw data say."""

import csv
import dataclasses
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import xml.etree.ElementTree

import pytest
import torch

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples/powernorm"
sys.path.insert(0, str(EXAMPLE))

import evidence  # noqa: E402
import machine  # noqa: E402
import digits  # noqa: E402
import probe  # noqa: E402
import rawdata  # noqa: E402
import report  # noqa: E402
import svg  # noqa: E402
from resnet import ResNet  # noqa: E402
from settings import FORMS  # noqa: E402


def started(folder, *options):
    program = pathlib.Path(os.environ["NORMC_TEST_COMPILER"])
    environment = dict(
        os.environ,
        NORMC_BUILD=str(program.parents[1]),
        NORMC_PYTHON=sys.executable,
        XDG_CACHE_HOME=os.environ["NORMC_TEST_CACHE"],
    )
    command = [EXAMPLE / "run", "--smoke", folder, "--offline", *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def run(folder, *options):
    done = started(folder, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("powernorm")
    run(folder)
    return folder


@pytest.fixture
def copied(made, tmp_path):
    return shutil.copytree(made, tmp_path / "copy")


def rows_of(folder, name):
    with (folder / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def cells(folder, *begin, behind="#"):
    """Returns the cells of the table's row that begins with these. behind: a text of the report in front of it."""
    lines = (folder / "report.md").read_text().partition(behind)[2].splitlines()
    found = [re.split(r" (?<!\\)\| ", line[2:-2]) for line in lines if line.startswith("| " + " | ".join(begin) + " |")]
    assert found, begin
    return found[0]


@pytest.mark.parametrize("form", FORMS)
def test_heads_divide_the_features_of_a_form(form):
    config = FORMS[form]
    assert all(features % config.heads == 0 for features in (config.width, *(shape[1] for shape in config.shapes)))


TITLES = {"ln": "LN", "rms": "RMS", "bn": "BN", "pnv": "PN-V", "pn": "PN", "pn_released": "PN released"}
OF_BATCH = ("valid", "test", "test_of_batch")


@pytest.mark.parametrize(
    "name, behind, norms, placements, columns",
    [
        ("runs", "## Losses", tuple(TITLES), ("pre", "post"), OF_BATCH),
        ("translation", "## Translation", tuple(TITLES), ("pre", "post"), (*OF_BATCH, "test_exchanged")),
        ("mixed", "of all lengths in a batch", ("ln", "bn", "pnv", "pn"), ("post",), (*OF_BATCH, "test_exchanged")),
    ],
)
def test_losses_are_means_of_the_runs(made, name, behind, norms, placements, columns):
    runs = [row for row in rows_of(made, name) if row["experiment"] == "main"]
    assert len(runs) == 2 * len(norms) * len(placements)
    for norm in norms:
        for placement in placements:
            of = [row for row in runs if (row["norm"], row["placement"]) == (norm, placement)]
            assert len(of) == 2
            row = cells(made, placement + "-norm", TITLES[norm], behind=behind)
            assert len(row) == 5 + len(columns)
            for column, cell in zip(columns, row[5:]):
                assert float(cell.split()[0]) == pytest.approx(statistics.fmean(float(r[column]) for r in of), abs=6e-5)


@pytest.mark.parametrize("name, claim", [("runs", ""), ("translation", "Translation: ")])
def test_differences_are_paired_by_seed(made, name, claim):
    loss = {
        (row["norm"], row["seed"]): float(row["test"])
        for row in rows_of(made, name)
        if row["experiment"] == "main" and row["placement"] == "post"
    }
    pairs = [loss["pn", seed] - loss["ln", seed] for seed in ("0", "1")]
    evidence = cells(made, claim + "PN is better than LN")[2]
    mean, low, high = map(float, re.search(r"post-norm: (\S+) \[(\S+), (\S+)\]", evidence).groups())
    assert mean == pytest.approx(statistics.fmean(pairs), abs=6e-5)
    # t of one degree of freedom is 12.706, and the deviation of two values half their distance times sqrt(2)
    assert high - low == pytest.approx(2 * 12.706 * abs(pairs[0] - pairs[1]) / 2, abs=2e-4)


def test_the_rate_is_the_best_of_the_search(made):
    for norm in ("ln", "pn"):
        search = [
            r
            for r in rows_of(made, "runs")
            if r["experiment"] == "search" and (r["norm"], r["placement"]) == (norm, "pre")
        ]
        used = {
            r["rate"]
            for r in rows_of(made, "runs")
            if r["experiment"] == "main" and (r["norm"], r["placement"]) == (norm, "pre")
        }
        assert len(search) == 2 and used == {min(search, key=lambda r: float(r["valid"]))["rate"]}


def test_the_transformer_is_compared_with_the_network_for_images(made):
    def mean(placement, column):
        rows = [row for row in rows_of(made, "statistics") if (row["norm"], row["placement"]) == ("bn", placement)]
        return statistics.fmean(float(row[column]) for row in rows if row["site"] == rows[0]["site"])

    claim = "BN's batch statistics vary more in a transformer than in a network for images"
    told = float(re.search(r"post-norm, relative_var (\S+) ", cells(made, claim)[2])[1])
    assert told == pytest.approx(mean("post", "relative_var") / mean("images", "relative_var"), abs=6e-3)
    told = float(re.search(r"pre-norm, g_mu (\S+) ", cells(made, "The same, summed over the rows of a batch")[2])[1])
    rows = 8 * 16, 8 * 8 * 8  # of a step: sequences and bytes; images and pixels
    assert told == pytest.approx(mean("pre", "g_mu") * rows[0] / (mean("images", "g_mu") * rows[1]), abs=6e-3)


def test_images_are_split_and_have_a_fallback(tmp_path):
    splits, (row,) = digits.load(tmp_path, "")
    assert row == {"source": "fallback: gratings", "images": 1800, "train": 1440, "valid": 180, "test": 180}
    for name, (drawn, labels) in splits.items():
        assert drawn.shape == (row[name], 8, 8) and set(labels) <= set(range(10)), name
    again, _ = digits.load(tmp_path, "")
    assert (again["test"][0] == splits["test"][0]).all()
    _, (row,) = digits.load(tmp_path, "a-package-that-is-not-there")
    assert row["source"] == "fallback: gratings"


def test_the_network_for_images_is_resnet_20():
    model = ResNet(width=16, units=3, kinds=10)
    layers = [m for m in model.modules() if isinstance(m, (torch.nn.Conv2d, torch.nn.Linear))]
    assert len(layers) == 20 and len(model.sites()) == 19 and next(iter(model.sites())) == "stem"
    assert model(torch.zeros(2, 1, 32, 32)).shape == (2, 10)
    assert sum(p.numel() for p in model.parameters()) == 269434  # 269,722 with three channels of input


def test_a_probe_takes_the_channels_of_images_as_features():
    x = torch.randn(2, 3, 4, 5)
    assert torch.equal(probe.rows_of(x), torch.stack([x[:, c].flatten() for c in range(3)], 1))
    assert torch.equal(probe.rows_of(x[0]), x[0].reshape(12, 5))


def test_the_report_follows_from_the_files_alone(copied):
    names = ["report.md", *(path.name for path in copied.glob("*.svg"))]
    before = {name: (copied / name).read_bytes() for name in names}
    for name in names:
        (copied / name).unlink()
    report.write(copied)
    assert len(names) > 10 and {name: (copied / name).read_bytes() for name in names} == before


def test_another_number_makes_another_report(copied):
    rows = rows_of(copied, "runs")
    changed = next(
        row for row in rows if row["experiment"] == "main" and (row["norm"], row["placement"]) == ("pn", "post")
    )
    before = cells(copied, "post-norm", "PN")
    changed["test"] = str(float(changed["test"]) + 2)
    with (copied / "runs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    report.write(copied)
    after = cells(copied, "post-norm", "PN")
    assert float(after[6].split()[0]) == pytest.approx(float(before[6].split()[0]) + 1, abs=2e-4)
    assert after[5] == before[5]


def test_what_is_proved_holds(made):
    def largest(check, quantity, begin=""):
        return max(
            float(r["value"])
            for r in rows_of(made, "theory")
            if (r["check"], r["quantity"]) == (check, quantity) and r["case"].startswith(begin)
        )

    assert largest("lemma_2", "error", "float64") < 1e-12
    for quantity in ("y", "dx", "dgamma", "dbeta", "psi2", "nu"):
        assert largest("checkpoint", quantity) < 1e-10
    assert largest("bounded", "gamma", "quiet") < 20 < largest("bounded", "gamma", "outliers each 40")
    assert (
        largest("bounded", "nu", "outliers each 40, clamped") < 10 < 1e6 < largest("bounded", "nu", "outliers each 40")
    )
    assert largest("bounded", "nu", "outliers each 40, released") < 10


def test_plots_are_svg_with_a_line_for_each_norm(made):
    plots = {path.name: xml.etree.ElementTree.parse(path).getroot() for path in made.glob("*.svg")}
    assert all(root.tag == "{http://www.w3.org/2000/svg}svg" for root in plots.values())
    lines = plots["gradients-post.svg"].findall("{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 4 and all(len(line.get("points").split()) == 3 for line in lines)  # 12 steps, a row for each 4
    text = (made / "report.md").read_text()
    assert all(f"({name})" in text for name in plots)


def test_a_log_axis_of_few_decades_names_values_between_powers():
    def labels(low, high):
        return [text for _, text in svg.Axis([low, high], 0, 100, log=True, margin=0).ticks()]

    assert labels(0.05, 0.8) == ["5e-2", "1e-1", "2e-1", "5e-1"]
    assert labels(0.3, 400) == ["1e0", "1e1", "1e2"]
    assert labels(0.11, 0.15) == ["1.1e-1", "1.5e-1"]


def test_a_second_call_goes_on_and_more_seeds_add_theirs(copied):
    before = rows_of(copied, "runs")
    lines = (copied / "runs.csv").read_text().splitlines(keepends=True)
    (copied / "runs.csv").write_text("".join(lines[:-2]))
    (copied / "mixed.csv").unlink()
    about = json.loads((copied / "machine.json").read_text())  # as it was before there were translations
    facts = {**about.pop("calls")[0], "processor": "Another Processor"}
    facts.pop("found")
    about["config"].pop("translation")
    (copied / "machine.json").write_text(json.dumps({**about, **facts}))
    said = run(copied, "--seeds", "3")
    after = rows_of(copied, "runs")
    assert said.count("bits a byte") == 2 + 12 + 4 + 12 + (8 + 3 * 4) and len(after) == len(before) + 12 + 4
    assert after[: len(before) - 2] == before[:-2]
    for again, first in zip(after[len(before) - 2 :], before[-2:]):  # the same bits, but for the time
        assert {**again, "milliseconds": ""} == {**first, "milliseconds": ""}
    assert cells(copied, "post-norm", "PN")[3] == "3"
    told = [line for line in (copied / "report.md").read_text().splitlines() if "This call added" in line]
    assert len(told) == 2 and told[0].startswith("- Another Processor, ")
    assert f"runs.csv ({len(lines) - 3} rows)" in told[0]
    assert "runs.csv (18 rows), translation.csv (12 rows), mixed.csv (20 rows), images.csv (1 row)." in told[1]


def test_a_folder_without_all_runs_has_no_report(copied):
    path = copied / "mixed.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.startswith("main,pn,")))
    said = subprocess.run([sys.executable, EXAMPLE / "report.py", copied], capture_output=True, text=True)
    assert said.returncode == 1 and "lacks runs of 1 comparisons, first mixed: pn post" in said.stderr, said.stderr
    (copied / "machine.json").unlink()
    said = subprocess.run([sys.executable, EXAMPLE / "report.py", copied], capture_output=True, text=True)
    assert said.stderr == f"report.py: {copied} has no machine.json, which experiment.py writes\n"


def test_a_call_with_other_data_ends_before_it_writes(copied):
    path = copied / "corpus.csv"
    path.write_text(path.read_text().replace("fallback: common-licenses,", "fallback: common-licenses,1"))
    before = {each.name: each.read_bytes() for each in copied.iterdir()}
    done = started(copied, "--seeds", "3")
    assert done.returncode == 2 and "holds runs on other data: corpus.csv has fallback: common-licenses,1" in done.stderr
    assert {each.name: each.read_bytes() for each in copied.iterdir()} == before


def begun(folder, command="", **changes):
    machine.begin(folder, dataclasses.replace(FORMS["smoke"], **changes), "smoke", command, machine.facts(1, "2"))


def refusal(folder, sources={}, **changes):
    return machine.refusal(folder, dataclasses.replace(FORMS["smoke"], **changes), sources)


def test_runs_of_other_settings_are_refused(tmp_path):
    assert refusal(tmp_path) == ""
    begun(tmp_path)
    assert refusal(tmp_path) == refusal(tmp_path, seeds=9) == "" and refusal(tmp_path, width=32)
    translation = dataclasses.replace(FORMS["smoke"].translation, batch=5)
    assert refusal(tmp_path, translation=translation) == "data of other settings"


def test_runs_on_other_data_are_refused(tmp_path):
    kept = [{"source": source, "bytes": 30, "train": 20, "valid": 5, "test": 5} for source in ("a, b", "c")]
    rawdata.append(tmp_path / "corpus.csv", kept[:1])
    assert refusal(tmp_path, {"corpus": kept[:1], "pairs": kept}) == ""
    told = "runs on other data: corpus.csv has a, b,30,20,5,5, now it would have a, b,31,21,5,5"
    assert refusal(tmp_path, {"corpus": [{**kept[0], "bytes": 31, "train": 21}]}) == told
    assert refusal(tmp_path, {"corpus": kept}).endswith("has no other line, now it would have c,30,20,5,5")


def test_the_kept_runs_of_the_full_form_go_on():
    folder = EXAMPLE.parents[1] / "bench/results/powernorm-full"
    sources = {name: rawdata.read(folder / f"{name}.csv") for name in ("corpus", "pairs", "digits")}
    assert all(sources.values()) and machine.refusal(folder, FORMS["full"], sources) == ""


def test_a_call_with_fewer_seeds_keeps_those_of_the_folder(tmp_path):
    def head():
        about = machine.read(tmp_path)
        return about["command"], about["config"]["seeds"]

    begun(tmp_path, "run --seeds 5", seeds=5)
    begun(tmp_path, "run")
    assert head() == ("run --seeds 5", 5)
    begun(tmp_path, "run --seeds 6", seeds=6)
    assert head() == ("run --seeds 6", 6)


@pytest.mark.parametrize(
    "ours, theirs, verdict",
    [
        ((2.0, 2.1, 2.2), (2.5, 2.6, 2.71), "supported"),
        ((2.5, 2.6, 2.71), (2.0, 2.1, 2.2), "contradicted"),
        ((2.0, 2.6, 2.2), (2.5, 2.1, 2.3), "open"),
        ((2.0, 2.1, float("nan")), (2.5, 2.6, 2.7), "open"),
    ],
)
def test_verdicts(ours, theirs, verdict):
    runs = [
        {"experiment": "main", "norm": norm, "placement": "pre", "tokens": 8, "seed": seed, "test": value}
        for norm, values in (("pn", ours), ("ln", theirs))
        for seed, value in enumerate(values)
    ]
    told, found = evidence.ordered(evidence.Data(runs, [], [], []), "pn", "ln", "pre")
    assert found == verdict and ("diverged" in told) == (ours[2] != ours[2])


def test_a_rate_that_the_search_does_not_decide_leaves_a_difference_open():
    def run(experiment, norm, rate, value, seed=0):
        return {
            "experiment": experiment,
            "norm": norm,
            "placement": "pre",
            "tokens": 8,
            "rate": rate,
            "seed": seed,
            "test": value,
            "valid": value,
        }

    def verdict(second):
        search = [run("search", norm, rate, value) for norm in ("pn", "ln") for rate, value in ((1, 3.0), (2, second))]
        main = [
            run("main", n, 1, value + 0.01 * seed * (n == "pn"), seed)
            for n, value in (("pn", 2), ("ln", 3))
            for seed in (0, 1)
        ]
        return evidence.ordered(evidence.Data(search + main, [], [], []), "pn", "ln", "pre")[1]

    assert verdict(3.5) == "supported" and verdict(3.001) == "open"


def test_statistics_of_a_claim():
    assert evidence.joined(["open", "open"]) == "open" and evidence.joined(["supported", "open"]) == "mixed"
    rows = [
        {
            "norm": norm,
            "placement": placement,
            "site": site,
            "step": step,
            "distance_psi2": psi2,
            "max_distance_psi2": psi2,
            "distance_mu": 3.0,
            "max_distance_mu": 3.0,
            "distance_var": 4.0,
            "max_distance_var": 4.0,
        }
        for norm, psi2 in (("pnv", 1.0), ("bn", 9.0))
        for placement in ("pre", "post")
        for site in ("a", "b")
        for step in (1, 2)
    ]
    data = evidence.Data([], rows, [], [])
    assert evidence.compared(data, "distance_", ("pnv", "psi2"), ("bn", "var"))[1] == "supported"
    assert evidence.compared(data, "distance_", ("bn", "psi2"), ("bn", "var"))[1] == "contradicted"
    assert evidence.compared(data, "distance_", ("bn", "mu"), ("bn", "var"))[1] == "open"
    stopped = [{**row, "distance_psi2": 7.0} for row in rows]  # before the row of its run was written
    again = evidence.Data([], stopped + rows, [], [])
    assert again.series("pnv", "pre", -1, "distance_psi2") == [(1, 1.0), (2, 1.0)]
