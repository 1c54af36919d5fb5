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
from ._state import Norm, PowerNorm, PowerNormV, commit, norm
from ._replace import replace

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "Norm",
    "PowerNorm",
    "PowerNormV",
    "RMSNorm",
    "commit",
    "functional",
    "norm",
    "replace",
]
