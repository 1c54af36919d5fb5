"""Modules of any norm, with its state as named buffers: PowerNorm, PowerNormV, and norms from a text."""

import warnings

import torch

from . import _around, _autograd, _ops
from .. import _library
from ._modules import StateKept

_COMMITS = ("backward", "forward", "step")
_MEANS_OF_GRADIENTS = frozenset(("nu", "window_nu"))


class Norm(StateKept, torch.nn.Module):
    """A norm of any text.

    name        a norm that is built in, or what `_library.add_norm` returns
    features    the size of the last dimension, or of dimension 1 with layout="channels_first"
    options     what the norm leaves open: {"groups": 32}
    numbers     values that replace those of the text: {"epsilon": 1e-6}
    affine      False: a factor of 1 and a bias of 0
    round       "normalized": forward rounds what the affine takes to the type of x, if that has 16 bits, as the code
                of Llama does; for norms of rows (docs/language.md)
    layout      "features_last": [..., features]; "segments": [batch, positions..., features];
                "channels_first": [batch, features, positions...]
    commit      when the state takes what a training step makes, for norms whose backward changes it:
                "backward"  in backward: a forward under no_grad, or one that checkpointing repeats, changes nothing
                "forward"   in forward, and nu in backward: a layer may run several times in one pass
                "step"      when `normc.torch.commit(model)` is called: what the last backward made

    forward(x, mask=None, **around): mask is True for real rows, where the norm has a padding rule. `around` are the
    tensors that its text has beside x: residual, gate, mod_scale, mod_shift, rope_cos, rope_sin
    (docs/around-a-norm.md). A residual in front of the norm may have another type than x: that of the stream, which
    residual_out and its gradients have too. Returns y, or (y, residual_out) for a norm with a stream. The state is held
    in f32 (f64 for a module in f64), whatever the module is cast to.
    """

    def __init__(self, name, features, *, options=None, numbers=None, round=None, affine=True,
                 layout="features_last", commit="backward", device=None, dtype=None):
        super().__init__()
        if commit not in _COMMITS:
            raise ValueError(f"commit is {commit!r}; known are {', '.join(map(repr, _COMMITS))}")
        shapes = {"features_last": f"*x{features}", "segments": f"*x*x{features}", "channels_first": f"*x{features}x*"}
        if layout not in shapes:
            raise ValueError(f"layout is {layout!r}; known are {', '.join(map(repr, shapes))}")
        self.features, self.commit_at = features, commit
        self.text = _library.text(name, shapes[layout], options, numbers, round)
        kind = torch.float64 if (dtype or torch.get_default_dtype()) == torch.float64 else torch.float32
        self._data = _ops.name_of(kind)
        known = self._known(numbers, layout)
        _library.check_rounding(_ops.library, self.text)
        self._carried = _ops.library.facts(self.text, "backward", self._data, "")["writes_state"]
        self._around = bool(known["around"])
        made = {"device": device, "dtype": dtype}
        for parameter, has in (("weight", known["scale"]), ("bias", known["bias"])):
            value = torch.nn.Parameter(torch.empty(features, **made)) if affine and has else None
            self.register_parameter(parameter, value)
        self._fields = [field["name"] for field in known["state"]]
        for field in known["state"]:
            shape = [{"features": features}.get(axis, axis) for axis in field["shape"] if axis != 1]
            exact = torch.int64 if field["dtype"] == "i64" else kind
            for prefix in ("", "_next_") if self._carried and commit == "step" else ("",):
                value = torch.empty(shape, dtype=exact, device=device)
                self.register_buffer(prefix + field["name"], value, persistent=not prefix)
        self.reset_parameters()

    _data = "f32"  # the type of data that the library is asked about: a text may need f64

    def _known(self, numbers, layout):
        """Returns the facts of a forward; raises if the arguments do not fit the norm."""
        try:
            _library.check_numbers(_ops.library, self.text, numbers, self._data, "")
            return _ops.library.facts(self.text, "forward", self._data, "")
        except _library.Error as error:
            if layout == "features_last" and "write segments x rows x features" in str(error):
                raise ValueError(f"{_library._named(self.text)} needs segments; give layout=\"segments\", for "
                                 "[batch, positions..., features], or \"channels_first\"") from None
            raise

    @property
    def state(self):
        return tuple(self._buffers[name] for name in self._fields)

    @property
    def _next(self):
        """What the last backward made of the state, until commit(model): buffers, so that compiled code writes them."""
        return tuple(self._buffers["_next_" + name] for name in self._fields)

    def _check_features(self, x):
        """Raises if the last dimension of x, of the layouts in which that has features, has another size: operators count
        the last ones together."""
        if not _ops.is_channels_first(self.text) and x.shape[-1:] != (self.features,):
            takes = "batch, positions..." if _ops.is_segmented(self.text) else "..."
            raise RuntimeError(f"x has the shape {list(x.shape)}; {self.text.split('[')[0]} takes [{takes}, {self.features}]")

    def forward(self, x, mask=None, **around):
        self._check_features(x)
        if around or self._around:
            return self._forward_around(x, mask, around)
        if not self._fields:
            return _autograd.normalize(self.text, x, self.weight, self.bias, mask)
        state = self.state
        if not self.training:
            return _autograd.evaluate(self.text, x, self.weight, self.bias, mask, state)
        if self._carried:
            return _autograd.train_carried(self.text, x, self.weight, self.bias, mask, state, self)
        y, following = _autograd.train(self.text, x, self.weight, self.bias, mask, state)
        self._store(following)
        return y

    def _forward_around(self, x, mask, around):
        if self._carried and self.training:
            return _around.train_carried(self.text, x, self.weight, self.bias, mask, around, self.state, self)
        training = self.training or not self._fields
        y, following = _around.apply(self.text, x, self.weight, self.bias, mask, around, self.state, training)
        if following:
            self._store(following)
        return y

    def reset_parameters(self):
        """Makes the parameters and the state those of a new module."""
        start = _ops.library.facts(self.text, "forward", self._data, "")["neutral_scale"]
        for parameter, value in ((self.weight, start), (self.bias, 0.0)):
            if parameter is not None:
                torch.nn.init.constant_(parameter, value)
        self.reset_state()

    def reset_state(self):
        """Makes the state that of a new module."""
        for field in _ops.library.facts(self.text, "forward", self._data, "")["state"]:
            self._buffers[field["name"]].fill_(field["init"])
        self._begin()

    def extra_repr(self):
        return f"{self.text}, commit={self.commit_at!r}" if self._carried else self.text

    def _load_from_state_dict(self, *arguments):
        super()._load_from_state_dict(*arguments)
        self._begin()

    def __setstate__(self, state):
        super().__setstate__(state)
        _library.add_kept(self.text)

    def _store(self, following):
        _autograd.store(self.state, following)

    def _begin(self):
        """Forgets what belongs to the state before: what backward made of it, and the scale of its gradients."""
        self._drop()
        vars(self).pop("_scale", None)

    @torch.no_grad()
    def _drop(self):
        """Forgets what backward made since the last commit."""
        if "_next_step" in self._buffers:
            for name in self._fields:
                self._buffers["_next_" + name] = self._buffers[name].clone()

    def _commit(self, following):
        _autograd.store(self._next if self.commit_at == "step" else self.state, following)

    def _commit_step(self, scale, first, store):
        """Calls `store`, unless the step was skipped: then the scale of gradients fell. Means of gradients follow it."""
        before = getattr(self, "_scale", first)
        if scale >= before:
            store()
        if scale != before:
            for name in _MEANS_OF_GRADIENTS.intersection(self._buffers):
                self._buffers[name].mul_(scale / before)
        self._scale = scale

    def _check_unchanged(self, before, version):
        """Raises if the state is not the one that forward was given."""
        if self.state[0] is not before or before._version != version:
            raise RuntimeError(_ops.CHANGED.format(self.text))


