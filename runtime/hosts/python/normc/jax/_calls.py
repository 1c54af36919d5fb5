"""The custom calls normc_forward, backward, infer and infer_backward: their results and their gradients.

A norm is two functions with gradients of their own: `train`, whose statistics are those of the batch, and
`evaluate`, whose statistics are constants of the state. Both take arrays that `_norm` has checked.
"""

import ctypes
import dataclasses
import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core
from jax.interpreters import ad, batching, mlir

from .. import _around
from .._library import Library, check_numbers, is_alone

library = Library("jax")
ENTRIES = ("forward", "backward", "infer", "infer_backward", "forward_reduce", "forward_apply", "backward_reduce",
           "backward_apply", "commit")
_handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int)(("NormcXlaHandler", library._c))
for _entry in ENTRIES:
    for _cuda, _platform in enumerate(("cpu", "CUDA")):
        _capsule = jax.ffi.pycapsule(ctypes.c_void_p(_handler(_entry.encode(), _cuda)))
        jax.ffi.register_ffi_target(f"normc_{_entry}", _capsule, platform=_platform)

NAMES = {jnp.dtype(name): short for name, short in
         {"float32": "f32", "float64": "f64", "bfloat16": "bf16", "float16": "f16"}.items()}
DTYPES = {"f32": jnp.float32, "f64": jnp.float64, "bf16": jnp.bfloat16, "f16": jnp.float16, "i8": jnp.int8,
          "e4m3": jnp.float8_e4m3fn, "e8m0": jnp.float8_e8m0fnu, "i64": jnp.int32}  # JAX has no int64 by default


@dataclasses.dataclass(frozen=True)
class Spec:
    """A norm of a text, as a static argument."""

    text: str
    name: str
    features: int
    segmented: bool
    channels_first: bool

    def facts(self, entry, dtype, mask=False):
        return library.facts(self.text, entry, NAMES[jnp.dtype(dtype)], "", mask)

    def check(self, numbers, dtype, mask=False):
        """Raises if the norm has no number of a name."""
        check_numbers(library, self.text, numbers, NAMES[jnp.dtype(dtype)], "", mask)

    def sizes(self, x):
        leading = x.shape if self.channels_first else x.shape[:-1]
        if not self.segmented:
            return {"segments": 1, "rows": math.prod(leading), "features": self.features}
        rows = x.shape[2:] if self.channels_first else x.shape[1:-1]
        return {"segments": x.shape[0], "rows": math.prod(rows), "features": self.features}

    @functools.lru_cache(maxsize=None)
    def each_row_alone(self, dtype, mask):
        """True if each row, or segment, has statistics of its own: so a batch under vmap is just more of them."""
        known = self.facts("forward", dtype, mask)
        return is_alone("segments" if self.segmented else "rows", known) and all(
            each["shape"] in ("elements", "pairs", "blocks") for each in known["around"])

    @functools.lru_cache(maxsize=None)
    def over_rows(self, dtype, mask):
        """True if a statistic is one of all rows, so one of a batch that is divided needs the rows of all shards."""
        known = self.facts("forward", dtype, mask)
        return bool(known["state"]) or any(
            not {"segments", "rows"}.intersection(field["shape"]) for field in known["saved"])


def field_shape(field, sizes, segmented):
    return tuple(sizes.get(axis, axis) for axis in field["shape"] if axis != 1 and (segmented or axis != "segments"))


def around_shape(spec, x, each):
    sizes = spec.sizes(x)
    return {"elements": x.shape, "segments": (sizes["segments"], sizes["features"]),
            "features": (sizes["features"],), "pairs": (*x.shape[:-1], each["pairs"]), "one": (1,),
            "blocks": (*x.shape[:-1], each["blocks"]) if each["blocks"] else x.shape[:-1]}[each["shape"]]


def _saved_type(spec, field, sizes):
    """Returns the shape and type of a saved statistic: a number of 64 bits is two words, as in `_to_words`."""
    shape = field_shape(field, sizes, spec.segmented)
    return ((*shape, 2), jnp.uint32) if field["dtype"] == "i64" else (shape, DTYPES[field["dtype"]])


def _result(shape, dtype, like):
    """Returns the type of a result. In shard_map it varies along the axes along which `like` does."""
    kind = jax.typeof(like)
    if not hasattr(kind, "mat"):
        return jax.ShapeDtypeStruct(shape, dtype, vma=getattr(kind, "vma", None))
    if kind.mat.empty:
        return jax.ShapeDtypeStruct(shape, dtype)
    sharding = jax.sharding.NamedSharding(kind.sharding.mesh, jax.sharding.PartitionSpec())
    return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding, manual_axis_type=kind.mat)


def _to_words(field, value):
    """Returns the words of a number of 64 bits that JAX has in 32 or fewer, [..., 2]; other values as they are."""
    if field["dtype"] != "i64":
        return value
    if value.dtype.itemsize == 8:
        return value.astype(jnp.int64)
    signed = jnp.issubdtype(value.dtype, jnp.signedinteger)
    low = value.astype(jnp.int32 if signed else jnp.uint32)
    high = low >> 31 if signed else jnp.zeros_like(low)
    return jax.lax.bitcast_convert_type(jnp.stack([low, high], axis=-1), jnp.uint32)


