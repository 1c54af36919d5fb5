"""Statistics over the ranks of a process group: docs/many-ranks.md.

Norms that need the statistics of the batch exchange sums twice a step and wait for them: BatchNorm, PN-V. Norms
that divide by the running moment exchange once, for all layers, at any time before the next step: PowerNorm.
"""

import functools

import torch
import torch.distributed._functional_collectives as collectives

from . import _ops, _state
from ._autograd import _first_order, _needs_gradient, _placed, _refuse_transforms
from ._modules import _BatchNorm

forward_reduce = torch.ops.normc.forward_reduce.default
forward_apply = torch.ops.normc.forward_apply.default
backward_reduce = torch.ops.normc.backward_reduce.default
backward_apply = torch.ops.normc.backward_apply.default
commit_sums = torch.ops.normc.commit.default


@torch.library.register_fake("normc::forward_reduce")
def _(x, scale, bias, mask, state, norm):
    known = _ops.facts(norm, "forward_reduce", x, scale, bias, mask)
    made = [_ops._like(x, norm)] if known["y"] else []
    return [*made, *_ops._fields(known["saved"], x, norm), x.new_empty(known["partial"], dtype=torch.float64)]


@torch.library.register_fake("normc::forward_apply")
def _(x, scale, bias, mask, partials, state, norm):
    known = _ops.facts(norm, "forward_apply", x, scale, bias, mask)
    following = _ops._fields(known["state"], x, norm) if known["writes_state"] else []
    return [_ops._like(x, norm), *_ops._fields(known["saved"], x, norm), *following]


@torch.library.register_fake("normc::backward_reduce")
def _(x, dy, scale, bias, mask, saved, state, norm, dx, dscale, dbias):
    known = _ops.facts(norm, "backward_reduce", x, scale, bias, mask)
    _, made = _ops._gradients(x, scale, bias, mask, norm, "backward_reduce", dx and known["dx"], dscale, dbias)
    return [*made, x.new_empty(known["partial"], dtype=torch.float64)]


@torch.library.register_fake("normc::backward_apply")
def _(x, dy, scale, bias, mask, saved, partials, state, norm):
    known = _ops.facts(norm, "backward_apply", x, scale, bias, mask)
    following = _ops._fields(known["state"], x, norm) if known["writes_state"] else []
    return [_ops._like(x, norm), *following]


@torch.library.register_fake("normc::commit")
def _(partials, state, norm):
    return [field.new_empty(field.shape) for field in state]


# Its name changes between the versions of torch that this serves.
_gather = getattr(collectives, "all_gather_single", None) or collectives.all_gather_tensor


def _exchanged(partial, group, gather):
    """Returns the sums of all ranks: added, or one row for each rank."""
    if gather:
        return _gather(partial, 0, group).contiguous()
    return collectives.all_reduce(partial, "sum", group).contiguous()


class _Waited(torch.autograd.Function):
    """A norm whose outputs need the sums of all ranks. Returns y and the next state."""

    @staticmethod
    def forward(ctx, norm, group, gather, x, scale, bias, mask, *state):
        (partial,) = forward_reduce(x, scale, bias, mask, None, norm)
        out = forward_apply(x, scale, bias, mask, _exchanged(partial, group, gather), state, norm)
        following = out[-len(state) :]
        ctx.norm, ctx.group, ctx.gather = norm, group, gather
        ctx.save_for_backward(x, scale, bias, mask, *out[1 : -len(state)])
        ctx.mark_non_differentiable(*following)
        return (out[0], *following)

    @staticmethod
    @_first_order
    def backward(ctx, kept, dy, *_):
        x, scale, bias, mask, *saved = kept
        wanted = ctx.needs_input_grad[3:6]
        *made, partial = backward_reduce(
            x, dy, scale, bias, mask, saved, None, ctx.norm, False, wanted[1], wanted[2]
        )
        if wanted[0]:
            partials = _exchanged(partial, ctx.group, ctx.gather)
            made = [backward_apply(x, dy, scale, bias, mask, saved, partials, None, ctx.norm)[0], *made]
        return (None, None, None, *_placed(made, wanted), *[None] * (len(ctx.needs_input_grad) - 6))


