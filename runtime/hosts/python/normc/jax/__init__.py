"""Normalization functions of normc for JAX.

    import normc.jax as nj
    y = nj.layer_norm(x, scale, bias)                              # in jit, grad, vmap, scan, shard_map
    y, state = nj.batch_norm(x, scale, bias, state, training=True)
    mine = nj.norm("my.norm", 1024)                                # a function of any text
"""

from ._call import ENTRIES as _ENTRIES
from ._functions import (
    batch_norm,
    group_norm,
    init_state,
    instance_norm,
    layer_norm,
    power_norm,
    power_norm_v,
    rms_norm,
)
from ._norm import Norm, next_state, norm

__all__ = [
    "Norm",
    "batch_norm",
    "export_checks",
    "group_norm",
    "init_state",
    "instance_norm",
    "layer_norm",
    "next_state",
    "norm",
    "power_norm",
    "power_norm_v",
    "rms_norm",
]


def export_checks():
    """Returns what `disabled_checks` of jax.export.export needs: JAX exports no custom call that is not named."""
    from jax.export import DisabledSafetyCheck

    return [DisabledSafetyCheck.custom_call(f"normc_{entry}") for entry in _ENTRIES]
