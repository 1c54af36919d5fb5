"""Functions with the signatures of torch.nn.functional, and one for any text."""

import math

import torch

from .._library import text
from . import _around
from ._autograd import normalize

__all__ = ["group_norm", "instance_norm", "layer_norm", "norm", "rms_norm"]


_texts = {}


def row_text(norm, shape, eps, round=None):
    """Returns the text of a norm of [..., *shape], a tuple."""
    key = norm, shape, eps, round
    if key not in _texts:
        _texts[key] = text(norm, f"*x{math.prod(shape)}", numbers={"epsilon": eps}, round=round)
    return _texts[key]


def segment_text(norm, features, eps, groups=None):
    """Returns the text of a norm of [batch, features, positions...]."""
    key = norm, features, eps, groups
    if key not in _texts:
        _texts[key] = text(norm, f"*x{features}x*", options=groups and {"groups": groups}, numbers={"epsilon": eps})
    return _texts[key]


def batch_text(features, dims, decay, eps):
    """Returns the text of batch normalization of [batch, features] or [batch, features, positions...]."""
    key = features, dims > 2, decay, eps
    if key not in _texts:
        shape = f"*x{features}x*" if dims > 2 else f"*x{features}"
        _texts[key] = text("batch_norm_unbiased", shape, numbers={"decay": decay, "epsilon": eps})
    return _texts[key]


def _check_shape(input, normalized_shape):
    if input.shape[-len(normalized_shape) :] != normalized_shape:
        raise RuntimeError(
            f"given normalized_shape={list(normalized_shape)}, expected input with shape "
            f"[*, {', '.join(map(str, normalized_shape))}], but got input of size {list(input.shape)}"
        )


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, *, round=None):
    """As torch.nn.functional.layer_norm. round="normalized": as of rms_norm."""
    shape = tuple(normalized_shape)
    _check_shape(input, shape)
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
    eps = rms_epsilon(input) if eps is None else eps
    return normalize(row_text("rms_norm", shape, eps, round), input, weight)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """As torch.nn.functional.group_norm: input [batch, channels, ...]."""
    channels = input.shape[1]
    if channels % num_groups:
        raise RuntimeError(f"{channels} channels are not divisible by {num_groups} groups")
    if input.dim() == 2:
        return normalize(segment_text("group_norm_segment", channels, eps, num_groups), input[..., None], weight, bias)[..., 0]
    return normalize(segment_text("group_norm_segment", channels, eps, num_groups), input, weight, bias)


def instance_norm(input, weight=None, bias=None, eps=1e-5):
    """As torch.nn.functional.instance_norm without running statistics: input [batch, channels, positions...]."""
    return normalize(segment_text("instance_norm", input.shape[1], eps), input, weight, bias)


def norm(text, input, weight=None, bias=None, mask=None, **around):
    """The norm of a text that has no state, "rms_norm_residual[*x768] epsilon=1e-06": `around` are the tensors that it
    has beside the input (docs/around-a-norm.md). Returns y, or (y, residual_out) with a stream of residuals."""
    return _around.apply(text, input, weight, bias, mask, around)[0]
