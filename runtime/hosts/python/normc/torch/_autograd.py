"""Gradients of the operators: one torch.autograd.Function for each way in which a norm uses its state.

Eager code, torch.compile and torch.export run Functions with one `forward(ctx, ...)`; transforms of torch.func
need `setup_context`, which costs 70 us a call elsewhere. A second derivative fails loudly in both.
"""

import functools

import torch
from torch.autograd import forward_ad

from . import _ops

_transforming = torch._C._are_functorch_transforms_active


_NO_JVP = "norms of normc have no jvp; use reverse mode: backward() or torch.func.vjp"


def refuse_jvp(ctx, *tangents):
    """The jvp of the Functions that transforms of torch.func run."""
    raise NotImplementedError(_NO_JVP)


def _refuse_tangents(*tensors):
    """Raises if a tensor has a tangent of forward mode, which operators would lose: a Function without jvp is refused by
    torch, an operator is not."""
    if any(each is not None and forward_ad.unpack_dual(each).tangent is not None for each in tensors):
        raise NotImplementedError("a tensor of a norm has a tangent of torch.autograd.forward_ad, and " + _NO_JVP)


def _needs_gradient(x, scale, bias):
    if forward_ad._current_level >= 0:
        _refuse_tangents(x, scale, bias)
    return torch.is_grad_enabled() and (
        x.requires_grad
        or (scale is not None and scale.requires_grad)
        or (bias is not None and bias.requires_grad)
    )


class _Refused(torch.autograd.Function):
    """Gives back the first `count` tensors. A derivative of them with respect to any of the tensors raises."""

    generate_vmap_rule = True

    @staticmethod
    def forward(count, *tensors):
        return tuple(each.view_as(each) for each in tensors[:count])

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, *_):
        raise RuntimeError(
            "norms of normc have no second derivative, and a gradient of one was differentiated again; use the norms of "
            "torch.nn there"
        )


def _first_order(backward):
    """Returns a backward(ctx, *gradients) of one that takes the saved tensors too: backward(ctx, saved, *gradients). Its
    results have no derivative, and say so where a pass records a graph: with create_graph=True, and under torch.func."""

    @functools.wraps(backward)
    def either(ctx, *gradients):
        saved = ctx.saved_tensors  # once: a checkpoint gives each tensor one time
        if not torch.is_grad_enabled() or torch.compiler.is_compiling():
            return backward(ctx, saved, *gradients)
        with torch.no_grad():
            made = backward(ctx, saved, *gradients)
        results = [each for each in made if each is not None]
        sources = [each for each in (*saved, *gradients) if each is not None and each.is_floating_point()]
        refused = iter(_Refused.apply(len(results), *results, *sources))
        return tuple(each if each is None else next(refused) for each in made)

    return either


def _placed(gradients, wanted):
    """Returns dx, dscale, dbias, with None for each that is not wanted."""
    if all(wanted):
        return gradients[:3]
    rest = iter(gradients)
    return [next(rest) if each else None for each in wanted]


class _Exact(torch.autograd.Function):
    """A norm whose backward needs nothing of its state. Returns y, and the next state if there is one."""

    @staticmethod
    def forward(ctx, norm, x, scale, bias, mask, *state):
        out = _ops.forward(x, scale, bias, mask, state or None, norm)
        ctx.norm = norm
        if not state:
            ctx.save_for_backward(x, scale, bias, mask, *out[1:])
            return out[0]
        following = out[-len(state) :]
        ctx.save_for_backward(x, scale, bias, mask, *out[1 : -len(state)])
        ctx.mark_non_differentiable(*following)
        return (out[0], *following)

    @staticmethod
    @_first_order
    def backward(ctx, kept, dy, *_):
        x, scale, bias, mask, *saved = kept
        wanted = ctx.needs_input_grad[1:4]
        gradients = _ops.backward(x, dy, scale, bias, mask, saved, None, ctx.norm, *wanted)
        return (None, *_placed(gradients, wanted), None, *[None] * (len(ctx.needs_input_grad) - 5))


class _Carried(torch.autograd.Function):
    """A norm whose backward moves the state: PowerNorm and its kin. Forward is pure; backward gives the owner what
    both made of the state, so recomputation (checkpointing) and skipped passes are right."""

    @staticmethod
    def forward(ctx, norm, owner, x, scale, bias, mask, *state):
        y, *rest = _ops.forward(x, scale, bias, mask, state or None, norm)
        ctx.norm, ctx.owner, ctx.count = norm, owner, len(state)
        ctx.before = state[0], state[0]._version
        ctx.save_for_backward(x, scale, bias, mask, *rest)
        return y

    @staticmethod
    @_first_order
    def backward(ctx, kept, dy):
        x, scale, bias, mask, *rest = kept
        ctx.owner._check_unchanged(*ctx.before)
        saved, following = rest[: -ctx.count], rest[-ctx.count :]
        wanted = ctx.needs_input_grad[2:5]
        made = _ops.backward(x, dy, scale, bias, mask, saved, following, ctx.norm, *wanted)
        ctx.owner._commit(made[sum(wanted) :])
        return (None, None, *_placed(made, wanted), None, *[None] * ctx.count)


