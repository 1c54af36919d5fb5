"""A norm as two functions with gradients of their own: `train`, whose statistics are those of the batch, and
`evaluate`, whose statistics are constants of the state. Both take arrays that `_norm` has checked.
"""

import functools

import jax
import jax.numpy as jnp

from .. import _around
from ._call import call


def _read(spec, entry, x, mask, around, stream):
    """Returns what a backward reads of x and the tensors around the norm. Where it does not read x it reads the
    residual_out of forward, which has its shape."""
    places, reads_x, _ = _kept(spec, entry, x.dtype, mask)
    return x if reads_x or not stream else None, tuple(stream[0] if at < 0 else around[at] for at in places)


def _kept(spec, entry, dtype, mask):
    inputs, _ = _around.inputs_of(spec.facts("forward", dtype, mask is not None))
    return _around.kept(spec.facts(entry, dtype, mask is not None), inputs) if inputs else ((), True, ())


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def quantized(spec, trained, x, scale, bias, mask, state, around):
    """Returns the codes that stand for y, what else a norm makes, and the next state. They have no gradient."""
    made = call(spec, "forward" if trained and state else "infer", x, scale, bias, mask, state, around=around)
    return (made.y, *made.around), made.state


@quantized.defjvp
def _(spec, trained, given, tangents):
    _around.refuse_gradient(spec.name)


def _differentiated(spec, entry, residuals, cotangents):
    """Returns the results of a backward, and the gradients of what is around the norm."""
    x, scale, bias, mask, around, saved, state = residuals
    dy, *of_stream = cotangents
    places, _, gradients = _kept(spec, entry, dy.dtype, mask)
    if x is None:
        x = around[places.index(-1)]
        x = x if x.dtype == dy.dtype else dy  # of a stream; the type of x is that of the data, and it is not read
    made = call(spec, entry, x, scale, bias, mask, state, dy, saved, around=(*around, *of_stream))
    every = (made.dx, *made.gradients, *made.around)
    of = {-1: dy, _around.NO_GRADIENT: None}
    return made, tuple(of[at] if at < 0 else every[at] for at in gradients)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _train(spec, x, scale, bias, mask, state, around):
    made = call(spec, "forward" if state else "infer", x, scale, bias, mask, state, around=around)
    return (made.y, *made.around), made.state


def _train_forward(spec, x, scale, bias, mask, state, around):
    made = call(spec, "forward", x, scale, bias, mask, state, around=around)
    x, around = _read(spec, "backward", x, mask, around, made.around)
    return ((made.y, *made.around), made.state), (x, scale, bias, mask, around, made.saved, made.state)


def _train_backward(spec, residuals, cotangents):
    *others, state = residuals
    residuals = (*others, _of_later_calls(spec, cotangents[0][0].dtype, state, cotangents[1]))
    made, around = _differentiated(spec, "backward", residuals, cotangents[0])
    return (made.dx, *made.gradients, None, _carried(spec, made.dx.dtype, made.state), around)


def _carried(spec, dtype, state):
    """Returns the cotangents of a state: what backward makes of it is the cotangent of what it had (next_state). It is
    0, of None, where no backward made it, so in evaluation too: JAX adds the cotangents of all calls."""
    return tuple(value if field["written"] else None
                 for field, value in zip(spec.facts("backward", dtype)["state"], state))


def _of_later_calls(spec, dtype, state, cotangents):
    """Returns the state that backward takes: where a later call was given the next state, its backward ran before, and
    made the cotangent. No later call is a cotangent of 0."""
    return tuple(value if late is None else jnp.where(jnp.any(made != 0), made, value)
                 for value, late, made in zip(state, _carried(spec, dtype, state), cotangents))


_train.defvjp(_train_forward, _train_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _evaluate(spec, x, scale, bias, mask, state, around):
    made = call(spec, "infer", x, scale, bias, mask, state, around=around)
    return (made.y, *made.around)


def _evaluate_forward(spec, x, scale, bias, mask, state, around):
    made = _evaluate(spec, x, scale, bias, mask, state, around)
    x, around = _read(spec, "infer_backward", x, mask, around, made[1:])
    return made, (x, scale, bias, mask, around, (), state)


def _evaluate_backward(spec, residuals, cotangents):
    made, around = _differentiated(spec, "infer_backward", residuals, cotangents)
    return (made.dx, *made.gradients, None, tuple(None for _ in residuals[-1]), around)


_evaluate.defvjp(_evaluate_forward, _evaluate_backward)


def _gathered(partial, axes):
    """Returns the sums of all shards, one row for each: a kernel adds them in order, so all get the same bits."""
    return jax.lax.all_gather(partial, axes)


def _gathered_in_backward(spec, partial, axes):
    try:
        return _gathered(partial, axes)
    except NameError as error:
        raise NameError(
            f"{error}: JAX runs the backward of {spec.name} outside of the vmap that has the axis; take the gradient "
            "inside of it, vmap(grad(...), axis_name=...), or use a shard_map") from error


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _train_over(spec, axes, x, scale, bias, mask, state):
    return _train_over_forward(spec, axes, x, scale, bias, mask, state)[0]


def _train_over_forward(spec, axes, x, scale, bias, mask, state):
    reduced = call(spec, "forward_reduce", x, scale, bias, mask, state)
    sums = _gathered(reduced.partial, axes)
    if reduced.y is None:  # y needs the sums
        made = call(spec, "forward_apply", x, scale, bias, mask, state, partials=sums)
        return (made.y, made.state), (x, scale, bias, mask, made.saved, state, sums)
    # The state that does not need the sums of backward, which are 0 for now.
    both = spec.facts("commit", x.dtype)["partial"] * 2
    padded = jnp.concatenate([sums, jnp.zeros_like(sums, shape=(len(sums), both - sums.shape[1]))], 1)
    made = call(spec, "commit", state=state, partials=padded, dtype=x.dtype)
    following = tuple(old if late is not None else new
                      for old, new, late in zip(state, made.state, _carried(spec, x.dtype, state)))
    return (reduced.y, following), (x, scale, bias, mask, reduced.saved, state, sums)


def _train_over_backward(spec, axes, residuals, cotangents):
    x, scale, bias, mask, saved, state, sums = residuals
    dy = cotangents[0]
    state = _of_later_calls(spec, x.dtype, state, cotangents[1])
    reduced = call(spec, "backward_reduce", x, scale, bias, mask, state, dy, saved)
    of_backward = _gathered_in_backward(spec, reduced.partial, axes)
    if reduced.dx is None:
        made = call(spec, "backward_apply", x, scale, bias, mask, state, dy, saved, of_backward)
        return (made.dx, *reduced.gradients, None, tuple(None for _ in state))
    both = jnp.concatenate([sums, of_backward], 1)
    made = call(spec, "commit", state=state, partials=both, dtype=x.dtype)
    return (reduced.dx, *reduced.gradients, None, _carried(spec, x.dtype, made.state))


_train_over.defvjp(_train_over_forward, _train_over_backward)

# A custom call outside jit is lowered again each time, which takes a millisecond.
train = jax.jit(_train, static_argnums=0, inline=True)
train_over = jax.jit(_train_over, static_argnums=(0, 1), inline=True)
evaluate = jax.jit(_evaluate, static_argnums=0, inline=True)
