"""Norms with tensors around them: operators, what tracing has to know of them, and gradients.

`around` are the tensors that an entry reads, in the order of common/Around.h; those that it makes follow y, or dx,
dscale and dbias.
"""

import torch
from torch.autograd import forward_ad

from . import _ops
from .. import _around
from ._autograd import _first_order, _is_transformed, _refuse_tangents, _refuse_transforms, refuse_jvp
from ._autograd import _copied, given, refuse_second_run, store_in

infer = torch.ops.normc.infer_around.default
forward = torch.ops.normc.forward_around.default
backward = torch.ops.normc.backward_around.default
infer_backward = torch.ops.normc.infer_backward_around.default


# `types` are those of x and the parameters, as _ops.types_of gives them.
@_ops.constant
def streamed(norm, types, masked, residual):
    """As _around.streamed, of types by name."""
    facts = lambda text: _ops.library.facts(text, "forward", *types, masked)
    return _around.streamed(norm, types[0], residual, facts)


@_ops.constant
def taken(norm, types, masked):
    """As _around.inputs_of, of a text; then as _around.coded."""
    known = _ops.library.facts(norm, "forward", *types, masked)
    return *_around.inputs_of(known), _around.coded(known)


@_ops.constant
def kept(norm, entry, types, masked, inputs):
    """As _around.kept, of a text."""
    return _around.kept(_ops.library.facts(norm, entry, *types, masked), inputs)


def _written(known, x, norm, wanted=0):
    """Returns the tensors around the norm that an entry makes, for tracing."""
    made = []
    for each in known["around"]:
        if each["use"] == "optional":
            wanted, left_out = wanted >> 1, not wanted & 1
            if left_out:
                continue
        elif each["use"] != "written":
            continue
        dtype = _ops._DTYPES[each["dtype"]]
        if each["shape"] == "blocks":
            shape = (*x.shape[:-1], each["blocks"]) if each["blocks"] else x.shape[:-1]
            made.append(x.new_empty(shape, dtype=dtype))
            continue
        sizes = _ops._sizes(x, norm)
        shape = {"segments": (sizes["segments"], sizes["features"]), "features": (sizes["features"],)}
        elements = each["shape"] == "elements"
        made.append(_ops._like(x, norm, dtype) if elements else x.new_empty(shape[each["shape"]], dtype=dtype))
    return made


def _output(known, x, norm):
    """Returns y, or the codes that stand for it, for tracing."""
    y = _ops._like(x, norm)
    return torch.empty_like(y, dtype=_ops._DTYPES[known["codes"]]) if known["codes"] else y


@torch.library.register_fake("normc::infer_around")
def _(x, scale, bias, mask, around, state, norm):
    known = _ops.facts(norm, "infer", x, scale, bias, mask)
    return [_output(known, x, norm), *_written(known, x, norm)]


@torch.library.register_fake("normc::forward_around")
def _(x, scale, bias, mask, around, state, norm):
    known = _ops.facts(norm, "forward", x, scale, bias, mask)
    fields = [*_ops._fields(known["saved"], x, norm), *_ops._fields(known["state"], x, norm)]
    return [_output(known, x, norm), *_written(known, x, norm), *fields]


def _gradients(x, scale, bias, mask, norm, entry, wanted):
    parameters = bool(wanted & 1), bool(wanted & 2), bool(wanted & 4)
    known, made = _ops._gradients(x, scale, bias, mask, norm, entry, *parameters)
    return known, made + _written(known, x, norm, wanted >> 3)


@torch.library.register_fake("normc::backward_around")
def _(x, dy, scale, bias, mask, around, saved, state, norm, wanted):
    known, made = _gradients(x, scale, bias, mask, norm, "backward", wanted)
    return made + (_ops._fields(known["state"], x, norm) if known["writes_state"] else [])


@torch.library.register_fake("normc::infer_backward_around")
def _(x, dy, scale, bias, mask, around, state, norm, wanted):
    return _gradients(x, scale, bias, mask, norm, "infer_backward", wanted)[1]


for _name, _operator in (("infer", infer), ("forward", forward), ("backward", backward),
                         ("infer_backward", infer_backward)):
    torch.library.register_vmap(f"normc::{_name}_around", _ops._slices(_operator))


def _keep(ctx, norm, facts, out, x, scale, bias, mask, around, rest):
    """Saves what a backward reads; `rest` are saved statistics and a state. A backward that does not read x reads
    residual_out, which has its shape."""
    stream, keeps, reads_x, places = facts
    ctx.save_for_backward(x if reads_x or not stream else None, scale, bias, mask,
                          *(out[1] if at < 0 else around[at] for at in keeps), *rest)
    ctx.norm, ctx.stream, ctx.keeps, ctx.places, ctx.dtype = norm, stream, keeps, places, x.dtype
    if not torch.compiler.is_compiling() and not _is_transformed():
        ctx.set_materialize_grads(False)