class _Late(torch.autograd.Function):
    """A norm whose outputs need the state alone. Backward adds the sums of forward and backward to `sums`, and 1 to its
    last element, which counts them."""

    @staticmethod
    def forward(ctx, norm, sums, x, scale, bias, mask, *state):
        y, *saved, partial = forward_reduce(x, scale, bias, mask, state, norm)
        ctx.norm, ctx.sums, ctx.count = norm, sums, len(state)
        ctx.save_for_backward(x, scale, bias, mask, partial, *saved, *(field.clone() for field in state))
        return y

    @staticmethod
    @_first_order
    def backward(ctx, kept, dy):
        x, scale, bias, mask, partial, *rest = kept
        wanted = ctx.needs_input_grad[2:5]
        *made, gradient = backward_reduce(
            x, dy, scale, bias, mask, rest[: -ctx.count], rest[-ctx.count :], ctx.norm, *wanted
        )
        ctx.sums.add_(torch.cat([partial, gradient, gradient.new_ones(1)]))
        return (None, None, *_placed(made, wanted), None, *[None] * ctx.count)


def _is_alone(group):
    return not torch.distributed.is_initialized() or torch.distributed.get_world_size(group) == 1


def _name_of(group):
    return (group or torch.distributed.group.WORLD).group_name


class SyncBatchNorm(_BatchNorm, torch.nn.modules.batchnorm._BatchNorm):
    """As torch.nn.SyncBatchNorm, on any backend of torch.distributed and on CPUs. It is no subclass of that, which
    DistributedDataParallel refuses on CPUs. Ranks may have different numbers of rows, or none. `deterministic`: ranks
    gather all sums and add them in their order, so that statistics have the same bits on all ranks whatever the backend
    does; by default the backend adds. `more`: what this version of torch has beside these, as bias=False."""

    deterministic = False
    _check_input_dim = torch.nn.SyncBatchNorm._check_input_dim
    _check_non_zero_input_channels = torch.nn.SyncBatchNorm._check_non_zero_input_channels

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, process_group=None,
                 device=None, dtype=None, **more):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype, **more)
        self.process_group = process_group

    def forward(self, input):
        if self.momentum is None and self.track_running_stats:
            return torch.nn.SyncBatchNorm.forward(self, input)
        if not self.training or _is_alone(self.process_group):
            return super().forward(input)
        self._check_input_dim(input)
        self._check_features(input)
        state = (
            (self.num_batches_tracked, self.running_mean, self.running_var)
            if self.track_running_stats
            else self._fresh(input)
        )
        group = _name_of(self.process_group)
        y, *following = _Waited.apply(
            self._text(input), group, self.deterministic, input, self.weight, self.bias, None, *state
        )
        if self.track_running_stats:
            with torch.no_grad():
                torch._foreach_copy_(*self._moving(state, following))
        return y

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """As torch's, and of normc: BatchNorm modules of torch and of normc become SyncBatchNorm."""
        converted = torch.nn.SyncBatchNorm.convert_sync_batchnorm(module, process_group)
        for each in converted.modules():
            if type(each) is torch.nn.SyncBatchNorm:
                each.__class__ = cls
                each._normc_widen()
        return converted


class _Ranked:
    """What `synchronise` adds to a Norm."""

    _exact = ("_sums",)

    def __reduce_ex__(self, protocol):
        return _ranked, (type(self).__mro__[2],), self.__getstate__()

    def forward(self, x, mask=None):
        if not self.training or _is_alone(self._group):
            return super().forward(x, mask)
        self._check_features(x)
        if self._sums is not None:
            return self._late(x, mask)
        group = _name_of(self._group)
        y, *following = _Waited.apply(self.text, group, self._gather, x, self.weight, self.bias, mask, *self.state)
        self._store(following)
        return y

    def _late(self, x, mask):
        _refuse_transforms(self.text)
        if _needs_gradient(x, self.weight, self.bias):
            return _Late.apply(self.text, self._sums, x, self.weight, self.bias, mask, *self.state)
        y, *_, partial = forward_reduce(x, self.weight, self.bias, mask, self.state, self.text)
        # As train_carried: the first pass of a checkpoint changes nothing.
        if torch.is_grad_enabled() or self.commit_at == "forward":
            self._sums[: partial.numel()].add_(partial)
        return y

    def _store_sums(self, partials):
        """Makes the state that follows from the sums of all ranks. A rank alone has none: backward made its state."""
        if partials[:, 0].sum() > 0:  # rows
            following = commit_sums(partials[:, :-1].contiguous(), list(self.state), self.text)
            if not partials[:, -1].any():  # no backward ran, so what it makes of the state stays
                fields = _ops.library.facts(self.text, "backward", "f32", "")["state"]
                following = [old if field["written"] else new
                             for field, old, new in zip(fields, self.state, following)]
            self._store(following)
        elif "_next_step" in self._buffers and _is_alone(self._group):
            self._store(self._next)

    @torch.no_grad()
    def _drop(self):
        super()._drop()
        if self._sums is not None:
            self._sums.zero_()