class PowerNormV(Norm):
    """Power normalization with the quadratic mean of the batch: PN-V of the paper (ICML 2020), section 4.1."""

    def __init__(self, num_features, eps=1e-5, alpha_fwd=0.9, affine=True, device=None, dtype=None):
        super().__init__("power_norm_v", num_features, numbers={"decay": alpha_fwd, "epsilon": eps}, affine=affine,
                         device=device, dtype=dtype)


class PowerNorm(Norm):
    """Power normalization: PN of the paper (ICML 2020), Algorithm 2. As the released code, MaskPowerNorm, where
    `heads` or `warmup_iters` is given: with group scaling of `heads` groups in front, and quadratic means of the
    batch during the first `warmup_iters` steps. Loads its checkpoints (running_phi, ema_gz, iters).
    """

    def __init__(self, num_features, eps=1e-5, alpha_fwd=0.9, alpha_bwd=0.9, heads=None, warmup_iters=None,
                 affine=True, commit="backward", device=None, dtype=None):
        if heads is not None and heads < 1:
            raise ValueError(f"heads is {heads}; it must be at least 1")
        self.alpha_bwd = alpha_bwd
        numbers = {"backward_decay": alpha_bwd, "decay": alpha_fwd, "epsilon": eps}
        released = self._released = heads is not None or warmup_iters is not None
        if released:
            numbers["warmup_steps"] = float(warmup_iters or 0)
        super().__init__("power_norm_released" if released else "power_norm", num_features,
                         options={"heads": heads or 1} if released else None, numbers=numbers, affine=affine,
                         commit=commit, device=device, dtype=dtype)

    def _load_from_state_dict(self, state_dict, prefix, *rest):
        if prefix + "running_phi" in state_dict:
            absent = [name for name in ("ema_gz", "iters") if prefix + name not in state_dict]
            if absent:
                raise RuntimeError(f"the checkpoint has {prefix}running_phi of the released MaskPowerNorm, but not its "
                                   f"{' and '.join(prefix + name for name in absent)}; save the whole module again")
            if not self._released:
                warnings.warn(f"the checkpoint has {prefix}running_phi of the released MaskPowerNorm, which scales groups of "
                              "features first, and this PowerNorm does not; give it heads=, the number of groups")
            steps = state_dict.pop(prefix + "iters")
            gradient = state_dict.pop(prefix + "ema_gz").reshape(-1).double()
            state_dict[prefix + "psi2"] = state_dict.pop(prefix + "running_phi").reshape(-1)
            # The released code keeps the mean of Lambda / (1 - alpha), and starts to use it after one step.
            state_dict[prefix + "nu"] = ((1 - self.alpha_bwd) * gradient).to(self.nu.dtype)
            state_dict[prefix + "step"] = steps.reshape(()).to(torch.int64)
            state_dict.pop(prefix + "running_mu", None)
        super()._load_from_state_dict(state_dict, prefix, *rest)


def norm(path, features, **arguments):
    """Returns a module of the norm of a .norm file, with the arguments of `Norm`. The compiler has to be installed:
    it compiles the norm at the first use, in a process of its own, into the user's cache."""
    return Norm(_library.add_norm(path), features, **arguments)


def scale_of(scaler):
    """Returns the scale of gradients now, and the one before the first update. Raises before the scaler's `update()` of
    the step: it alone tells that the step was skipped."""
    steps = getattr(scaler, "_per_optimizer_states", {}).values()
    if any(step["stage"].name != "READY" for step in steps):
        raise RuntimeError("normc.torch.commit was called before scaler.update(); call it after that, which changes the "
                           "scale where the step was skipped")
    scale = scaler.get_scale() if scaler is not None else 1.0
    return scale, getattr(scaler, "_init_scale", scale)


def commit(modules, scaler=None):
    """Commits the states that backward left in those modules that have commit="step"."""
    for module in modules:
        if isinstance(module, Norm) and "_next_step" in module._buffers:
            module._commit_step(*scale_of(scaler), lambda module=module: module._store(module._next))
            module._drop()
