"""Replacing the norms of a model."""

import dataclasses

import torch

from . import _modules

_TYPES = {
    getattr(torch.nn, name): getattr(_modules, name)
    for name in ("LayerNorm", "RMSNorm", "GroupNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d",
                 "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d")
}


@dataclasses.dataclass
class Report:
    """What `replace` did: names of modules, and the reason for each norm that it left."""

    replaced: list
    left: dict

    def __str__(self):
        lines = [f"{len(self.replaced)} norms run on normc"]
        lines += [f"  left {name}: {reason}" for name, reason in self.left.items()]
        return "\n".join(lines)


def _reason_to_leave(module):
    if isinstance(module, tuple(_TYPES.values())):
        return "it runs on normc already"
    if type(module) not in _TYPES:
        return f"{type(module).__module__}.{type(module).__name__} has a forward of its own"
    if isinstance(module, torch.nn.modules.batchnorm._BatchNorm) and module.momentum is None:
        return "momentum=None, a plain mean of all steps, is torch's"
    if isinstance(module, torch.nn.modules.instancenorm._InstanceNorm) and module.track_running_stats:
        return "running statistics of instances are torch's"
    parameter = next(module.parameters(), None)
    if parameter is not None and parameter.device.type not in ("cpu", "cuda"):
        return f"it is on device {parameter.device}"
    return None


def replace(model, norms=None, strict=False):
    """Makes the norms of a model run on normc, and returns a Report.

    A module stays the same object, with its parameters, buffers, hooks and names: only its class changes, so tied
    and wrapped modules keep working. `norms`: the types of torch.nn to replace; None: all that normc has.
    `strict`: raises if a norm is left. Undo: `module.__class__ = torch.nn.LayerNorm`.
    """
    wanted = tuple(_TYPES) if norms is None else tuple(norms)
    report, seen = Report([], {}), set()
    for name, module in model.named_modules():
        if not isinstance(module, wanted) or id(module) in seen:
            continue
        seen.add(id(module))
        reason = _reason_to_leave(module)
        if reason is None:
            module.__class__ = _TYPES[type(module)]
            report.replaced.append(name)
        elif "already" not in reason:
            report.left[name] = reason
    if strict and report.left:
        raise RuntimeError(str(report))
    return report
