"""The residual network for small images of He et al. (CVPR 2016, section 4.2), with BN of normc behind each convolution.

Three stages of `units` units of two convolutions, of `width`, twice and four times as many channels; with 16 and 3 it is
ResNet-20. The second and third stage begin with a stride of 2, and shortcuts are identities, padded with zeros.
"""

import normc.torch as nt
from torch import nn


def convolution(channels, out, stride=1):
    return nn.Conv2d(channels, out, 3, stride, padding=1, bias=False)


class Unit(nn.Module):
    """x [batch, channels, height, width] to [batch, out, height / stride, width / stride]."""

    def __init__(self, channels, out, stride):
        super().__init__()
        self.first, self.second = convolution(channels, out, stride), convolution(out, out)
        self.norms = nn.ModuleList(nt.BatchNorm2d(out) for _ in range(2))
        self.stride, self.added = stride, out - channels

    def forward(self, x):
        y = self.norms[0](self.first(x)).relu()
        y = self.norms[1](self.second(y))
        shortcut = nn.functional.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.added))
        return (y + shortcut).relu()


class ResNet(nn.Module):
    """Images [batch, 1, height, width] to logits [batch, kinds]."""

    def __init__(self, width, units, kinds):
        super().__init__()
        self.stem, self.norm = convolution(1, width), nt.BatchNorm2d(width)
        channels, stages = width, []
        for stage in range(3):
            for unit in range(units):
                out = width << stage
                stages.append(Unit(channels, out, 2 if stage and not unit else 1))
                channels = out
        self.units = nn.ModuleList(stages)
        self.logits = nn.Linear(channels, kinds)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")

    def forward(self, images):
        x = self.norm(self.stem(images)).relu()
        for unit in self.units:
            x = unit(x)
        return self.logits(x.mean((2, 3)))

    def sites(self):
        """Returns {name: norm} in the order of the forward."""
        found = {f"{at}.{name}": norm for at, unit in enumerate(self.units) for name, norm in enumerate(unit.norms)}
        return {"stem": self.norm, **found}
