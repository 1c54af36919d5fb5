"""Functions with the signatures of torch.nn.functional, and one for any text."""

import functools
import math

import torch

from .._library import group_count, text
from . import _around
from ._autograd import normalize

__all__ = ["group_norm", "instance_norm", "layer_norm", "norm", "rms_norm"]


def _kept(function):
    """Returns a function that keeps its results, but not those of a trace of torch.compile, whose graphs would then be
    compiled again for what is kept."""
    kept = functools.lru_cache(maxsize=None)(function)

    @functools.wraps(function)
    def called(*arguments):
        return function(*arguments) if torch.compiler.is_compiling() else kept(*arguments)

    return called


@_kept
def row_text(norm, shape, eps, round=None):
    """Returns the text of a norm of [..., *shape], a tuple."""
    return text(norm, f"*x{math.prod(shape)}", numbers={"epsilon": eps}, round=round)


@_kept
def segment_text(norm, features, eps, groups=None):
    """Returns the text of a norm of [batch, features, positions...]."""
    return text(norm, f"*x{features}x*", options=groups and {"groups": groups}, numbers={"epsilon": eps})


@_kept
def batch_text(features, is_segmented, decay, eps):
    """Returns the text of batch normalization of [batch, features], or [batch, features, positions...] if segmented."""
    shape = f"*x{features}x*" if is_segmented else f"*x{features}"
    return text("batch_norm_unbiased", shape, numbers={"decay": decay, "epsilon": eps})


def _check_shape(input, normalized_shape):
    if input.shape[-len(normalized_shape) :] != normalized_shape:
        raise RuntimeError(
            f"given normalized_shape={list(normalized_shape)}, expected input with shape "
            f"[*, {', '.join(map(str, normalized_shape))}], but got input of size {list(input.shape)}"
        )


def _check_parameters(shape, *named):
    """Raises if a weight or bias, ("weight", tensor), has another shape: operators see a vector in either."""
    for name, parameter in named:
        if parameter is not None and parameter.shape != shape:
            raise RuntimeError(f"{name} has the shape {list(parameter.shape)}; this norm takes {list(shape)}")


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, *, round=None):
    """As torch.nn.functional.layer_norm. round="normalized": as of rms_norm."""
    shape = tuple(normalized_shape)
    _check_shape(input, shape)
    _check_parameters(shape, ("weight", weight), ("bias", bias))
    return normalize(row_text("layer_norm", shape, eps, round), input, weight, bias)


def rms_epsilon(input):
    """Returns the epsilon of torch's RMS norm with eps=None: the smallest relative difference of the type in which torch
    computes, f32 for data of 16 bits."""
    return torch.finfo(torch.promote_types(input.dtype, torch.float32)).eps


def rms_norm(input, normalized_shape, weight=None, eps=None, *, round=None):
    """As torch.nn.functional.rms_norm: `eps` None is `rms_epsilon`.
    round="normalized": what is multiplied by the weight is rounded to the input's type, as Llama's code does."""
    shape = tuple(normalized_shape)
    _check_shape(input, shape)
    _check_parameters(shape, ("weight", weight))
    eps = rms_epsilon(input) if eps is None else eps
    return normalize(row_text("rms_norm", shape, eps, round), input, weight)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """As torch.nn.functional.group_norm: input [batch, channels, ...]."""
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    channels, num_groups = input.shape[1], group_count(num_groups)
    if num_groups < 1 or channels % num_groups:
        raise RuntimeError(f"{channels} channels are not divisible by {num_groups} groups")
    _check_parameters((channels,), ("weight", weight), ("bias", bias))
    if input.dim() == 2:
        return normalize(segment_text("group_norm_segment", channels, eps, num_groups), input[..., None], weight, bias)[..., 0]
    return normalize(segment_text("group_norm_segment", channels, eps, num_groups), input, weight, bias)


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True,
                  momentum=0.1, eps=1e-5):
    """As torch.nn.functional.instance_norm without running statistics: input [batch, channels, positions...]."""
    if not use_input_stats:
        raise NotImplementedError(
            "use_input_stats is False, which normalizes with running statistics; use a BatchNorm of normc.torch in "
            "evaluation, which is that function, or torch.nn.functional.instance_norm"
        )
    if running_mean is not None or running_var is not None:
        raise NotImplementedError(
            "running_mean and running_var are given, and normc keeps no running statistics of instances; leave them "
            "out, or use torch.nn.functional.instance_norm"
        )
    if math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    channels = input.shape[1]
    _check_parameters((channels,), ("weight", weight), ("bias", bias))
    return normalize(segment_text("instance_norm", channels, eps), input, weight, bias)


def norm(text, input, weight=None, bias=None, mask=None, **around):
    """The norm of a text that has no state, "rms_norm_residual[*x768] epsilon=1e-06": `around` are the tensors that it
    has beside the input (docs/around-a-norm.md). Returns y, or (y, residual_out) with a stream of residuals."""
    return _around.apply(text, input, weight, bias, mask, around)[0]
