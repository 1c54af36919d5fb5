"""What the raw data say on each claim of the paper: evidence and a verdict, by rules that stand here.

A difference is that of two norms with equal seeds, in bits a byte of text that no run has seen; its interval is that of
Student's t at 95 %, over the seeds. Verdicts: supported, contradicted, mixed (parts disagree), open (the interval holds 0
or nothing was measured to decide it).
"""

import math
import statistics

from settings import TITLES

STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}  # of degrees of freedom
FAR = 0.5     # "far less": at most half
UNSTABLE = 20  # Gamma above which nu grows at alpha = 0.9: 2 / (1 - alpha)
DESIGN = {"pre": "pre-norm", "post": "post-norm"}


def interval(values):
    """Returns (mean, low, high) of at least two values; (mean, nan, nan) of one, nan of none or of a run that diverged."""
    if not values or not all(map(math.isfinite, values)):
        return (math.nan,) * 3
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, math.nan, math.nan
    half = STUDENT[min(9, len(values) - 1)] * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def shown(triple, digits=4):
    mean, low, high = triple
    if not math.isfinite(mean):
        return "a run diverged, or there is none"
    if not math.isfinite(low):
        return f"{mean:.{digits}f}"
    return f"{mean:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def joined(verdicts):
    """Returns the verdict of a claim whose parts have these."""
    kinds = set(verdicts)
    return kinds.pop() if len(kinds) == 1 else "mixed"


