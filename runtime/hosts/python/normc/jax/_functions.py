"""The norms that are built in, as functions.

x is float32, float64, bfloat16 or float16, [..., features]; a norm of images takes `channel_axis=1` too. y has the
shape and the type of x. scale and bias are [features], of a float type no wider than float32, or than float64 with
such an x; without a scale the factor is 1, without a bias 0 is added. A state is a dict of arrays, from `init_state`; one of
evaluation (`training=False`) is returned as it is. `eps` and the decays are Python numbers, and JAX compiles and keeps
a function for each value of them.

While JAX traces, a wrong shape is a ValueError and a wrong type a TypeError. A problem without a kernel, which no
compiler can make here, is a normc.Error. Forward mode and second derivatives are a TypeError. Functions may be called
from several threads.
"""

import jax.numpy as jnp

from .._library import group_count
from ._norm import cached


def _features(name, x, channel_axis=-1):
    """Returns the size of x along its axis of features, and whether this is the axis 1 of an image."""
    shape = jnp.shape(x)
    if not shape:
        raise ValueError(f"x is a number; {name} takes [..., features]")
    if channel_axis not in (1, -1, len(shape) - 1):
        raise ValueError(f"channel_axis is {channel_axis}; {name} takes 1 or -1")
    first = channel_axis == 1 and len(shape) > 2
    return shape[1 if first else -1], first


def _rows(name, x, eps, round):
    return cached(name, _features(name, x)[0], "features_last", numbers=(("epsilon", float(eps)),), round=round)


def layer_norm(x, scale=None, bias=None, eps=1e-5, *, round=None):
    """Returns (x - mean) / sqrt(variance + eps) * scale + bias over the last dimension. round="normalized": as of
    rms_norm."""
    return _rows("layer_norm", x, eps, round)(x, scale, bias)


def rms_norm(x, scale=None, eps=1e-6, *, round=None):
    """Returns x / sqrt(mean(x^2) + eps) * scale over the last dimension. round="normalized": what is multiplied by the
    scale is rounded to the type of x, as Llama's code does."""
    return _rows("rms_norm", x, eps, round)(x, scale)


def _segments(name, x, scale, bias, eps, channel_axis, options=()):
    x = jnp.asarray(x)
    features, first = _features(name, x, channel_axis)
    if x.ndim < 2:
        raise ValueError(f"x has the shape {list(x.shape)}; {name} takes [batch, positions..., features]")
    shape = x.shape
    if x.ndim == 2:  # one position
        x = x[:, None, :]
    of = cached(name, features, "channels_first" if first else "segments", options=options,
                numbers=(("epsilon", float(eps)),))
    return of(x, scale, bias).reshape(shape)


def group_norm(x, groups, scale=None, bias=None, eps=1e-5, channel_axis=-1):
    """Returns x with mean 0 and variance 1 in each sample and group of channels, times scale plus bias."""
    channels, _ = _features("group_norm", x, channel_axis)
    groups = group_count(groups)
    if groups < 1 or channels % groups:
        raise ValueError(f"{channels} channels are not divisible by {groups} groups")
    return _segments("group_norm_segment", x, scale, bias, eps, channel_axis, (("groups", groups),))


def instance_norm(x, scale=None, bias=None, eps=1e-5, channel_axis=-1):
    """Returns x with mean 0 and variance 1 in each sample and channel, times scale plus bias."""
    return _segments("instance_norm", x, scale, bias, eps, channel_axis)


def batch_norm(x, scale, bias, state, training, decay=0.9, eps=1e-5, channel_axis=-1, axis_name=None):
    """Returns y and the next state: running_mean, running_var (the unbiased variance, as PyTorch keeps it), step.

    In training the statistics are those of the batch, over all dimensions but the channels; else those of the
    state, which stays as it is. With the `axis_name` of a shard_map the batch is that of all shards.
    """
    features, first = _features("batch_norm", x, channel_axis)
    of = cached("batch_norm_unbiased", features, "channels_first" if first else "features_last",
                numbers=(("decay", float(decay)), ("epsilon", float(eps))))
    return of(x, scale, bias, state, training=training, axis_name=axis_name)


def power_norm(x, scale, bias, state, training=True, decay=0.9, backward_decay=0.9, eps=1e-5,
               axis_name=None):
    """Returns y and the next state of PN (ICML 2020, Algorithm 2): step, psi2, nu.

    Backward makes the next nu, which `next_state` takes from the gradients.
    """
    numbers = (("backward_decay", float(backward_decay)), ("decay", float(decay)), ("epsilon", float(eps)))
    return cached("power_norm", _features("power_norm", x)[0], "features_last", numbers=numbers)(
        x, scale, bias, state, training=training, axis_name=axis_name)


def power_norm_v(x, scale, bias, state, training=True, decay=0.9, eps=1e-5, axis_name=None):
    """Returns y and the next state of PN-V (ICML 2020, section 4.1): step, psi2."""
    numbers = (("decay", float(decay)), ("epsilon", float(eps)))
    return cached("power_norm_v", _features("power_norm_v", x)[0], "features_last", numbers=numbers)(
        x, scale, bias, state, training=training, axis_name=axis_name)


_STATES = {"batch_norm": "batch_norm_unbiased", "power_norm": "power_norm", "power_norm_v": "power_norm_v"}


def init_state(name, features, dtype=jnp.float32):
    """Returns the state of batch_norm, power_norm or power_norm_v before the first step."""
    if name not in _STATES:
        raise ValueError(f"{name} has no state; states have {', '.join(_STATES)}")
    return cached(_STATES[name], features, "features_last").init_state(dtype)
