"""The custom calls normc_forward, backward, infer and infer_backward: their results and their gradients.

A norm is two functions with gradients of their own: `train`, whose statistics are those of the batch, and
`evaluate`, whose statistics are constants of the state. Both take arrays that `_norm` has checked.
"""

import ctypes
import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from .._library import Library

library = Library("jax")
ENTRIES = ("forward", "backward", "infer", "infer_backward")  # in the order of Registry.h
_handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_int)(("NormcXlaHandler", library._c))
for _number, _entry in enumerate(ENTRIES):
    for _cuda, _platform in enumerate(("cpu", "CUDA")):
        _capsule = jax.ffi.pycapsule(ctypes.c_void_p(_handler(_number, _cuda)))
        jax.ffi.register_ffi_target(f"normc_{_entry}", _capsule, platform=_platform)

NAMES = {jnp.dtype(name): short for name, short in
         {"float32": "f32", "float64": "f64", "bfloat16": "bf16", "float16": "f16"}.items()}
DTYPES = {"f32": jnp.float32, "f64": jnp.float64, "i64": jnp.int32}  # JAX has no int64 by default


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

    def sizes(self, x):
        leading = x.shape if self.channels_first else x.shape[:-1]
        if not self.segmented:
            return {"segments": 1, "rows": math.prod(leading), "features": self.features}
        rows = x.shape[2:] if self.channels_first else x.shape[1:-1]
        return {"segments": x.shape[0], "rows": math.prod(rows), "features": self.features}

    @functools.lru_cache(maxsize=None)
    def each_row_alone(self, dtype):
        """True if each row, or segment, has statistics of its own: so a batch under vmap is just more of them."""
        known = self.facts("forward", dtype)
        axis = "segments" if self.segmented else "rows"
        return "#" not in self.text and not known["state"] and bool(known["saved"]) and all(
            axis in field["shape"] for field in known["saved"])


def field_shape(field, sizes, segmented):
    return tuple(sizes.get(axis, axis) for axis in field["shape"] if axis != 1 and (segmented or axis != "segments"))


def _result(shape, dtype, x):
    """Returns the type of a result. In shard_map it varies along the axes along which x does."""
    kind = jax.typeof(x)
    if not hasattr(kind, "mat"):
        return jax.ShapeDtypeStruct(shape, dtype, vma=getattr(kind, "vma", None))
    if kind.mat.empty:
        return jax.ShapeDtypeStruct(shape, dtype)
    sharding = jax.sharding.NamedSharding(kind.sharding.mesh, jax.sharding.PartitionSpec())
    return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding, manual_axis_type=kind.mat)


def _call(spec, entry, x, scale, bias, mask, state, dy=None, saved=()):
    """Returns the results of an entry: y or dx, the list that follows it, and the next state as a tuple."""
    known, sizes = spec.facts(entry, x.dtype, mask is not None), spec.sizes(x)
    operands = [x] if dy is None else [x, dy]
    operands += [value for name, value in (("reads_scale", scale), ("reads_bias", bias)) if known[name]]
    operands += [mask] if mask is not None else []
    operands += saved
    like = functools.partial(_result, x=x)
    results = [like(x.shape, x.dtype)]
    if entry == "forward":
        results += [like(field_shape(f, sizes, spec.segmented), DTYPES[f["dtype"]]) for f in known["saved"]]
    for name, value in (("scale_gradient", scale), ("bias_gradient", bias)):
        if known[name]:
            results.append(like(value.shape, value.dtype))
    first = len(results)
    aliases, written = {}, []
    for at, (field, value) in enumerate(zip(known["state"], state)):
        if field["written"]:
            if field["read"]:
                aliases[len(operands)] = len(results)
            written.append(at)
            results.append(like(value.shape, value.dtype))
        if field["read"]:
            operands.append(value)
    made = jax.ffi.ffi_call(
        f"normc_{entry}", results, vmap_method="broadcast_all" if aliases else "expand_dims",
        input_output_aliases=aliases,
    )(*operands, norm=spec.text, rank=np.int32(x.ndim), mask=np.int32(mask is not None),
      rows=np.int32(spec.each_row_alone(x.dtype)))
    following = list(state)
    for at, value in zip(written, made[first:]):
        following[at] = value
    return made[0], list(made[1:first]), tuple(following)


def _parameter_gradients(known, rest, scale, bias):
    rest = iter(rest)
    return [next(rest) if known[name] else None for name in ("scale_gradient", "bias_gradient")]


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _train(spec, x, scale, bias, mask, state):
    y, _, following = _call(spec, "forward" if state else "infer", x, scale, bias, mask, state)
    return y, following


def _train_forward(spec, x, scale, bias, mask, state):
    y, saved, following = _call(spec, "forward", x, scale, bias, mask, state)
    return (y, following), (x, scale, bias, mask, saved, following)


def _train_backward(spec, residuals, cotangents):
    x, scale, bias, mask, saved, state = residuals
    known = spec.facts("backward", x.dtype, mask is not None)
    dx, rest, following = _call(spec, "backward", x, scale, bias, mask, state, cotangents[0], saved)
    # What backward makes of the state is the cotangent of what it had: see next_state.
    carried = tuple(value if field["written"] else None for field, value in zip(known["state"], following))
    return (dx, *_parameter_gradients(known, rest, scale, bias), None, carried)


_train.defvjp(_train_forward, _train_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _evaluate(spec, x, scale, bias, mask, state):
    return _call(spec, "infer", x, scale, bias, mask, state)[0]


def _evaluate_forward(spec, x, scale, bias, mask, state):
    return _evaluate(spec, x, scale, bias, mask, state), (x, scale, bias, mask, state)


def _evaluate_backward(spec, residuals, dy):
    x, scale, bias, mask, state = residuals
    known = spec.facts("infer_backward", x.dtype, mask is not None)
    dx, rest, _ = _call(spec, "infer_backward", x, scale, bias, mask, state, dy)
    return (dx, *_parameter_gradients(known, rest, scale, bias), None, tuple(None for _ in state))


_evaluate.defvjp(_evaluate_forward, _evaluate_backward)

# A custom call outside jit is lowered again each time, which takes a millisecond.
train = jax.jit(_train, static_argnums=0, inline=True)
evaluate = jax.jit(_evaluate, static_argnums=0, inline=True)