class Data:
    """Raw rows of a folder: runs, statistics, theory, cost; lists of dicts."""

    def __init__(self, runs, statistics, theory, cost):
        self.runs, self.statistics, self.theory, self.cost = runs, statistics, theory, cost

    def losses(self, norm, placement, column="test", experiment="main", tokens=None):
        """Returns {seed: value}. A run that diverged has nan."""
        return {row["seed"]: row[column] for row in self.runs if row["experiment"] == experiment and row["norm"] == norm
                and row["placement"] == placement and tokens in (None, row["tokens"])}

    def difference(self, a, b, placement, **where):
        """Returns the interval of loss(a) - loss(b) over equal seeds: below 0 where a is better."""
        ours, theirs = self.losses(a, placement, **where), self.losses(b, placement, **where)
        return interval([ours[seed] - theirs[seed] for seed in ours if seed in theirs])

    def series(self, norm, placement, site, column):
        """site: 0 for the first norm of the model, -1 for its last. Returns [(step, value)]."""
        rows = [row for row in self.statistics if row["norm"] == norm and row["placement"] == placement]
        sites = list(dict.fromkeys(row["site"] for row in rows))
        return [(row["step"], row[column]) for row in rows if row["site"] == sites[site]] if rows else []

    def mean(self, norm, placement, site, column):
        """Returns the mean over training, without its first tenth, in which running values find their place."""
        points = self.series(norm, placement, site, column)
        kept = [value for _, value in points[len(points) // 10:]]
        return statistics.fmean(kept) if kept else math.nan

    def largest(self, norm, placement, site, column):
        """Returns the largest value of a step over training, without its first tenth, which `gamma` alone has too."""
        points = self.series(norm, placement, site, "max_" + column)
        return max((value for _, value in points[0 if column == "gamma" else len(points) // 10:]), default=math.nan)

    def checked(self, check, quantity, case=""):
        """Returns [(step, value)] of what theory.py wrote; `case` is how the case begins."""
        return [(row["step"], row["value"]) for row in self.theory if row["check"] == check and row["quantity"] == quantity
                and row["case"].startswith(case)]

    def ratio(self, what, norm, to):
        """Returns (median, least, largest) of the ratios of time in equal rounds."""
        times = {name: {row["round"]: row["microseconds"] for row in self.cost if row["what"] == what and row["norm"] == name}
                 for name in (norm, to)}
        ratios = [times[norm][at] / times[to][at] for at in times[norm] if at in times[to]]
        return statistics.median(ratios), min(ratios), max(ratios)


def ordered(data, better, worse, placement, column="test", **where):
    """Returns (evidence, verdict) of "`better` has the smaller loss"."""
    triple = data.difference(better, worse, placement, column=column, **where)
    verdict = "open" if not math.isfinite(triple[1]) or triple[1] <= 0 <= triple[2] else \
        "supported" if triple[2] < 0 else "contradicted"
    diverged = [TITLES[n] for n in (better, worse) if any(not math.isfinite(v) for v in data.losses(n, placement, column, **where).values())]
    told = f"{DESIGN[placement]}: {shown(triple)}" + (f" ({', '.join(diverged)} diverged)" if diverged else "")
    return told, verdict


def compared(data, column, small, large, absolute):
    """Returns (evidence, verdict) of "this statistic of one norm varies far less than that of another": mean over training,
    and largest step. small, large: (norm, statistic)."""
    told, verdicts = [], []
    for placement in DESIGN:
        for site, place in ((0, "first"), (-1, "last")):
            mean, peak = (of(small[0], placement, site, column + small[1]) / of(large[0], placement, site, column + large[1])
                          for of in (data.mean, data.largest))
            told.append(f"{DESIGN[placement]}, {place} norm: {mean:.2f} (largest step {peak:.2f})")
            verdicts.append("open" if not math.isfinite(mean) else "supported" if mean <= FAR else "contradicted" if mean >= 1 else "mixed")
    return f"{absolute}: " + "; ".join(told), joined(verdicts)


def order(data):
    rows = []
    for better, worse in (("pn", "ln"), ("ln", "pnv"), ("pnv", "bn"), ("pn", "bn"), ("pn_released", "ln"), ("pn_released", "pn")):
        parts = [ordered(data, better, worse, placement) for placement in ("post", "pre")]
        rows.append((f"{TITLES[better]} is better than {TITLES[worse]}", "Tables 1, 2" if "pn_released" not in (better, worse) else
                     "A.1, released code", "loss of the first minus that of the second. " + "; ".join(p[0] for p in parts), joined(p[1] for p in parts)))
    return rows


def variation(data):
    rows = []
    for name, source, column, small, large, told in (
        ("The quadratic mean of PN-V varies far less than the variance of BN", "Fig. 4, left", "distance_", ("pnv", "psi2"), ("bn", "var"),
         "mean distance to the running value, psi2 of the model with PN-V over var of that with BN"),
        ("The same, relative to the size of each", "as Fig. 4", "relative_", ("pnv", "psi2"), ("bn", "var"),
         "mean relative distance, psi2 of PN-V over var of BN"),
        ("In one model (BN) the quadratic mean varies far less than the variance", "section 4.1", "relative_", ("bn", "psi2"), ("bn", "var"),
         "mean relative distance, psi2 over var, both at the norms of BN"),
        ("In one model (BN) the quadratic mean varies far less than the mean", "section 4.1", "relative_", ("bn", "psi2"), ("bn", "mu"),
         "mean relative distance, psi2 over mu, both at the norms of BN"),
        ("g_psi2 of PN-V is far smaller than g_sigma2 of BN", "Fig. 4, right", "", ("pnv", "g_psi"), ("bn", "g_var"),
         "mean |g_psi| of PN-V over |g_var| of BN"),
        ("g_psi2 of PN-V is far smaller than g_mu of BN", "Fig. 4, right", "", ("pnv", "g_psi"), ("bn", "g_mu"),
         "mean |g_psi| of PN-V over |g_mu| of BN"),
    ):
        rows.append((name, source, *compared(data, column, small, large, told)))
    for name, source, columns in (("BN's batch statistics vary more in a transformer than in a network for images", "Fig. 2", ("relative_mu", "relative_var")),
                                  ("BN's gradient statistics are larger in a transformer than in a network for images", "Fig. 3", ("g_mu", "g_var"))):
        told = "; ".join(f"{DESIGN[p]}, first norm: {c} mean {data.mean('bn', p, 0, c):.3g}, largest step {data.largest('bn', p, 0, c):.3g}"
                         for p in ("post", "pre") for c in columns)
        rows.append((name, source, told + ". No network for images is trained here", "open"))
    return rows


def gap(data):
    """BN's gap between the statistics of training and of inference, and PN's."""
    rows = []
    gaps = {}
    for norm in ("bn", "pnv", "pn"):
        for placement in DESIGN:
            running, of_batch = data.losses(norm, placement), data.losses(norm, placement, "test_of_batch")
            gaps[norm, placement] = interval([running[s] - of_batch[s] for s in running])
    told = "; ".join(f"{DESIGN[p]}, {TITLES[n]}: {shown(gaps[n, p])}" for p in ("post", "pre") for n in ("bn", "pnv", "pn"))
    verdicts = ["open" if not math.isfinite(gaps["bn", p][1]) or gaps["bn", p][1] <= 0 <= gaps["bn", p][2]
                else "supported" if gaps["bn", p][1] > 0 else "contradicted" for p in DESIGN]
    rows.append(("BN is worse with running statistics than with those of the batch", "section 3", "loss with running statistics minus that with "
                 "those of a batch as large as in training. " + told + ". Statistics of a batch see later bytes of the same text", joined(verdicts)))
    return rows


def batches(data):
    """Fig. 5: what a smaller batch costs each norm, at equal bytes."""
    sizes = sorted({row["tokens"] for row in data.runs if row["experiment"] == "batch"})
    rows = []
    for tokens in sizes:
        for better, worse in (("pn", "bn"), ("pn", "pnv"), ("pn", "ln")):
            told, verdict = ordered(data, better, worse, "post", experiment="batch", tokens=tokens)
            rows.append((f"With {tokens} bytes a step {TITLES[better]} is better than {TITLES[worse]}", "Fig. 5", told, verdict))
    return rows


def proofs(data):
    wide, single = (max(v for _, v in data.checked("lemma_2", "error", kind)) for kind in ("float64", "float32"))
    rows = [("The gradient of PN-V has the norm that the lemma says", "Lemma 2", f"largest relative error of "
             f"{len(data.checked('lemma_2', 'error', 'float64'))} cases: {wide:.1e} in f64, {single:.1e} in f32. The second term takes away at least "
             f"{min(v for _, v in data.checked('lemma_2', 'taken')):.1e} of the gradient's square, never less than 0",
             "supported" if wide < 1e-12 and single < 1e-4 and min(v for _, v in data.checked("lemma_2", "taken")) >= 0 else "contradicted")]
    cases = {}
    for case in dict.fromkeys(row["case"] for row in data.theory if row["check"] == "bounded"):
        nu = [v for row in data.theory if row["check"] == "bounded" and row["case"] == case and row["quantity"] == "nu" for v in [row["value"]]]
        dx = [row["value"] for row in data.theory if row["check"] == "bounded" and row["case"] == case and row["quantity"] == "dx"]
        gamma = max(row["value"] for row in data.theory if row["check"] == "bounded" and row["case"] == case and row["quantity"] == "gamma")
        last = max(row["step"] for row in data.theory if row["check"] == "bounded" and row["case"] == case)
        half = len(nu) // 2
        bounded = max(nu[half:]) <= 2 * max(nu[:half]) and max(dx[half:]) <= 2 * max(dx[:half]) and math.isfinite(max(dx))
        cases[case] = bounded, f"{case}: largest Gamma {gamma:.4g}, |nu| {max(nu):.3g}, |dx| {max(dx):.3g} in {last} steps"
    quiet, often = cases["quiet"], cases["outliers each 40"]
    rows.append(("PN's gradients stay bounded where Gamma stays below 2 / (1 - alpha)", "Theorems 3, 4", quiet[1], "supported" if quiet[0] else "contradicted"))
    rows.append(("They stay bounded for any input", "Theorems 3, 4 without their assumption", "; ".join(cases[c][1] for c in ("outliers each 200", "outliers each 40")),
                 "supported" if often[0] else "contradicted"))
    for case, name, source in (("outliers each 40, clamped", "clamp_gamma bounds nu", "an option of this project"),
                               ("outliers each 40, released", "Group scaling bounds nu, since outliers of whole tokens vanish", "A.1, released code")):
        rows.append((name, source, cases[case][1], "supported" if cases[case][0] else "contradicted"))
    gammas = {p: max(data.largest("pn", p, site, "gamma") for site in (0, -1)) for p in DESIGN}
    rows.append((f"Training keeps Gamma below {UNSTABLE}", "the assumption of Theorem 4", "; ".join(
        f"{DESIGN[p]}: largest Gamma of PN's first and last norm, in all steps of one run: {v:.3g}" for p, v in gammas.items()),
        joined("open" if not math.isfinite(v) else "supported" if v < UNSTABLE else "contradicted" for v in gammas.values())))
    worst = max(v for name in ("y", "dx", "dgamma", "dbeta", "psi2", "nu") for _, v in data.checked("checkpoint", name))
    rows.append(("Buffers of a checkpoint of the released code run on as in that code", "released code", "largest relative error of y, dx, dgamma, dbeta, psi2, nu in "
                 f"{len(data.checked('checkpoint', 'y'))} steps, during the warmup and behind a load: {worst:.1e}", "supported" if worst < 1e-10 else "contradicted"))
    return rows


def costs(data):
    rows = []
    for what in dict.fromkeys(row["what"] for row in data.cost):
        parts = {to: data.ratio(what, "pn", to) for to in ("ln", "bn", "pn_composed")}
        told = "; ".join(f"to {TITLES[to]} {m:.2f} ({low:.2f} to {high:.2f})" for to, (m, low, high) in parts.items())
        rows.append((f"PN costs no more than LN: {what}", "cost", "ratio of PN's time " + told, "supported" if parts["ln"][0] <= 1.05 else "contradicted"))
    return rows


def all_findings(data):
    """Returns [(claim, source, evidence, verdict)]."""
    return [*order(data), *variation(data), *batches(data), *gap(data), *proofs(data), *costs(data)]
