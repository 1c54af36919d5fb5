"""The norms as formulas of jax.numpy, and cases for all tests."""

import jax
import jax.numpy as jnp
import normc.jax as nj
import numpy as np


def centred(x, axes, eps):
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / jnp.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + eps)


def layer_norm(x, scale, bias, eps=1e-5):
    return centred(x, -1, eps) * scale + bias


def rms_norm(x, scale, bias, eps=1e-6):
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + eps) * scale


def group_norm(x, scale, bias, groups=32, axis=-1):
    moved = jnp.moveaxis(x, axis, -1)
    split = moved.reshape(*moved.shape[:-1], groups, -1)
    y = centred(split, (*range(1, x.ndim - 1), x.ndim), 1e-5).reshape(moved.shape) * scale + bias
    return jnp.moveaxis(y, -1, axis)


def instance_norm(x, scale, bias, axis=-1):
    return group_norm(x, scale, bias, x.shape[axis], axis)


def batch_norm(x, scale, bias, axis=-1):
    moved = jnp.moveaxis(x, axis, -1)
    return jnp.moveaxis(centred(moved, tuple(range(x.ndim - 1)), 1e-5) * scale + bias, -1, axis)


def power_norm_v(x, scale, bias):
    return x / jnp.sqrt((x * x).mean(tuple(range(x.ndim - 1)), keepdims=True) + 1e-5) * scale + bias


def trained(function, name, **arguments):
    """Returns y of a norm with a fresh state."""
    def call(x, scale, bias):
        axis = arguments.get("channel_axis", -1)
        state = nj.init_state(name, x.shape[axis], x.dtype)
        return function(x, scale, bias, state, training=True, **arguments)[0]
    return call


# name: ours, the formula, the shape of x, its axis of features
CASES = {
    "layer_norm": (nj.layer_norm, layer_norm, (5, 7, 96), -1),
    "layer_norm of one row": (nj.layer_norm, layer_norm, (96,), -1),
    "rms_norm": (lambda x, s, b: nj.rms_norm(x, s), rms_norm, (5, 7, 96), -1),
    "group_norm": (lambda x, s, b: nj.group_norm(x, 32, s, b), group_norm, (3, 5, 6, 64), -1),
    "group_norm, channels first": (lambda x, s, b: nj.group_norm(x, 32, s, b, channel_axis=1),
                                   lambda x, s, b: group_norm(x, s, b, axis=1), (3, 64, 5, 6), 1),
    "group_norm of vectors": (lambda x, s, b: nj.group_norm(x, 32, s, b), group_norm, (3, 256), -1),
    "instance_norm": (nj.instance_norm, instance_norm, (3, 5, 6, 32), -1),
    "instance_norm, channels first": (lambda x, s, b: nj.instance_norm(x, s, b, channel_axis=1),
                                      lambda x, s, b: instance_norm(x, s, b, 1), (3, 32, 30), 1),
    "batch_norm": (trained(nj.batch_norm, "batch_norm"), batch_norm, (33, 96), -1),
    "batch_norm of images": (trained(nj.batch_norm, "batch_norm"), batch_norm, (4, 5, 6, 16), -1),
    "batch_norm, channels first": (trained(nj.batch_norm, "batch_norm", channel_axis=1),
                                   lambda x, s, b: batch_norm(x, s, b, 1), (4, 16, 5, 6), 1),
    "power_norm_v": (trained(nj.power_norm_v, "power_norm_v"), power_norm_v, (33, 96), -1),
}


def arrays(shape, axis, dtype):
    """Returns x, scale, bias and dy. NumPy makes and compares arrays: JAX would compile each operation and shape."""
    draw = np.random.default_rng(3).normal
    features = shape[axis]
    return tuple(jnp.asarray(values, dtype) for values in (
        1 + draw(size=shape), 1 + 0.3 * draw(size=features), draw(size=features), draw(size=shape)))


def close(ours, theirs, bound):
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        a, b = np.asarray(a, "float64"), np.asarray(b, "float64")
        assert abs(a - b).max(initial=0) <= bound * max(1, abs(b).max(initial=0))


def gradients(function, x, scale, bias, dy):
    """Returns y and all gradients."""
    y, back = jax.vjp(function, x, scale, bias)
    return (y, *back(dy))


def power_norm_step(bias):
    """Returns a step of training for jax.lax.scan: ((scale, state), x) to ((scale, state), dscale). The cotangent of nu
    is the next nu."""

    def loss(scale, state, x):
        y, state = nj.power_norm(x, scale, bias, state)
        return jnp.mean(y**3), state

    def step(carry, x):
        scale, state = carry
        of = jax.grad(loss, argnums=(0, 1), has_aux=True, allow_int=True)
        (dscale, cotangents), after = of(scale, state, x)
        return (scale - 0.1 * dscale, nj.next_state(after, cotangents)), dscale

    return step
