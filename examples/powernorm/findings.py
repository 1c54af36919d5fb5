"""The claims of the paper: the place of each, the evidence in the raw data, and a verdict by a rule that stands here."""

import math
import typing

from evidence import DESIGN, EQUAL, UNSTABLE, compared, interval, is_below_zero, joined, ordered, shown
from digits import SIDE
from settings import TITLES


TRANSLATION, MIXED = "Translation: ", "Translation, batches of all lengths: "


class Finding(typing.NamedTuple):
    claim: str
    source: str  # in the paper
    evidence: str
    verdict: str


def decided(holds):
    return "supported" if holds else "contradicted"


ORDERS = (("pn", "ln"), ("ln", "pnv"), ("pnv", "bn"), ("pn", "bn"), ("pn_released", "ln"), ("pn_released", "pn"))


def order(data, source, task="", placements=("post", "pre")):
    """The order of a table of the paper, and the released form of PN. task: how the claims begin."""
    found, norms = [], {row["norm"] for row in data.runs}
    for better, worse in ORDERS:
        if better in norms:
            place = "A.1, released code" if better == "pn_released" else source
            parts = [ordered(data, better, worse, placement) for placement in placements]
            told = "loss of the first minus that of the second. " + "; ".join(part[0] for part in parts)
            verdict = joined(part[1] for part in parts)
            found.append(Finding(f"{task}{TITLES[better]} is better than {TITLES[worse]}", place, told, verdict))
    return found


RATIOS = (  # claim, source, kind of column, (norm, statistic) above, and below the line
    ("The quadratic mean of PN-V varies far less than the variance of BN", "Fig. 4, left", "distance_",
     ("pnv", "psi2"), ("bn", "var")),
    ("The same, relative to the size of each", "as Fig. 4", "relative_", ("pnv", "psi2"), ("bn", "var")),
    ("The quadratic mean of PN varies far less than the variance of BN", "as Fig. 4", "distance_",
     ("pn", "psi2"), ("bn", "var")),
    ("In one model, of BN, the quadratic mean varies far less than the variance", "section 4.1", "relative_",
     ("bn", "psi2"), ("bn", "var")),
    ("In one model, of BN, the quadratic mean varies far less than the mean", "section 4.1", "relative_",
     ("bn", "psi2"), ("bn", "mu")),
    ("g_psi2 of PN-V is far smaller than g_sigma2 of BN", "Fig. 4, right", "", ("pnv", "g_psi"), ("bn", "g_var")),
    ("g_psi2 of PN-V is far smaller than g_mu of BN", "Fig. 4, right", "", ("pnv", "g_psi"), ("bn", "g_mu")),
)  # fmt: skip


def variation(data):
    """Fig. 4: how far batches are from running statistics, and the gradients of statistics."""
    found = []
    for claim, source, kind, above, below in RATIOS:
        names = [f"{kind}{statistic} of {TITLES[norm]}" for norm, statistic in (above, below)]
        told, verdict = compared(data, kind, above, below)
        found.append(Finding(claim, source, f"{names[0]} over {names[1]}, means over training: {told}", verdict))
    return found


def beside_images(data):
    """Fig. 2 and 3: BN's first norm in a transformer, over that in a network for images."""
    found = []
    tokens = {row["placement"]: row["tokens"] for row in data.statistics if row["norm"] == "bn"}
    rows = {placement: count * SIDE**2 if placement == "images" else count for placement, count in tokens.items()}
    for claim, source, columns, sums in (
        ("BN's batch statistics vary more in a transformer than in a network for images", "Fig. 2",
         ("relative_mu", "relative_var"), False),
        ("BN's gradient statistics are larger in a transformer than in a network for images", "Fig. 3",
         ("g_mu", "g_var"), False),
        ("The same, summed over the rows of a batch", "as Fig. 3", ("g_mu", "g_var"), True),
    ):  # fmt: skip
        told, verdicts = [], []
        for placement in DESIGN:
            for column in columns:
                scale = rows[placement] / rows["images"] if sums and "images" in rows else 1
                mean, peak = (
                    scale * of("bn", placement, 0, column) / of("bn", "images", 0, column)
                    for of in (data.mean, data.largest)
                )
                told.append(f"{DESIGN[placement]}, {column} {mean:.2f} (largest steps {peak:.2f})")
                verdicts.append(decided(mean > 1) if math.isfinite(mean) else "open")
        how = "BN's first norm in the transformer over that in the network for images, means over training: "
        found.append(Finding(claim, source, how + "; ".join(told), joined(verdicts)))
    return found


def batches(data):
    """Fig. 5: the order at other sizes of a batch, with as many bytes in all."""
    found = []
    for tokens in sorted({row["tokens"] for row in data.runs if row["experiment"] == "batch"}):
        for better, worse in (("pn", "bn"), ("pn", "pnv"), ("pn", "ln")):
            told, verdict = ordered(data, better, worse, "post", experiment="batch", tokens=tokens)
            claim = f"With {tokens} bytes a step {TITLES[better]} is better than {TITLES[worse]}"
            found.append(Finding(claim, "Fig. 5", told, verdict))
    return found


