"""Replacing the norms of a model, and the sums in front of them."""

import collections
import dataclasses
import functools
import math
import os
import re

import torch

from .. import _library
from . import _modules, _ops, _residuals, _rms
from .functional import batch_text, rms_epsilon, row_text, segment_text

_TYPES = {
    getattr(torch.nn, name): getattr(_modules, name)
    for name in ("LayerNorm", "RMSNorm", "GroupNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d",
                 "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d")
}
_OURS = (*_TYPES.values(), _rms.OwnRMSNorm)


@dataclasses.dataclass
class Report:
    """What `replace` did, by names of modules: the norms that run on normc; the reason for each that it left; where
    the sum in front of a norm became a part of it; and why it did not, for the other norms that have such a form."""

    replaced: list
    left: dict
    fused: dict = dataclasses.field(default_factory=dict)
    apart: dict = dataclasses.field(default_factory=dict)

    def __str__(self):
        lines = ["1 norm runs on normc" if len(self.replaced) == 1 else f"{len(self.replaced)} norms run on normc"]
        lines += [f"  left {name or 'the model itself'}: {reason}" for name, reason in self.left.items()]
        for place, names in _grouped(self.fused).items():
            lines.append(f"  with the sum in front, in {place}: {', '.join(names)}")
        for reason, names in _grouped(self.apart).items():
            lines.append(f"  without a sum: {', '.join(names)}: {reason}")
        return "\n".join(lines)


def _grouped(reasons):
    groups = collections.defaultdict(list)
    for name, reason in reasons.items():
        groups[reason].append(name)
    return groups


def _is_own(module):
    """True for a class of a model that calls itself an RMS norm."""
    return re.search("rms_?norm", type(module).__name__, re.IGNORECASE) and not isinstance(module, (torch.nn.RMSNorm, *_OURS))


def _text_for(module, x):
    """Returns the text of a norm of torch.nn with data as x; its numbers matter to no kernel."""
    if isinstance(module, torch.nn.GroupNorm):
        return segment_text("group_norm_segment", module.num_channels, module.eps, module.num_groups)
    if isinstance(module, torch.nn.modules.instancenorm._InstanceNorm):
        return segment_text("instance_norm", module.num_features, module.eps)
    if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
        return batch_text(module.num_features, not isinstance(module, torch.nn.BatchNorm1d), 0.0, module.eps)
    name = "rms_norm" if isinstance(module, torch.nn.RMSNorm) else "layer_norm"
    return row_text(name, module.normalized_shape, rms_epsilon(x) if module.eps is None else module.eps)


_NO_KERNELS = {
    _library.INSTALL: "no package has its kernels; normc-compiler makes them",
    _library.OFF: f"no package has its kernels; {_library.OFF}",
}
_NO_CUDA_KERNELS = "no package has its kernels for CUDA, and none are made at the first use there"


def _refusal(text, types, device=None):
    """Returns why a text cannot run for types on a device; None if it can."""
    reason = _ops.refusal(text, types, device)
    if reason and device is not None and device.type == "cuda":
        return _NO_CUDA_KERNELS
    if reason is None:
        return None
    return next((short for each, short in _NO_KERNELS.items() if each in reason), reason.splitlines()[0])


def _without_kernels(module):
    """Returns why a norm of torch.nn has no kernels with data of the type of its parameters, where these are; None if
    it has. Packages have them for CPUs and any number of features, but for one number of groups alone, and not all
    have them for parameters of 16 bits. For CUDA they have fewer, and nothing is compiled at the first use."""
    like = torch.empty(0, dtype=getattr(module.weight, "dtype", None), device="cpu")
    types, device = _ops.types_of(like, module.weight), getattr(module.weight, "device", like.device)
    if device.type == "cuda" or types[1] != "" or isinstance(module, torch.nn.GroupNorm):
        return _refusal(_text_for(module, like), types, device)


def _broken_rule(sizes, eps, momentum=None):
    """Returns the rule for the numbers of a norm that these break; None if there is none."""
    if 0 in sizes:
        return "it has 0 features, and a norm of normc has at least 1"
    if eps is not None and not 0 < eps < math.inf:
        return f"its epsilon is {eps}, and normc takes one above 0"
    if momentum is not None and not 0 <= momentum <= 1:
        return f"its momentum is {momentum}, and normc takes one from 0 to 1"


def _class_of_own(module, named):
    """Returns the class that a norm of a model becomes, or the reason to leave it."""
    form = _rms.recognized(module)
    if form is None:
        return f"{named}, which is no RMS norm that normc has"
    weight = module.weight
    if weight.device.type != "cpu":
        return f"it is on device {weight.device}, and its kernels are for CPUs"
    rule = _broken_rule(weight.shape, getattr(module, form[2][0]))
    reason = rule or _refusal(_rms.text_of(module, form), _ops.types_of(weight, weight))
    if reason:
        return reason
    try:
        return _rms.class_of(type(module), form)
    except Exception as error:  # of code of the model: its __init_subclass__, or its metaclass
        return f"{type(module).__name__} takes no class below it: {error}"