def _from_words(value, like):
    """Returns a value of a state in the type that it had. A number stays at the largest of its type."""
    if value.shape == like.shape:
        return value.astype(like.dtype)
    largest = jnp.uint32(min(jnp.iinfo(like.dtype).max, 2**32 - 1))
    low, high = value[..., 0], value[..., 1]
    return jnp.where(high == 0, jnp.minimum(low, largest), largest).astype(like.dtype)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _first_derivative(call, *operands):
    return call(*operands)


@_first_derivative.defjvp
def _(call, operands, tangents):
    raise TypeError("norms of normc have no second derivative, and a gradient of one was differentiated again; use the "
                    "formula of the norm in jax.numpy there")


class Results(NamedTuple):
    """What an entry made; None and () for what it does not make."""

    y: Any
    dx: Any
    around: tuple  # what an entry makes beside y or dx
    saved: tuple
    gradients: tuple  # of scale and bias
    state: tuple  # the next one, with the fields of the old one that do not change
    partial: Any


def _call(spec, entry, x=None, scale=None, bias=None, mask=None, state=(), dy=None, saved=(), partials=None,
          dtype=None, around=()):
    """Returns the results of an entry. The order of operands is that of common/Arguments.h."""
    dtype = dtype or x.dtype
    known = spec.facts(entry, dtype, mask is not None)
    read = [known["reads_scale"], known["reads_bias"]]
    given = state
    state = tuple(_to_words(field, value) for field, value in zip(known["state"], given))
    fields = list(zip(known["state"], state))
    operands = [x, dy, *(value for value, has in zip((scale, bias), read) if has), mask, *around, *saved, partials]
    operands = [value for value in operands if value is not None]
    first = len(operands)
    operands += [value for field, value in fields if field["read"]]
    operands = together(operands)
    like = functools.partial(_result, like=operands[0])

    codes = DTYPES[known["codes"]] if known["codes"] else None
    results = [like(x.shape, codes or x.dtype)] if known["y"] or known["dx"] or codes else []
    beside = [each for each in known["around"] if each["use"] in ("written", "optional")]
    results += [like(around_shape(spec, x, each), DTYPES[each["dtype"]]) for each in beside]
    if known["y"] or codes or entry == "forward_apply":
        sizes = spec.sizes(x)
        results += [like(*_saved_type(spec, field, sizes)) for field in known["saved"] if entry != "infer"]
    made = len(results)
    has = [known["scale_gradient"], known["bias_gradient"]]
    results += [like(value.shape, value.dtype) for value, each in zip((scale, bias), has) if each]
    after = len(results)
    # A state that is the same on all shards stays so: the sums that it follows from are those of all.
    results += [_result(value.shape, value.dtype, value) for field, value in fields if field["written"]]
    if entry.endswith("_reduce"):
        results.append(like((2 * known["partial"],), jnp.uint32))  # f64, which JAX has not by default

    reads = [at for at, (field, _) in enumerate(fields) if field["read"]]
    writes = [at for at, (field, _) in enumerate(fields) if field["written"]]
    aliases = {first + reads.index(at): after + writes.index(at) for at in writes if at in reads}
    outputs = _first_derivative(functools.partial(
        jax.ffi.ffi_call(
            f"normc_{entry}", results, vmap_method="broadcast_all" if aliases else "expand_dims",
            input_output_aliases=aliases),
        norm=spec.text, rank=np.int32(operands[0].ndim), mask=np.int32(mask is not None),
        rows=np.int32(spec.each_row_alone(dtype, mask is not None))), *operands)

    following = list(given)
    for at, value in zip(writes, outputs[after:]):
        following[at] = _from_words(value, given[at])
    gradients = iter(outputs[made:after])
    return Results(
        y=outputs[0] if known["y"] or codes else None,
        dx=outputs[0] if known["dx"] else None,
        around=tuple(outputs[1 : 1 + len(beside)]),
        saved=tuple(outputs[1 + len(beside) : made]),
        gradients=tuple(next(gradients) if each else None for each in has),
        state=tuple(following),
        partial=outputs[-1] if entry.endswith("_reduce") else None,
    )


def varying(value):
    """Returns the axes of a shard_map along which an array varies."""
    kind = jax.typeof(value)
    return kind.mat.varying if hasattr(kind, "mat") else getattr(kind, "vma", frozenset())


def unchecked_axes():
    """Returns the axes of a shard_map, or pmap, in which types do not say what varies."""
    axes = tuple(jax.sharding.get_abstract_mesh().manual_axes)
    return axes if axes and not varying(jax.lax.pcast(jnp.zeros(()), axes, to="varying")) else ()


def replicated(tree):
    """Returns arrays that each device has whole, of those that a mesh with Explicit axes divides: so a gradient, which
    a custom call makes, has the type of its array."""
    def whole(value):
        sharding = jax.typeof(value).sharding
        if jax.sharding.AxisType.Explicit not in sharding.mesh.axis_types or not any(sharding.spec):
            return value
        return jax.sharding.reshard(value, jax.sharding.NamedSharding(sharding.mesh, jax.sharding.PartitionSpec()))

    return jax.tree.map(whole, tree)


