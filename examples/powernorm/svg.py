"""Line charts and charts of points with intervals, as SVG text."""

import html
import math

COLORS = ("#1f6fb4", "#d9541e", "#2e8b57", "#8a4fb0", "#8c6d1f", "#c2478c", "#555555", "#20a0a8")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 690, 360, 70, 200, 34, 46


def _ticks(low, high, log):
    """Returns the values that an axis names, of a log axis their logarithms: powers of ten, and 2 and 5 times
    these if there are few."""
    if log:
        powers = range(math.floor(low), math.ceil(high) + 1)
        step = max(1, math.ceil(len(powers) / 7))
        factors = (1, 2, 5) if high - low < 2 else (1,)
        made = [power + math.log10(factor) for power in powers if power % step == 0 for factor in factors]
        return [tick for tick in made if low - 1e-9 <= tick <= high + 1e-9] or [low, high]
    step = 10 ** math.floor(math.log10((high - low) / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= 6)
    return [step * at for at in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _power(exponent):
    """Returns ten to the exponent as text: `1e3`, `2e-1`."""
    whole = math.floor(exponent + 1e-9)
    return f"{10 ** (exponent - whole):.3g}e{whole}"


class Axis:
    """Maps values to pixels. log: powers of ten."""

    def __init__(self, values, start, end, log=False, margin=0.05):
        self.log, self.start, self.end = log, start, end
        values = [math.log10(v) if log else v for v in values if math.isfinite(v) and (v > 0 or not log)] or [0, 1]
        spread = max(values) - min(values)
        if not spread:
            spread, margin = abs(values[0]) or 1, 0.5
        self.low, self.high = min(values) - margin * spread, max(values) + margin * spread

    def at(self, value):
        return self.start + ((math.log10(value) if self.log else value) - self.low) / (self.high - self.low) * (
            self.end - self.start
        )

    def ticks(self):
        """Returns pairs of a pixel and its text."""
        made = _ticks(self.low, self.high, self.log)
        return [(self.at(10**t), _power(t)) if self.log else (self.at(t), f"{t:.6g}") for t in made]


def _text(x, y, content, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{html.escape(content)}</text>'


def _frame(title, x_title, y_title, y_axis, x_ticks, names):
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        _text((LEFT + right) / 2, 18, title, more='font-size="13" font-weight="bold"'),
        f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="#333"/>',
        _text((LEFT + right) / 2, HEIGHT - 10, x_title),
        _text(16, (TOP + bottom) / 2, y_title, more=f'transform="rotate(-90 16 {(TOP + bottom) / 2})"'),
    ]
    for y, label in y_axis.ticks():
        parts += [f'<path d="M{LEFT} {y:.1f}H{right}" stroke="#e4e4e4"/>', _text(LEFT - 6, y + 4, label, "end")]
    parts += [_text(x, bottom + 16, label) for x, label in x_ticks]
    for at, name in enumerate(names):
        y = TOP + 12 + 17 * at
        parts += [
            f'<rect x="{right + 12}" y="{y - 8}" width="14" height="4" fill="{COLORS[at % len(COLORS)]}"/>',
            _text(right + 31, y - 2, name, "start"),
        ]
    return parts


def lines(title, x_title, y_title, series, log=False):
    """series: {name: [(x, y)]}. Returns the SVG. Values that are not finite, or not above 0 on a log axis, are left out."""
    y_axis = Axis([y for points in series.values() for _, y in points], HEIGHT - BOTTOM, TOP, log)
    x_axis = Axis([x for points in series.values() for x, _ in points], LEFT, WIDTH - RIGHT, margin=0.0)
    parts = _frame(title, x_title, y_title, y_axis, x_axis.ticks(), series)
    for at, points in enumerate(series.values()):
        kept = [(x_axis.at(x), y_axis.at(y)) for x, y in points if math.isfinite(y) and (y > 0 or not log)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in kept)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{COLORS[at % len(COLORS)]}" stroke-width="1.5"/>')
    return "\n".join([*parts, "</svg>", ""])


def intervals(title, y_title, labels, series, log=False):
    """series: {name: [(middle, low, high) for each label]}, None where there is none. Returns the SVG."""
    values = [v for points in series.values() for point in points if point for v in point]
    y_axis = Axis(values, HEIGHT - BOTTOM, TOP, log)
    place = (WIDTH - RIGHT - LEFT) / len(labels)
    x_ticks = [(LEFT + place * (at + 0.5), label) for at, label in enumerate(labels)]
    parts = _frame(title, "", y_title, y_axis, x_ticks, series)
    for at, points in enumerate(series.values()):
        color = COLORS[at % len(COLORS)]
        for (x, _), point in zip(x_ticks, points):
            if point is None or not all(map(math.isfinite, point)):
                continue
            x += (at - (len(series) - 1) / 2) * min(12, 0.8 * place / len(series))
            middle, low, high = map(y_axis.at, point)
            parts += [
                f'<path d="M{x:.1f} {low:.1f}V{high:.1f}" stroke="{color}"/>',
                f'<circle cx="{x:.1f}" cy="{middle:.1f}" r="3.5" fill="{color}"/>',
            ]
    return "\n".join([*parts, "</svg>", ""])