def _gradients_of(ctx, tensors, cotangents, make):
    """Returns the gradients of the inputs of a Function that saved `tensors`, whose x stands behind six others. `make`
    calls the operator with the tensors that it reads, the rest of what was kept, and the bits of the wanted ones."""
    x, scale, bias, mask, *rest = tensors
    around, rest = rest[: len(ctx.keeps)], rest[len(ctx.keeps) :]
    if x is None:
        x = around[ctx.keeps.index(-1)]
    dy = torch.zeros_like(x, dtype=ctx.dtype) if cotangents[0] is None else cotangents[0]
    if x.dtype != ctx.dtype:  # of a stream; x tells an operator the type of the data, and it is not read
        x = dy
    if ctx.stream and cotangents[1] is not None:
        around = [*around, cotangents[1]]
    needs = ctx.needs_input_grad[6:]  # of x, scale, bias, mask, and what is around
    places = (0, 1, 2, *ctx.places)
    asked = (*needs[:3], *needs[4 : 4 + len(ctx.places)])
    wanted = 0
    for place, need in zip(places, asked):
        if need and place >= 0:
            wanted |= 1 << place
    made = make((x, dy, scale, bias, mask, around), rest, wanted)
    at, of = 0, {-1: dy, _around.NO_GRADIENT: None}
    for place in range(wanted.bit_length()):
        if wanted >> place & 1:
            of[place] = made[at]
            at += 1
    dx, dscale, dbias, *others = [of[place] if need else None for place, need in zip(places, asked)]
    return (*[None] * 6, dx, dscale, dbias, None, *others, *[None] * (len(needs) - 4 - len(others))), made[at:]


class _Around(torch.autograd.Function):
    """A norm whose backward leaves the state as it is. `training` False: statistics are constants of the state.
    Returns y, residual_out if the norm has it, and the next state if it was trained."""

    @staticmethod
    def forward(ctx, norm, training, stream, keeps, reads_x, places, x, scale, bias, mask, *tensors):
        around, state = tensors[: len(places)], tensors[len(places) :]
        operator = forward if training else infer
        out = operator(x, scale, bias, mask, around, state or None, norm)
        following = out[len(out) - len(state) :] if training else ()
        saved = out[1 + stream : len(out) - len(state)] if training else _copied(state)
        _keep(ctx, norm, (stream, keeps, reads_x, places), out, x, scale, bias, mask, around, saved)
        ctx.training = training
        ctx.mark_non_differentiable(*following)
        return (out[0], *out[1 : 1 + stream], *following)

    @staticmethod
    @_first_order
    def backward(ctx, tensors, *cotangents):
        def make(tensors, saved, wanted):
            if wanted == 0:  # dy alone is a gradient
                return []
            if ctx.training:
                return backward(*tensors, saved, None, ctx.norm, wanted)
            return infer_backward(*tensors, saved, ctx.norm, wanted)

        return _gradients_of(ctx, tensors, cotangents, make)[0]


class _Transformed(torch.autograd.Function):
    """_Around under a transform of torch.func. Returns all outputs of the operator."""

    generate_vmap_rule = True
    jvp = staticmethod(refuse_jvp)

    @staticmethod
    def forward(norm, training, stream, keeps, reads_x, places, x, scale, bias, mask, *tensors):
        operator = forward if training else infer
        return tuple(operator(x, scale, bias, mask, tensors[: len(places)], tensors[len(places) :] or None, norm))

    @staticmethod
    def setup_context(ctx, inputs, output):
        norm, training, stream, keeps, reads_x, places, x, scale, bias, mask, *tensors = inputs
        around, state = tensors[: len(places)], tensors[len(places) :]
        saved = output[1 + stream : len(output) - len(state)] if training else state
        _keep(ctx, norm, (stream, keeps, reads_x, places), output, x, scale, bias, mask, around, saved)
        ctx.training = training
        ctx.mark_non_differentiable(*output[1 + stream :])

    backward = _Around.backward


class _Carried(torch.autograd.Function):
    """A norm whose backward moves the state, as _autograd._Carried. `owner` is a Norm; in torch.compile it is the
    number of fields, and behind the state stand the buffers that take the next one, if it does not."""

    @staticmethod
    def forward(ctx, norm, owner, stream, keeps, reads_x, places, x, scale, bias, mask, *tensors):
        traced = isinstance(owner, int)
        around, rest = tensors[: len(places)], tensors[len(places) :]
        count = owner if traced else len(rest)
        state, *targets = given(rest, count) if traced else (rest,)
        out = forward(x, scale, bias, mask, around, state, norm)
        kept = (*out[1 + stream :], *targets)
        _keep(ctx, norm, (stream, keeps, reads_x, places), out, x, scale, bias, mask, around, kept)
        ctx.owner, ctx.traced, ctx.count = owner, traced, count
        if not traced:
            ctx.before = rest[0], rest[0]._version
        return (out[0], out[1]) if stream else out[0]

    @staticmethod
    @_first_order
    def backward(ctx, tensors, *cotangents):
        count, targets = ctx.count, ()
        if not ctx.traced:
            ctx.owner._check_unchanged(*ctx.before)

        def make(tensors, rest, wanted):
            nonlocal targets
            if ctx.traced:
                rest, targets = rest[: -count - 1], rest[-count - 1 :]
            return backward(*tensors, rest[:-count], rest[-count:], ctx.norm, wanted)

        gradients, following = _gradients_of(ctx, tensors, cotangents, make)
        if ctx.traced:
            store_in(targets, following, ctx.norm)
        else:
            ctx.owner._commit(following)
        return gradients