def gap(data, task="", placements=("post", "pre")):
    """What inference with running statistics costs BN, PN-V and PN. task: how the claim begins."""
    told, verdicts = [], []
    for placement in placements:
        for norm in ("bn", "pnv", "pn"):
            running, of_batch = data.losses(norm, placement), data.losses(norm, placement, "test_of_batch")
            triple = interval([running[seed] - of_batch[seed] for seed in running])
            verdict = is_below_zero(interval([of_batch[seed] - running[seed] for seed in running]))
            told.append(f"{DESIGN[placement]}, {TITLES[norm]}: {shown(triple)}")
            verdicts += [verdict] if norm == "bn" else []
    how = "loss with running statistics minus that with those of a batch as large as in training. "
    claim = f"{task}BN is worse with running statistics than with those of the batch"
    return [Finding(claim, "section 3", how + "; ".join(told), joined(verdicts))]


def bounded(data):
    """Theorems 3 and 4: {case: (whether its second half stays within twice its first, what it says)}."""
    found = {}
    for case in dict.fromkeys(row["case"] for row in data.theory if row["check"] == "bounded"):
        of = {name: data.checked("bounded", name, case, exact=True) for name in ("nu", "dx", "gamma")}
        values = {name: [value for _, value in points] for name, points in of.items()}
        half = len(values["nu"]) // 2
        stays = all(
            math.isfinite(max(values[name])) and max(values[name][half:]) <= 2 * max(values[name][:half])
            for name in ("nu", "dx")
        )
        found[case] = (
            stays,
            (
                f"{case}: largest Gamma {max(values['gamma']):.4g}, |nu| {max(values['nu']):.3g}, "
                f"|dx| {max(values['dx']):.3g} in {of['nu'][-1][0]} steps"
            ),
        )
    return found


def theorems(data):
    cases = bounded(data)
    often = "outliers each 40"
    claims = (
        ("PN's gradients stay bounded where Gamma stays below 2 / (1 - alpha)", "Theorems 3, 4", "quiet"),
        ("They stay bounded with rare outliers", "Theorems 3, 4", "outliers each 200"),
        ("They stay bounded with frequent outliers", "Theorems 3, 4, without the assumption of the last", often),
        ("clamp_gamma keeps them bounded then", "an option of this project", often + ", clamped"),
        ("Group scaling keeps them bounded then", "A.1, released code", often + ", released"),
    )
    found = [Finding(claim, source, cases[case][1], decided(cases[case][0])) for claim, source, case in claims]
    gammas = [max(data.largest("pn", placement, site, "gamma") for site in (0, -1)) for placement in DESIGN]
    told = "; ".join(f"{design}: {value:.3g}" for design, value in zip(DESIGN.values(), gammas))
    verdicts = [decided(value < UNSTABLE) if math.isfinite(value) else "open" for value in gammas]
    told = f"largest Gamma of PN's first and last norm in all steps of one run. {told}"
    return [
        *found,
        Finding(f"Training keeps Gamma below {UNSTABLE}", "assumption of Theorem 4", told, joined(verdicts)),
    ]


def identities(data):
    """Lemma 2, and a checkpoint of the released code."""
    double, single = (max(v for _, v in data.checked("lemma_2", "error", kind)) for kind in ("float64", "float32"))
    taken, cases = min(v for _, v in data.checked("lemma_2", "taken")), len(data.checked("lemma_2", "error"))
    lemma = (
        f"largest relative error of {cases} cases: {double:.1e} in f64, {single:.1e} in f32. "
        f"The second term takes away at least {taken:.1e} of the square of the gradient"
    )
    names = ("y", "dx", "dgamma", "dbeta", "psi2", "nu")
    worst, steps = (
        max(v for name in names for _, v in data.checked("checkpoint", name)),
        data.checked("checkpoint", "y"),
    )
    loaded = (
        f"largest relative error of {', '.join(names)} in {len(steps)} steps, in warmup and behind a load: {worst:.1e}"
    )
    return [
        Finding("The gradient of PN-V has the norm of the lemma, at most that without normalization times gamma / psi",
                "Lemma 2", lemma, decided(double < 1e-12 and single < 1e-4)),
        Finding("Buffers of a checkpoint of the released code run on as in its formulas", "released code", loaded,
                decided(worst < 1e-10)),
    ]  # fmt: skip


def costs(data):
    found = []
    for what in dict.fromkeys(row["what"] for row in data.cost):
        for claim, norm, others, limit in (
            ("PN costs no more than LN", "pn", ("ln", "bn", "pnv"), 1 + EQUAL),
            ("Released PN costs less than its formulas in PyTorch", "pn_released", ("pn_composed", "ln"), 1),
        ):
            parts = {other: data.ratio(what, norm, other) for other in others}
            told = "; ".join(
                f"to {TITLES[to]} {m:.2f} ({low:.2f} to {high:.2f})" for to, (m, low, high) in parts.items()
            )
            told = f"ratio of {TITLES[norm]}'s time {told}"
            found.append(Finding(f"{claim}: {what}", "cost", told, decided(parts[others[0]][0] <= limit)))
    return found


def all_findings(data, translated, mixed):
    """translated, mixed: the same of the runs that translate, with batches of equal and of all lengths."""
    of_mixed = MIXED, ("post",)
    orders = [*order(data, "Table 2"), *order(translated, "Table 1", TRANSLATION), *order(mixed, "Table 1", *of_mixed)]
    gaps = [*gap(data), *gap(translated, TRANSLATION), *gap(mixed, *of_mixed)]
    return [*orders, *variation(data), *beside_images(data), *batches(data), *gaps, *identities(data), *theorems(data), *costs(data)]
