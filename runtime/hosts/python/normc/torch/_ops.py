"""The operators normc::infer, forward, backward and infer_backward: what tracing has to know of them. And those that
find a state that changed between a forward and its backward, in graphs.

Each takes tensors and the text of a norm, and is pure. Shapes of outputs follow from the norm's fields; under
vmap the rows of a batch are just more rows where statistics are of a row, and other batches are a loop.
"""

import functools
import math

import torch

from .._library import Error, Library, is_alone, settings

library = Library("torch")
torch.ops.load_library(library.path)

infer = torch.ops.normc.infer.default
forward = torch.ops.normc.forward.default
backward = torch.ops.normc.backward.default
infer_backward = torch.ops.normc.infer_backward.default

_NAMES = {torch.float32: "f32", torch.float64: "f64", torch.bfloat16: "bf16", torch.float16: "f16"}
_DTYPES = {**{name: dtype for dtype, name in _NAMES.items()}, "i64": torch.int64, "i8": torch.int8,
           "e4m3": torch.float8_e4m3fn, "e8m0": torch.float8_e8m0fnu}


def name_of(dtype):
    """Returns the name of a type in a problem."""
    try:
        return _NAMES[dtype]
    except KeyError:
        raise TypeError(f"a norm takes {', '.join(map(str, _NAMES))}, not {dtype}") from None


def types_of(x, parameter=None):
    """Returns the names of the types of x and of a parameter, which is empty if it is the default."""
    params = "" if parameter is None else name_of(parameter.dtype)
    data = name_of(x.dtype)
    return data, "" if params == ("f64" if data == "f64" else "f32") else params


def facts(norm, entry, x, scale=None, bias=None, mask=None):
    """Returns the facts of a norm for these tensors."""
    return library.facts(norm, entry, *types_of(x, bias if scale is None else scale), mask is not None)


def constant(function):
    """Returns a function that keeps its results, and that a trace of torch.compile runs."""
    kept = functools.lru_cache(maxsize=None)(function)

    def called(*arguments):
        return kept(*arguments)

    # torch.compiler.assume_constant_result sets this too, but it imports torch._dynamo, which takes as long as torch.
    called._dynamo_marked_constant = True
    return called


def refusal(text, types, device=None):
    """Returns why a text cannot run on a device, that of CPUs if none is named, for types as types_of gives them; None
    if there are kernels of it, or a compiler that makes them."""
    cuda = -1 if device is None or device.type != "cuda" else device.index or 0
    return _refusal(text, types, cuda, settings())


@constant
def _refusal(text, types, cuda, settings):
    try:
        for entry in ("forward", "backward"):
            library.facts(text, entry, *types, cuda=cuda)
    except Error as error:
        return str(error)


def served(text, types):
    """True if a text can run for types."""
    return refusal(text, types) is None


def is_channels_first(norm):
    return "x*]" in norm


def is_segmented(norm):
    return norm[norm.index("[") : norm.index("]")].count("x") == 2


def _channels_last_strides(shape):
    strides, step = [0] * len(shape), shape[1]
    strides[1] = 1
    for axis in (axis for axis in reversed(range(len(shape))) if axis != 1):
        strides[axis] = step
        step = step * shape[axis]
    return strides


def _like(x, norm, dtype=None):
    """Returns the output for an x, of its type or another: contiguous in the order of axes that x has."""
    if is_channels_first(norm) and not x.is_contiguous():
        strides = _channels_last_strides(x.shape)
        if all(size == 1 or have == want for size, have, want in zip(x.shape, x.stride(), strides)):
            return x.new_empty_strided(x.shape, strides, dtype=dtype)
    return x.new_empty(x.shape, dtype=dtype)


def _sizes(x, norm):
    features = int(norm[norm.index("[") : norm.index("]")].strip("[]").replace("*", "").strip("x"))
    segmented = is_segmented(norm)
    rows = math.prod(x.shape[1:] if segmented else x.shape) // features
    return {"segments": x.shape[0] if segmented else 1, "rows": rows, "features": features}


def _fields(fields, x, norm):
    sizes, segmented = _sizes(x, norm), is_segmented(norm)
    made = []
    for field in fields:
        shape = [sizes.get(axis, axis) for axis in field["shape"] if axis != 1 and (segmented or axis != "segments")]
        made.append(x.new_empty(shape, dtype=_DTYPES[field["dtype"]]))
    return made


@torch.library.register_fake("normc::infer")
def _(x, scale, bias, mask, state, norm):
    return _like(x, norm)