class _CarriedTraced(torch.autograd.Function):
    """_Carried in torch.compile. `tensors` are the state and, where these are others, the buffers that take the next one:
    the graph of a backward may not hold buffers that forward was not given (torch 2.10, with symbolic sizes)."""

    @staticmethod
    def forward(ctx, norm, count, x, scale, bias, mask, *tensors):
        state, *targets = given(tensors, count)
        y, *rest = _ops.forward(x, scale, bias, mask, state, norm)
        ctx.norm, ctx.count, ctx.inputs = norm, count, len(tensors)
        ctx.save_for_backward(x, scale, bias, mask, *rest, *targets)
        return y

    @staticmethod
    @_first_order
    def backward(ctx, kept, dy):
        x, scale, bias, mask, *rest = kept
        rest, targets = rest[: -ctx.count - 1], rest[-ctx.count - 1 :]
        saved, following = rest[: -ctx.count], rest[-ctx.count :]
        wanted = ctx.needs_input_grad[2:5]
        made = _ops.backward(x, dy, scale, bias, mask, saved, following, ctx.norm, *wanted)
        store_in(targets, made[sum(wanted) :], ctx.norm)
        return (None, None, *_placed(made, wanted), None, *[None] * ctx.inputs)


class _CarriedAtOnce(torch.autograd.Function):
    """The same where forward commits: backward moves the state that it finds. Returns y and the next state."""

    @staticmethod
    def forward(ctx, norm, owner, x, scale, bias, mask, *state):
        y, *rest = _ops.forward(x, scale, bias, mask, state or None, norm)
        saved, following = rest[: -len(state)], rest[-len(state) :]
        ctx.norm, ctx.owner, ctx.count = norm, owner, len(state)
        ctx.save_for_backward(x, scale, bias, mask, *saved)
        ctx.mark_non_differentiable(*following)
        return (y, *following)

    @staticmethod
    @_first_order
    def backward(ctx, kept, dy, *_):
        x, scale, bias, mask, *saved = kept
        wanted = ctx.needs_input_grad[2:5]
        made = _ops.backward(x, dy, scale, bias, mask, saved, list(ctx.owner.state), ctx.norm, *wanted)
        ctx.owner._store(made[sum(wanted) :])
        return (None, None, *_placed(made, wanted), None, *[None] * ctx.count)


def _copied(state):
    """Returns copies for the backward of an evaluation: a step of training may write into the fields before it."""
    return [field.clone() for field in state]


class _Inferred(torch.autograd.Function):
    """Evaluation: statistics are constants that come from the state."""

    @staticmethod
    def forward(ctx, norm, x, scale, bias, mask, *state):
        ctx.norm = norm
        ctx.save_for_backward(x, scale, bias, mask, *_copied(state))
        return _ops.infer(x, scale, bias, mask, state, norm)

    @staticmethod
    @_first_order
    def backward(ctx, kept, dy):
        x, scale, bias, mask, *state = kept
        wanted = ctx.needs_input_grad[1:4]
        gradients = _ops.infer_backward(x, dy, scale, bias, mask, state, ctx.norm, *wanted)
        return (None, *_placed(gradients, wanted), None, *[None] * len(state))


class _ExactTransformed(torch.autograd.Function):
    """_Exact under a transform of torch.func. Returns all outputs of the operator."""

    generate_vmap_rule = True
    jvp = staticmethod(refuse_jvp)

    @staticmethod
    def forward(norm, x, scale, bias, mask, *state):
        return tuple(_ops.forward(x, scale, bias, mask, state or None, norm))

    @staticmethod
    def setup_context(ctx, inputs, output):
        norm, x, scale, bias, mask, *state = inputs
        ctx.norm = norm
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(x, scale, bias, mask, *output[1 : len(output) - len(state)])
        ctx.count = len(state)

    @staticmethod
    @_first_order
    def backward(ctx, kept, dy, *_):
        x, scale, bias, mask, *saved = kept
        wanted = ctx.needs_input_grad[1:4]
        gradients = _ops.backward(x, dy, scale, bias, mask, saved, None, ctx.norm, *wanted)
        return (None, *_placed(gradients, wanted), None, *[None] * ctx.count)


class _InferredTransformed(torch.autograd.Function):
    generate_vmap_rule = True
    jvp = staticmethod(refuse_jvp)

    @staticmethod
    def forward(norm, x, scale, bias, mask, *state):
        return _ops.infer(x, scale, bias, mask, state, norm)

    @staticmethod
    def setup_context(ctx, inputs, output):
        norm, x, scale, bias, mask, *state = inputs
        ctx.norm = norm
        ctx.save_for_backward(x, scale, bias, mask, *_copied(state))

    backward = _Inferred.backward