@functools.lru_cache(maxsize=None)
def _class_with(kind):
    """Returns the class that a Norm of this class becomes."""
    return type("Synchronised" + kind.__name__, (_Ranked, kind), {"__module__": kind.__module__, "__doc__": kind.__doc__})


def _ranked(kind):
    """Returns an object of the class that a Norm of this class becomes, for pickle."""
    made = _class_with(kind)
    return made.__new__(made)


def synchronise(model, process_group=None, deterministic=False):
    """Makes statistics over rows those of all ranks of a group, and returns the model.

    BatchNorm modules become SyncBatchNorm. PowerNormV and other norms that need the statistics of the batch
    exchange sums in forward and in backward, as SyncBatchNorm does. PowerNorm and others that divide by the
    running moment exchange nothing there: call `commit(model)` once a step, on all ranks.
    """
    model = SyncBatchNorm.convert_sync_batchnorm(model, process_group)
    for module in model.modules():
        if isinstance(module, SyncBatchNorm):
            module.deterministic = deterministic
        if not isinstance(module, _state.Norm) or isinstance(module, _Ranked) or not module._fields:
            continue
        if module._around:
            raise ValueError(f"{module.text} takes tensors beside x; statistics over ranks are for norms that take none")
        known = _ops.library.facts(module.text, "forward_reduce", "f32", "", False)
        module._group, module._gather, sums = process_group, deterministic, None
        if known["y"]:
            size = _ops.library.facts(module.text, "commit", "f32", "", False)["partial"] + 1
            sums = torch.zeros(size, dtype=torch.float64)
        module.register_buffer("_sums", sums if sums is None else sums.to(module.state[0].device), persistent=False)
        module.__class__ = _class_with(type(module))
    return model


class Exchange:
    """The sums of all layers of a model on their way: an asynchronous collective for each process group, device and
    way of adding. All ranks make it, and begin their other collectives, in one order; errors are those of
    torch.distributed."""

    def __init__(self, model):
        alike = {}
        for module in model.modules():
            if isinstance(module, _Ranked) and module._sums is not None:
                alike.setdefault((module._group, module._gather, module._sums.device), []).append(module)
        self._sent = [(modules, *self._send(modules, group, gather)) for (group, gather, _), modules in alike.items()]

    @staticmethod
    def _send(modules, group, gather):
        """Returns what will hold the sums of all ranks, a row each or one of their sum, and what is to be waited for."""
        sums = torch.cat([module._sums for module in modules])
        if _is_alone(group):
            return sums[None], None
        if not gather:
            return sums[None], torch.distributed.all_reduce(sums, group=group, async_op=True)
        rows = sums.new_empty(torch.distributed.get_world_size(group), sums.numel())
        return rows, torch.distributed.all_gather_into_tensor(rows.view(-1), sums, group=group, async_op=True)

    def parts(self):
        """Waits, and returns each module with the sums of its ranks."""
        parts = []
        for modules, sums, work in self._sent:
            if work is not None:
                work.wait()
            of_each = sums.split([module._sums.numel() for module in modules], dim=1)
            parts += [(module, part.contiguous()) for module, part in zip(modules, of_each)]
        return parts


@torch.no_grad()
def commit(model, scaler=None, exchange=None):
    """Commits the states that backward left, of modules with commit="step" and of synchronised ones.

    Call it once a step, after the optimizer's, on all ranks. `exchange`: an Exchange(model) that was begun after backward, so that
    it runs beside the optimizer. With a torch.amp.GradScaler, call it after its `update()`: a step that the scaler
    skipped is dropped, and nu, which is linear in the gradient, follows the scale.
    """
    parts = dict((exchange or Exchange(model)).parts())
    _state.commit([module for module in model.modules() if module not in parts], scaler)
    for module, partials in parts.items():
        module._commit_step(*_state.scale_of(scaler), functools.partial(module._store_sums, partials))
        module._drop()