@torch.library.register_fake("normc::forward")
def _(x, scale, bias, mask, state, norm):
    known = facts(norm, "forward", x, scale, bias, mask)
    return [_like(x, norm), *_fields(known["saved"], x, norm), *_fields(known["state"], x, norm)]


def _gradients(x, scale, bias, mask, norm, entry, dx, dscale, dbias):
    known = facts(norm, entry, x, scale, bias, mask)
    made = [_like(x, norm)] if dx else []
    for wanted, like in ((dscale and known["scale_gradient"], scale), (dbias and known["bias_gradient"], bias)):
        if wanted:
            made.append(like.new_empty(like.shape) if like is not None else x.new_empty(_sizes(x, norm)["features"]))
    return known, made


@torch.library.register_fake("normc::backward")
def _(x, dy, scale, bias, mask, saved, state, norm, dx, dscale, dbias):
    known, made = _gradients(x, scale, bias, mask, norm, "backward", dx, dscale, dbias)
    return made + (_fields(known["state"], x, norm) if known["writes_state"] else [])


@torch.library.register_fake("normc::infer_backward")
def _(x, dy, scale, bias, mask, state, norm, dx, dscale, dbias):
    return _gradients(x, scale, bias, mask, norm, "infer_backward", dx, dscale, dbias)[1]


def _slices(operator):
    """Returns a vmap rule that runs the operator on each member of a batch and stacks what it returns."""

    def rule(info, dims, *arguments):
        def member(value, dim, index):
            if isinstance(value, (list, tuple)):
                return [member(v, d, index) for v, d in zip(value, dim or [None] * len(value))]
            return value if dim is None else value.select(dim, index)

        all_of = [
            operator(*(member(value, dim, index) for value, dim in zip(arguments, dims)))
            for index in range(info.batch_size)
        ]
        if isinstance(all_of[0], torch.Tensor):
            return torch.stack(all_of), 0
        return [torch.stack(same) for same in zip(*all_of)], [0] * len(all_of[0])

    return rule


def _rows_or(operator, outputs):
    """Returns a vmap rule: where x alone has a batch, and each row has a statistic of its own, a batch is just more
    rows. Such a norm has no state."""
    slices = _slices(operator)

    def rule(info, dims, x, scale, bias, mask, state, norm):
        of_x, *others = dims
        batched = any(isinstance(dim, int) for dim in others)
        if of_x is None or batched or mask is not None or not _has_rows_alone(norm, x, scale, bias):
            return slices(info, dims, x, scale, bias, mask, state, norm)
        return outputs(info, operator(x.movedim(of_x, 0), scale, bias, mask, state, norm))

    return rule


def _has_rows_alone(norm, x, scale, bias):
    """True if each row of a text has statistics of its own, and a batch in front of x makes more rows. Positions of a
    segment are counted from the front."""
    return not is_segmented(norm) and is_alone("rows", facts(norm, "forward", x, scale, bias))


def _forward_outputs(info, out):
    return [out[0], *(o.reshape(info.batch_size, -1) for o in out[1:])], [0] * len(out)


torch.library.register_vmap("normc::infer", _rows_or(infer, lambda info, out: (out, 0)))
torch.library.register_vmap("normc::forward", _rows_or(forward, _forward_outputs))
torch.library.register_vmap("normc::backward", _slices(backward))
torch.library.register_vmap("normc::infer_backward", _slices(infer_backward))


#===-- A state that changed ------------------------------------------------------------===#

CHANGED = (
    "the state of {} changed between a forward and its backward: the layer ran forward or backward more than once, which "
    "would lose all but one of the states; use one module for each place, or commit='forward'"
)

# Operators, because a graph may compute anything else again in backward, from the state then.
_own = torch.library.Library("normc", "FRAGMENT")
_own.define("noted(Tensor state) -> Tensor")
_own.define("unchanged(Tensor following, Tensor state, Tensor noted, str norm) -> Tensor")
noted = torch.ops.normc.noted.default
unchanged = torch.ops.normc.unchanged.default


@torch.library.impl(_own, "noted", "CompositeExplicitAutograd")
def _(state):
    return state.clone()


@torch.library.impl(_own, "unchanged", "CompositeExplicitAutograd")
def _(following, state, noted, norm):
    """Returns a copy of `following`. Raises if the state is not what was noted; on a GPU when the host waits for it."""
    torch._assert_async(((state == noted) | noted.isnan()).all(), CHANGED.format(norm))
    return following.clone()


@torch.library.register_fake("normc::noted")
def _(state):
    return torch.empty_like(state)


@torch.library.register_fake("normc::unchanged")
def _(following, state, noted, norm):
    return torch.empty_like(following)