def _is_transformed():
    return _transforming() and not torch.compiler.is_compiling()


def store(state, following):
    """Copies the next state, which has no gradient, into buffers."""
    if torch.compiler.is_compiling():
        # torch 2.10 cannot trace the other in backward, and torch.export loads no graph that changes the grad mode.
        for buffer, value in zip(state, following):
            buffer.copy_(value)
        return
    with torch.no_grad():
        if _transforming():  # vmap has no rule for the other
            for buffer, value in zip(state, following):
                buffer.copy_(value)
        else:
            torch._foreach_copy_(state, following)


def given(tensors, count):
    """Returns the state that a traced forward reads, the first `count` of the tensors, and for `store_in` a note of it
    and the last `count` of them. The note is None where these are not the state itself."""
    if len(tensors) > count:
        return tensors[:count], None, *tensors[count:]
    noted = _ops.noted(tensors[0])  # forward reads it, or the graph would make it in backward
    return (noted, *tensors[1:]), noted, *tensors


def store_in(targets, following, norm):
    """Copies the next state into the last of what `given` returned. Raises if the state has changed."""
    noted, *targets = targets
    if noted is not None:
        following = [_ops.unchanged(following[0], targets[0], noted, norm), *following[1:]]
    store(targets, following)


def normalize(norm, x, scale=None, bias=None, mask=None):
    """Returns y of a norm without state."""
    if _is_transformed():
        return _ExactTransformed.apply(norm, x, scale, bias, mask)[0]
    if _needs_gradient(x, scale, bias):
        return _Exact.apply(norm, x, scale, bias, mask)
    return _ops.infer(x, scale, bias, mask, None, norm)


def train(norm, x, scale, bias, mask, state):
    """Returns y and the next state of a norm whose backward does not move the state."""
    if _is_transformed():
        y, *rest = _ExactTransformed.apply(norm, x, scale, bias, mask, *state)
        return y, rest[len(rest) - len(state) :]
    if _needs_gradient(x, scale, bias):
        y, *following = _Exact.apply(norm, x, scale, bias, mask, *state)
        return y, following
    y, *rest = _ops.forward(x, scale, bias, mask, state or None, norm)
    return y, rest[len(rest) - len(state) :]


def _refuse_transforms(norm):
    if _is_transformed():
        raise RuntimeError(
            "the backward of " + norm.split("[")[0] + " changes its state, which a transform of torch.func cannot; "
            "use autograd, or eval mode"
        )


def _note_run(ctx):
    norm, field = ctx.get_local("norm").as_python_constant(), ctx.get_local("field").as_fake()
    if hasattr(field, "_normc_has_run"):  # a fake tensor, which belongs to one trace
        raise RuntimeError(
            f"{norm} runs more than once in one graph of torch.compile, which would lose all but one of its states; "
            "use one module for each place, or commit='forward'"
        )
    field._normc_has_run = True


def refuse_second_run(norm, field):
    """Raises while torch.compile traces a norm that ran in the same graph: its backwards cannot see there that the
    state changed. `field` is a buffer of its state."""
    from torch._dynamo.comptime import comptime  # there already in a trace, and slow to import

    comptime(_note_run)


def train_carried(norm, x, scale, bias, mask, state, owner):
    """Returns y of a norm whose backward moves the state of `owner`, a Norm, which says when it commits."""
    _refuse_transforms(norm)
    differentiable = _needs_gradient(x, scale, bias)
    if differentiable and owner.commit_at != "forward":
        if torch.compiler.is_compiling():
            targets = owner._next if owner.commit_at == "step" else ()
            if not targets:
                refuse_second_run(norm, state[0])
            return _CarriedTraced.apply(norm, len(state), x, scale, bias, mask, *state, *targets)
        return _Carried.apply(norm, owner, x, scale, bias, mask, *state)
    if differentiable:
        y, *following = _CarriedAtOnce.apply(norm, owner, x, scale, bias, mask, *state)
        owner._store(following)
        return y
    y, *rest = _ops.forward(x, scale, bias, mask, state or None, norm)
    # The first pass of a checkpoint runs without gradients, and must change nothing.
    if torch.is_grad_enabled() or owner.commit_at == "forward":
        owner._commit(rest[len(rest) - len(state) :])
    return y


def evaluate(norm, x, scale, bias, mask, state):
    """Returns y of a norm with a state, whose statistics come from it."""
    if _is_transformed():
        return _InferredTransformed.apply(norm, x, scale, bias, mask, *state)
    if _needs_gradient(x, scale, bias):
        return _Inferred.apply(norm, x, scale, bias, mask, *state)
    return _ops.infer(x, scale, bias, mask, state, norm)