def _class_for(module):
    """Returns the class that a norm becomes, or the reason to leave it."""
    if isinstance(module, _OURS):
        return "it runs on normc already"
    parameter = next(module.parameters(), None)
    if parameter is not None and parameter.device.type not in ("cpu", "cuda"):
        return f"it is on device {parameter.device}"
    if parameter is not None and parameter.dtype not in _ops._NAMES:
        return f"its parameters are {parameter.dtype}"
    if "forward" in vars(module):
        return "its forward was replaced, in this module alone"
    name = f"{type(module).__module__}.{type(module).__name__}"
    base = next((each for each in _TYPES if isinstance(module, each)), None)
    own = base is None or type(module).forward is not base.forward
    named = f"{name} has a forward of its own"
    if not own:
        named = f"{name} is a class below {base.__name__}, and {base.__name__} alone is replaced"
    if _is_own(module):
        return _class_of_own(module, named)
    if type(module) is torch.nn.SyncBatchNorm:
        return "its statistics are those of all ranks; normc.torch.synchronise replaces it"
    if type(module) not in _TYPES:
        return named
    is_batch = isinstance(module, torch.nn.modules.batchnorm._BatchNorm)
    if is_batch and module.momentum is None and module.track_running_stats:
        return "momentum=None, a plain mean of all steps, is torch's"
    state = ("num_batches_tracked", "running_mean", "running_var")
    if is_batch and module.track_running_stats and any(getattr(module, each) is None for each in state):
        return "a part of its running statistics is None"
    if isinstance(module, torch.nn.modules.instancenorm._InstanceNorm) and module.track_running_stats:
        return "running statistics of instances are torch's"
    sizes = [getattr(module, name, None) for name in ("num_features", "num_channels")]
    sizes += getattr(module, "normalized_shape", ())
    rule = _broken_rule(sizes, module.eps, module.momentum if is_batch else None)
    return rule or _without_kernels(module) or _TYPES[type(module)]


class _Rewritten:
    """What a module becomes whose forward has residual forms: a class made of this one and its own."""

    _normc_add_norm = staticmethod(_residuals.add_norm)

    def __reduce_ex__(self, protocol):
        return _rewritten, (type(self).__mro__[2], self._normc_norms), self.__getstate__()


@functools.lru_cache(maxsize=None)
def _class_with(own, norms):
    """Returns the class that a module becomes whose forward calls norms of these names, and the line of each sum."""
    forward, lines = _residuals.rewritten(own.forward, norms)
    names = {"_normc_norms": norms, "forward": forward, "__module__": own.__module__, "__doc__": own.__doc__,
             "__qualname__": own.__qualname__}
    try:
        return type(own.__name__, (_Rewritten, own), names), lines
    except Exception as error:  # of code of the model: its __init_subclass__, or its metaclass
        raise _residuals.Refused(f"{own.__name__} takes no class below it: {error}") from error


def _rewritten(own, norms):
    """Returns an object of this class, for pickle; of the own class where the source has changed meanwhile."""
    try:
        own = _class_with(own, norms)[0]
    except _residuals.Refused:
        pass
    return own.__new__(own)


def _reason_apart(norm):
    """Returns why a norm does not take a sum; None if it does."""
    weight, shape = norm.weight, getattr(norm, "normalized_shape", None)
    if weight is not None and weight.device.type != "cpu":
        return f"it is on device {weight.device}, and kernels with a residual are for CPUs"
    like = torch.empty(shape or weight.shape, dtype=getattr(weight, "dtype", None), device="cpu")
    text = norm._normc_residual_form(like)
    if text is None:
        return "it has no form with a residual"
    return _refusal(text, _ops.types_of(like, weight))


def _fuse(name, module, norms, report):
    """Rewrites the forward of a module for its children `norms`, by name, where it adds in front of them."""
    own, lines, refused, names = type(module), {}, None, frozenset(norms)
    if issubclass(own, _Rewritten):
        own, names = own.__mro__[2], own._normc_norms | names
    where = f"{own.__qualname__}.forward"
    if "forward" in vars(module):
        refused = f"{where} was replaced"
    else:
        try:
            made, lines = _class_with(own, names)
        except _residuals.Refused as reason:
            refused = f"{where} cannot be rewritten: {reason}"
    reasons = {each: _reason_apart(norm) if each in lines else refused or f"{where} adds nothing in front of it"
               for each, norm in norms.items()}
    if None in reasons.values():
        module.__class__ = made
    for each, reason in reasons.items():
        full = f"{name}.{each}" if name else each
        if reason is None:
            report.fused[full] = f"{where}, {os.path.basename(own.forward.__code__.co_filename)}:{lines[each]}"
        else:
            report.apart[full] = reason


def replace(model, norms=None, strict=False, residuals=True):
    """Makes the norms of a model run on normc, and returns a Report.

    A module stays the same object, with its parameters, buffers, hooks and names: only its class changes, so tied
    and wrapped modules keep working. `norms`: the type or types to replace, of torch.nn or of the model; None: all that
    normc has. RMS norms that a model defines itself are replaced if the graph of their forward is known
    (docs/hosts.md). Running statistics in 16 bits become f32.
    `strict`: raises if a norm is left. `residuals`: where the forward of a block adds in front of a norm, one kernel
    does both. Undo: `module.__class__ = torch.nn.LayerNorm`, or the class of the model.
    """
    report, seen, with_form = Report([], {}), set(), {}
    kinds = (norms,) if isinstance(norms, type) else tuple(norms or (*_TYPES, torch.nn.SyncBatchNorm))
    for name, module in list(model.named_modules()):
        if not (isinstance(module, kinds) or (norms is None and _is_own(module))) or id(module) in seen:
            continue
        seen.add(id(module))
        made = _class_for(module)
        if not isinstance(made, str):
            module.__class__ = made
            if isinstance(module, _modules.StateKept):
                module._normc_widen()
            report.replaced.append(name)
            if residuals and hasattr(made, "_normc_residual_form"):
                with_form[id(module)] = module
        elif "already" not in made:
            report.left[name] = made
    for name, module in list(model.named_modules()) if with_form else ():
        children = {each: child for each, child in module.named_children() if id(child) in with_form}
        if children:
            _fuse(name, module, children, report)
    if strict and report.left:
        raise RuntimeError(str(report))
    return report
