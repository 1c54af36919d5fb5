"""Loads a checkpoint of the released PowerNorm code (MaskPowerNorm) into a layer of normc.py.

    layer = package.norm("power_norm", features=1024)
    checkpoint.load(layer, **{key: weights["norm1." + key] for key in ("running_phi", "ema_gz", "iters")})

The fields of a state are arrays with names, so a host can fill them from any checkpoint.
"""

import numpy as np


def load(layer, running_phi, ema_gz, iters, backward_decay=0.9):
    """Fills psi2, nu and step. `backward_decay`: alpha_bkw of the run. A ValueError leaves the state as it is."""
    if set(layer.state) != {"step", "psi2", "nu"}:
        held = ", ".join(layer.state) or "nothing"
        raise ValueError(f"a checkpoint of PowerNorm holds step, psi2 and nu; the state holds {held}")
    vectors = {"running_phi": np.asarray(running_phi).reshape(-1), "ema_gz": np.asarray(ema_gz).reshape(-1)}
    for name, values in vectors.items():
        if values.size != layer.features:
            raise ValueError(f"the checkpoint's {name} has {values.size} features; the state has {layer.features}")
    steps = int(np.asarray(iters).reshape(()))
    if steps < 0:
        raise ValueError(f"the checkpoint's iters is {steps}; it counts steps")
    if not 0 <= backward_decay < 1:
        raise ValueError(
            f"the checkpoint's backward_decay is {backward_decay}; "
            "it must be at least 0 and less than 1 (0.9 in the released scripts)"
        )
    odd = np.flatnonzero(~(np.isfinite(vectors["running_phi"]) & (vectors["running_phi"] >= 0)))
    if odd.size:
        value = vectors["running_phi"][odd[0]]
        raise ValueError(
            f"the checkpoint's running_phi is {value:g} at feature {odd[0]}; a mean of squares is finite and not negative"
        )
    layer.state["psi2"][:] = vectors["running_phi"]
    layer.state["nu"][:] = (1 - backward_decay) * vectors["ema_gz"].astype(np.float64)
    layer.state["step"][...] = steps
