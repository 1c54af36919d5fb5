"""What the figures of a report are computed from: raw rows, intervals, differences of losses, and verdicts.

A difference is that of two norms with equal seeds, in bits a byte of text that no run has seen; its interval is that of
Student's t at 95 %, over the seeds. Verdicts: supported, contradicted, mixed (parts disagree), open (the interval holds
0, a ratio is between FAR and 1, the search does not decide the learning rate of a norm, or nothing was measured to decide
it).
"""

import math
import statistics

from rawdata import close_rates
from settings import TITLES

# of 1, 2, ... degrees of freedom; with more of them the last is a little too wide
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
FAR = 0.5  # "far less": at most half
EQUAL = 0.05  # times that differ by less count as equal
UNSTABLE = 20  # Gamma above which nu grows at alpha = 0.9: 2 / (1 - alpha)
DESIGN = {"pre": "pre-norm", "post": "post-norm"}


def interval(values):
    """Returns (mean, low, high) of at least two values; (mean, nan, nan) of one, nan of none or of a run that diverged."""
    if not values or not all(map(math.isfinite, values)):
        return (math.nan,) * 3
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, math.nan, math.nan
    half = STUDENT[min(len(STUDENT), len(values) - 1) - 1] * statistics.stdev(values) / math.sqrt(len(values))
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


def last_of_steps(points):
    """Returns [(step, value)] with the last value of each step: a run that was stopped before its row was written has its
    series twice."""
    return list(dict(points).items())


class Data:
    """Raw rows of a folder: runs, statistics, theory, cost; lists of dicts."""

    def __init__(self, runs, statistics, theory, cost):
        self.runs, self.statistics, self.theory, self.cost = runs, statistics, theory, cost

    def losses(self, norm, placement, column="test", experiment="main", tokens=None):
        """Returns {seed: value}. A run that diverged has nan."""
        return {
            row["seed"]: row[column]
            for row in self.runs
            if row["experiment"] == experiment
            and row["norm"] == norm
            and row["placement"] == placement
            and tokens in (None, row["tokens"])
        }

    def undecided(self, norm, placement, experiment="main", tokens=None):
        """True if the search does not decide the rate of these runs."""
        sizes = {
            row["tokens"] for row in self.runs if row["experiment"] == experiment and tokens in (None, row["tokens"])
        }
        return any((norm, placement, size) in close_rates(self.runs) for size in sizes)

    def difference(self, a, b, placement, **where):
        """Returns the interval of loss(a) - loss(b) over equal seeds: below 0 where a is better."""
        ours, theirs = self.losses(a, placement, **where), self.losses(b, placement, **where)
        return interval([ours[seed] - theirs[seed] for seed in ours if seed in theirs])

    def series(self, norm, placement, site, column):
        """site: 0 for the first norm of the model, -1 for its last. Returns [(step, value)]."""
        rows = [row for row in self.statistics if row["norm"] == norm and row["placement"] == placement]
        sites = list(dict.fromkeys(row["site"] for row in rows))
        return last_of_steps((row["step"], row[column]) for row in rows if row["site"] == sites[site]) if rows else []

    def mean(self, norm, placement, site, column):
        """Returns the mean over training, without its first tenth, in which running values find their place."""
        points = self.series(norm, placement, site, column)
        kept = [value for _, value in points[len(points) // 10 :]]
        return statistics.fmean(kept) if kept else math.nan

    def largest(self, norm, placement, site, column):
        """Returns the largest value of a step over training, without its first tenth, which `gamma` alone has too."""
        points = self.series(norm, placement, site, "max_" + column)
        return max((value for _, value in points[0 if column == "gamma" else len(points) // 10 :]), default=math.nan)

    def checked(self, check, quantity, case="", exact=False):
        """Returns [(step, value)] of what theory.py wrote; `case` is how the case begins, or all of it."""
        return [
            (row["step"], row["value"])
            for row in self.theory
            if (row["check"], row["quantity"]) == (check, quantity)
            and (row["case"] == case if exact else row["case"].startswith(case))
        ]

    def ratio(self, what, norm, to):
        """Returns (median, least, largest) of the ratios of time in equal rounds."""
        times = {
            name: {
                row["round"]: row["microseconds"] for row in self.cost if row["what"] == what and row["norm"] == name
            }
            for name in (norm, to)
        }
        ratios = [times[norm][at] / times[to][at] for at in times[norm] if at in times[to]]
        return statistics.median(ratios), min(ratios), max(ratios)


def is_below_zero(triple):
    """Returns the verdict of "this figure is below 0"."""
    _, low, high = triple
    if not math.isfinite(low) or low <= 0 <= high:
        return "open"
    return "supported" if high < 0 else "contradicted"


def ordered(data, better, worse, placement, **where):
    """Returns (evidence, verdict) of "`better` has the smaller loss"."""
    triple = data.difference(better, worse, placement, **where)
    diverged = [
        TITLES[norm]
        for norm in (better, worse)
        if not all(map(math.isfinite, data.losses(norm, placement, **where).values()))
    ]
    told = f"{DESIGN[placement]}: {shown(triple)}" + (f" ({', '.join(diverged)} diverged)" if diverged else "")
    undecided = [TITLES[norm] for norm in (better, worse) if data.undecided(norm, placement, **where)]
    if undecided:
        return f"{told} (rate of {', '.join(undecided)} undecided)", "open"
    return told, is_below_zero(triple)


def compared(data, kind, above, below):
    """Returns (evidence, verdict) of "this statistic varies far less than that one": ratios of the means over training,
    and of the largest steps. kind: how the columns begin; above, below: (norm, statistic)."""
    told, verdicts = [], []
    for placement in ("post", "pre"):
        for site, place in ((0, "first"), (-1, "last")):
            mean, peak = (
                of(above[0], placement, site, kind + above[1]) / of(below[0], placement, site, kind + below[1])
                for of in (data.mean, data.largest)
            )
            told.append(f"{DESIGN[placement]}, {place} norm {mean:.2f} (largest steps {peak:.2f})")
            verdict = "supported" if mean <= FAR else "contradicted" if mean >= 1 else "open"
            verdicts.append(verdict if math.isfinite(mean) else "open")
    return "; ".join(told), joined(verdicts)
