"""Normalization layers of normc for PyTorch.

    import normc.torch as nt
    norm = nt.LayerNorm(1024)              # as torch.nn.LayerNorm
    report = nt.replace(model)             # every norm of a model that normc has
    mine = nt.norm("my.norm", 1024)        # a layer from any text
"""

from . import functional
from ._modules import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
    RMSNorm,
)
from ._ranks import Exchange, SyncBatchNorm, commit, synchronise
from ._replace import replace
from ._state import Norm, PowerNorm, PowerNormV, norm

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Exchange",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "Norm",
    "PowerNorm",
    "PowerNormV",
    "RMSNorm",
    "SyncBatchNorm",
    "commit",
    "functional",
    "norm",
    "replace",
    "synchronise",
]
