"""One custom call: normc_forward, backward, infer, infer_backward and those of statistics over shards."""

import ctypes
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ._shards import result_type, together
from ._spec import DTYPES, around_shape, field_shape, library

ENTRIES = ("forward", "backward", "infer", "infer_backward", "forward_reduce", "forward_apply", "backward_reduce",
           "backward_apply", "commit")
_handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int)(("NormcXlaHandler", library._c))
for _entry in ENTRIES:
    for _cuda, _platform in enumerate(("cpu", "CUDA")):
        _capsule = jax.ffi.pycapsule(ctypes.c_void_p(_handler(_entry.encode(), _cuda)))
        jax.ffi.register_ffi_target(f"normc_{_entry}", _capsule, platform=_platform)


def _saved_type(spec, field, sizes):
    """Returns the shape and type of a saved statistic: a number of 64 bits is two words, as in `_to_words`."""
    shape = field_shape(field, sizes, spec.segmented)
    return ((*shape, 2), jnp.uint32) if field["dtype"] == "i64" else (shape, DTYPES[field["dtype"]])


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
def _first_derivative(custom_call, *operands):
    return custom_call(*operands)


@_first_derivative.defjvp
def _(custom_call, operands, tangents):
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


def _results(spec, entry, known, x, scale, bias, fields, like):
    """Returns the types of the results of an entry by kind and name, in the order of common/Arguments.h."""
    codes = DTYPES[known["codes"]] if known["codes"] else None
    made = {}
    if known["y"] or known["dx"] or codes:
        made["large", ""] = result_type(x.shape, codes or x.dtype, like)
    for each in known["around"]:
        if each["use"] in ("written", "optional"):
            made["around", each["name"]] = result_type(around_shape(spec, x, each), DTYPES[each["dtype"]], like)
    if (known["y"] or codes or entry == "forward_apply") and entry != "infer":
        sizes = spec.sizes(x)
        for field in known["saved"]:
            made["saved", field["name"]] = result_type(*_saved_type(spec, field, sizes), like)
    for name, value in (("scale", scale), ("bias", bias)):
        if known[f"{name}_gradient"]:
            made["gradient", name] = result_type(value.shape, value.dtype, like)
    for field, value in fields:
        if field["written"]:
            # A state that is the same on all shards stays so: the sums that it follows from are those of all.
            made["state", field["name"]] = result_type(value.shape, value.dtype, value)
    if entry.endswith("_reduce"):
        # In f64, which JAX has not by default.
        made["partial", ""] = result_type((2 * known["partial"],), jnp.uint32, like)
    return made


def call(spec, entry, x=None, scale=None, bias=None, mask=None, state=(), dy=None, saved=(), partials=None,
         dtype=None, around=()):
    """Returns the results of an entry. The order of operands is that of common/Arguments.h."""
    dtype = dtype or x.dtype
    known = spec.facts(entry, dtype, mask is not None)
    read = [known["reads_scale"], known["reads_bias"]]
    fields = [(field, _to_words(field, value)) for field, value in zip(known["state"], state)]
    operands = [x, dy, *(value for value, has in zip((scale, bias), read) if has), mask, *around, *saved, partials]
    operands = [value for value in operands if value is not None]
    first = len(operands)
    reads = [field["name"] for field, _ in fields if field["read"]]
    operands = together(operands + [value for field, value in fields if field["read"]])

    results = _results(spec, entry, known, x, scale, bias, fields, operands[0])
    places = {slot: at for at, slot in enumerate(results)}
    aliases = {at: places["state", name] for at, name in enumerate(reads, first) if ("state", name) in places}
    outputs = _first_derivative(functools.partial(
        jax.ffi.ffi_call(
            f"normc_{entry}", list(results.values()), vmap_method="broadcast_all" if aliases else "expand_dims",
            input_output_aliases=aliases),
        norm=spec.text, rank=np.int32(operands[0].ndim), mask=np.int32(mask is not None),
        rows=np.int32(spec.each_row_alone(dtype, mask is not None))), *operands)

    made = dict(zip(results, outputs))
    following = list(state)
    for at, (field, _) in enumerate(fields):
        if field["written"]:
            following[at] = _from_words(made["state", field["name"]], state[at])
    of = lambda kind: tuple(value for (each, _), value in made.items() if each == kind)
    return Results(
        y=made["large", ""] if known["y"] or known["codes"] else None,
        dx=made["large", ""] if known["dx"] else None,
        around=of("around"),
        saved=of("saved"),
        gradients=tuple(made.get(("gradient", name)) for name in ("scale", "bias")),
        state=tuple(following),
        partial=made.get(("partial", "")),
    )