def together(tree):
    """Returns arrays that all vary along the same axes. The transpose sums gradients of what was replicated."""
    everywhere = frozenset().union(*map(varying, jax.tree.leaves(tree)))
    if not everywhere:
        return tree
    return jax.tree.map(lambda v: jax.lax.pcast(v, tuple(everywhere - varying(v)), to="varying"), tree)


# A field of a state whose cotangent is its next value, and after it all else that a call is given. In grad(vmap(...))
# the rule of vmap comes first, and notes that a batch shares the field. In vmap(grad(...)) the rule of the gradient
# comes first, and each element has a cotangent of its own.
_carries = core.Primitive("normc_carries")
_carries.def_impl(lambda value, *_, **__: value)
_carries.def_abstract_eval(lambda value, *_, **__: value)
mlir.register_lowering(_carries, lambda _, value, *__, **___: [value])


def _carries_batch(values, dims, *, shared, **names):
    return _carries.bind(*values, shared=shared or dims[0] is None, **names), dims[0]


def _carries_gradient(values, tangents, *, shared, norm, field):
    if shared and not isinstance(tangents[0], ad.Zero):
        raise ValueError(
            f"the next {field} of {norm} is a cotangent, which JAX would add over the batch of vmap, since the batch "
            "shares one state: give each element a state of its own (in_axes=0), take the gradient inside of vmap, or "
            "call the norm with the whole batch")
    return values[0], tangents[0]


batching.primitive_batchers[_carries] = _carries_batch
ad.primitive_jvps[_carries] = _carries_gradient


def carrying(spec, x, state, others):
    """Returns a state. A gradient of it raises if vmap gives one state to a batch of x or of others."""
    rest = jax.tree.leaves((x, others, state))
    return tuple(_carries.bind(value, *rest, shared=False, norm=spec.name, field=field["name"])
                 if field["written"] else value
                 for field, value in zip(spec.facts("backward", x.dtype)["state"], state))


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
    made = _call(spec, "forward" if trained and state else "infer", x, scale, bias, mask, state, around=around)
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
    made = _call(spec, entry, x, scale, bias, mask, state, dy, saved, around=(*around, *of_stream))
    every = (made.dx, *made.gradients, *made.around)
    of = {-1: dy, _around.NO_GRADIENT: None}
    return made, tuple(of[at] if at < 0 else every[at] for at in gradients)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _train(spec, x, scale, bias, mask, state, around):
    made = _call(spec, "forward" if state else "infer", x, scale, bias, mask, state, around=around)
    return (made.y, *made.around), made.state


def _train_forward(spec, x, scale, bias, mask, state, around):
    made = _call(spec, "forward", x, scale, bias, mask, state, around=around)
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
    made = _call(spec, "infer", x, scale, bias, mask, state, around=around)
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
    reduced = _call(spec, "forward_reduce", x, scale, bias, mask, state)
    sums = _gathered(reduced.partial, axes)
    if reduced.y is None:  # y needs the sums
        made = _call(spec, "forward_apply", x, scale, bias, mask, state, partials=sums)
        return (made.y, made.state), (x, scale, bias, mask, made.saved, state, sums)
    # The state that does not need the sums of backward, which are 0 for now.
    both = spec.facts("commit", x.dtype)["partial"] * 2
    padded = jnp.concatenate([sums, jnp.zeros_like(sums, shape=(len(sums), both - sums.shape[1]))], 1)
    made = _call(spec, "commit", state=state, partials=padded, dtype=x.dtype)
    following = tuple(old if late is not None else new
                      for old, new, late in zip(state, made.state, _carried(spec, x.dtype, state)))
    return (reduced.y, following), (x, scale, bias, mask, reduced.saved, state, sums)


def _train_over_backward(spec, axes, residuals, cotangents):
    x, scale, bias, mask, saved, state, sums = residuals
    dy = cotangents[0]
    state = _of_later_calls(spec, x.dtype, state, cotangents[1])
    reduced = _call(spec, "backward_reduce", x, scale, bias, mask, state, dy, saved)
    of_backward = _gathered_in_backward(spec, reduced.partial, axes)
    if reduced.dx is None:
        made = _call(spec, "backward_apply", x, scale, bias, mask, state, dy, saved, of_backward)
        return (made.dx, *reduced.gradients, None, tuple(None for _ in state))
    both = jnp.concatenate([sums, of_backward], 1)
    made = _call(spec, "commit", state=state, partials=both, dtype=x.dtype)
    return (reduced.dx, *reduced.gradients, None, _carried(spec, x.dtype, made.state))


_train_over.defvjp(_train_over_forward, _train_over_backward)

# A custom call outside jit is lowered again each time, which takes a millisecond.
train = jax.jit(_train, static_argnums=0, inline=True)
train_over = jax.jit(_train_over, static_argnums=(0, 1), inline=True)
evaluate = jax.jit(_evaluate, static_argnums=0, inline=True)
