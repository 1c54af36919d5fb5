"""The plots of a report, from raw data."""

import svg
from evidence import DESIGN, last_of_steps
from settings import TITLES


def plots(data, curves, folder, batches):
    """Writes the plots. Returns lines of the report that show them."""
    made = []

    def write(name, text, caption):
        (folder / name).write_text(text)
        made.extend([f"![{caption}]({name})", "", caption, ""])

    for placement in ("post", "pre"):
        design = DESIGN[placement]
        norms = list(dict.fromkeys(row["norm"] for row in curves if row["placement"] == placement))
        series = {
            TITLES[n]: last_of_steps(
                (row["step"], row["valid"]) for row in curves if (row["norm"], row["placement"]) == (n, placement)
            )
            for n in norms
        }
        write(
            f"loss-{placement}.svg",
            svg.lines(f"Loss on valid, {design}, seed 0", "step", "bits a byte", series),
            f"Loss over training, {design} (curves.csv)",
        )
        for kind, title in (
            ("distance", "Distance of batch to running statistics / features"),
            ("relative", "Relative distance of batch to running statistics"),
        ):
            series = {
                f"{name} of {TITLES[n]}": data.series(n, placement, 0, f"max_{kind}_{name}")
                for n, name in (("bn", "mu"), ("bn", "var"), ("pnv", "psi2"), ("pn", "psi2"))
            }
            write(
                f"{kind}-{placement}.svg",
                svg.lines(f"{title}, {design}", "step", "largest of each interval", series, log=True),
                f"Fig. 2 and 4, left: {kind} at the first norm, {design} (statistics.csv, max_{kind}_*)",
            )
        series = {
            f"{name} of {TITLES[n]}": data.series(n, placement, 0, name)
            for n, name in (("bn", "g_mu"), ("bn", "g_var"), ("pnv", "g_psi"), ("pn", "g_psi"))
        }
        write(
            f"gradients-{placement}.svg",
            svg.lines(f"Gradient statistics / features, {design}", "step", "mean of each interval", series, log=True),
            f"Fig. 3 and 4, right: gradient statistics at the first norm, {design} (statistics.csv, g_*)",
        )
    for name, columns, title, caption in (
        ("relative", ("relative_mu", "relative_var"), "Relative distance of batch to running statistics", "Fig. 2"),
        ("gradients", ("g_mu", "g_var"), "Gradient statistics / features", "Fig. 3"),
    ):
        series = {
            f"{column.removeprefix('relative_')}, {model}": data.series("bn", placement, 0, column)
            for placement, model in (("images", "images"), ("post", "post-norm"))
            for column in columns
        }
        write(
            f"{name}-images.svg",
            svg.lines(f"{title}, BN", "step", "mean of each interval", series, log=True),
            f"{caption}: BN's first norm in a network for images and in a transformer (statistics.csv)",
        )
    sizes, series = batches
    write(
        "batches.svg",
        svg.intervals("Bytes a step, post-norm", "test, bits a byte", [f"{size} bytes" for size in sizes], series),
        "Fig. 5: loss over the batch at equal bytes, with intervals of 95 % (runs.csv)",
    )
    cases = list(dict.fromkeys(row["case"] for row in data.theory if row["check"] == "bounded"))
    for quantity in ("nu", "dx"):
        series = {
            case: [
                (row["step"], row["value"])
                for row in data.theory
                if (row["check"], row["case"], row["quantity"]) == ("bounded", case, quantity)
            ]
            for case in cases
        }
        write(
            f"bounded-{quantity}.svg",
            svg.lines(f"Largest |{quantity}| of PN on hostile data", "step", f"|{quantity}|", series, log=True),
            f"Theorems 3 and 4: |{quantity}| over steps (theory.csv, bounded)",
        )
    return made