class _CarriedAtOnce(torch.autograd.Function):
    """The same where forward commits: backward moves the state that it finds. Returns the next state too."""

    @staticmethod
    def forward(ctx, norm, owner, stream, keeps, reads_x, places, x, scale, bias, mask, *tensors):
        around, state = tensors[: len(places)], tensors[len(places) :]
        out = forward(x, scale, bias, mask, around, state, norm)
        following = out[len(out) - len(state) :]
        saved = out[1 + stream : len(out) - len(state)]
        _keep(ctx, norm, (stream, keeps, reads_x, places), out, x, scale, bias, mask, around, saved)
        ctx.owner = owner
        ctx.mark_non_differentiable(*following)
        return (*out[: 1 + stream], *following)

    @staticmethod
    @_first_order
    def backward(ctx, tensors, *cotangents):
        make = lambda tensors, saved, wanted: backward(*tensors, saved, list(ctx.owner.state), ctx.norm, wanted)
        gradients, following = _gradients_of(ctx, tensors, cotangents, make)
        ctx.owner._store(following)
        return gradients


def _given(norm, x, scale, bias, mask, around):
    """Returns the text with the type of the stream, the types of x and the parameters, the tensors around the norm in
    its order, and what `taken` does."""
    for name, each in around.items():
        if each is not None and not isinstance(each, torch.Tensor):
            raise TypeError(f"{name} is {each!r}; give a tensor")
    types = _ops.types_of(x, bias if scale is None else scale)
    residual = around.get("residual")
    if residual is not None and residual.dtype != x.dtype and "stream=" not in norm:
        norm = streamed(norm, types, mask is not None, _ops.name_of(residual.dtype))
    inputs, stream, count = taken(norm, types, mask is not None)
    return norm, types, _around.ordered(norm.split("[")[0].split("#")[0], inputs, around), inputs, stream, count


def _needs_gradient(tensors):
    if forward_ad._current_level >= 0:
        _refuse_tangents(*tensors)
    return torch.is_grad_enabled() and any(each is not None and each.requires_grad for each in tensors)


def _result(out, count):
    return tuple(out[:count]) if count > 1 else out[0]


def apply(norm, x, scale, bias, mask, around, state=(), training=True):
    """Returns y, or (y, residual_out) where the norm has a stream of residuals, and the next state. For y stand codes
    where the norm quantizes, and their scales are the last. `around` are tensors by name. A norm without a state is
    always trained."""
    norm, types, tensors, inputs, stream, count = _given(norm, x, scale, bias, mask, around)
    if count and _needs_gradient((x, scale, bias, *tensors)):
        _around.refuse_gradient(norm.split("[")[0])
    transformed = _is_transformed()
    if transformed or _needs_gradient((x, scale, bias, *tensors)):
        facts = kept(norm, "backward" if training else "infer_backward", types, mask is not None, inputs)
        function = _Transformed if transformed else _Around
        out = function.apply(norm, training, stream, *facts, x, scale, bias, mask, *tensors, *state)
    elif training and state:
        out = forward(x, scale, bias, mask, tensors, state, norm)
    else:
        out = infer(x, scale, bias, mask, tensors, state or None, norm)
    following = out[len(out) - len(state) :] if training else ()
    return _result(out, count or 1 + stream), following


def train_carried(norm, x, scale, bias, mask, around, state, owner):
    """Returns y, or (y, residual_out), of a norm whose backward moves the state of `owner`, a Norm."""
    norm, types, tensors, inputs, stream, count = _given(norm, x, scale, bias, mask, around)
    _refuse_transforms(norm)
    at_once = owner.commit_at == "forward"
    if count and _needs_gradient((x, scale, bias, *tensors)):
        _around.refuse_gradient(norm.split("[")[0])
    if not _needs_gradient((x, scale, bias, *tensors)):
        out = forward(x, scale, bias, mask, tensors, state, norm)
        # The first pass of a checkpoint runs without gradients, and must change nothing.
        if torch.is_grad_enabled() or at_once:
            owner._commit(out[len(out) - len(state) :])
        return _result(out, count or 1 + stream)
    facts = kept(norm, "backward", types, mask is not None, inputs)
    arguments = (stream, *facts, x, scale, bias, mask, *tensors, *state)
    if at_once:
        out = _CarriedAtOnce.apply(norm, owner, *arguments)
        owner._store(out[1 + stream :])
        return _result(out, 1 + stream)
    if torch.compiler.is_compiling():
        targets = owner._next if owner.commit_at == "step" else ()
        if not targets:
            refuse_second_run(norm, state[0])
        return _Carried.apply(norm, len(state), *arguments, *targets)
    return _Carried.apply(norm, owner, *arguments)
