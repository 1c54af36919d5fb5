"""Modules that subclass those of torch.nn: the same arguments, parameters, buffers and state_dict.

A module that cannot be computed by normc as torch does it (running statistics of instances, those with momentum=None)
falls back to torch's own forward; `replace` reports these.
"""

import warnings

import torch

from . import _autograd
from .functional import _check_shape, batch_text, group_norm, instance_norm, rms_epsilon, row_text


def _fits(x, shape):
    return tuple(x.shape[-len(shape) :]) == tuple(shape)


class LayerNorm(torch.nn.LayerNorm):
    def _normc_residual_form(self, x):
        """Returns the text of the norm of x and a residual, if the norm takes x."""
        shape = self.normalized_shape
        return row_text("layer_norm_residual", shape, self.eps) if _fits(x, shape) else None

    def forward(self, input):
        _check_shape(input, self.normalized_shape)
        text = row_text("layer_norm", self.normalized_shape, self.eps)
        return _autograd.normalize(text, input, self.weight, self.bias)

    _normc_forward_of_form = forward  # which `_normc_residual_form` stands for; a class below may have another


class RMSNorm(torch.nn.RMSNorm):
    def _text(self, name, x):
        return row_text(name, self.normalized_shape, rms_epsilon(x) if self.eps is None else self.eps)

    def _normc_residual_form(self, x):
        return self._text("rms_norm_residual", x) if _fits(x, self.normalized_shape) else None

    def forward(self, x):  # not `input`: torch's has this name
        _check_shape(x, self.normalized_shape)
        return _autograd.normalize(self._text("rms_norm", x), x, self.weight)

    _normc_forward_of_form = forward


class GroupNorm(torch.nn.GroupNorm):
    def forward(self, input):
        return group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class _InstanceNorm:
    def forward(self, input):
        if self.track_running_stats:
            return super().forward(input)
        self._check_input_dim(input)
        batched = input if input.dim() == self._get_no_batch_dim() + 1 else input[None]
        self._check_channels(batched)
        y = instance_norm(batched, weight=self.weight, bias=self.bias, eps=self.eps)
        return y if batched is input else y[0]

    def _check_channels(self, input):
        if input.shape[1] == self.num_features:
            return
        if self.affine:
            raise ValueError(f"expected input's size at dim=1 to match num_features ({self.num_features}), "
                             f"but got {input.shape[1]}")
        if not torch.compiler.is_compiling():  # it would break the graph
            warnings.warn(f"the input has {input.shape[1]} channels and num_features is {self.num_features}, which a module "
                          "with affine=False does not use; make it the number of channels", stacklevel=3)


class InstanceNorm1d(_InstanceNorm, torch.nn.InstanceNorm1d):
    pass


class InstanceNorm2d(_InstanceNorm, torch.nn.InstanceNorm2d):
    pass


class InstanceNorm3d(_InstanceNorm, torch.nn.InstanceNorm3d):
    pass


class StateKept:
    """Keeps the buffers of a state in the type of its statistics when a module is made, cast or loaded: f32, and f64
    where the module is in f64. A state in bf16 would lose what a step adds to it. Buffers of `_exact` keep their
    type."""

    _keeps = True
    _exact = ()

    def register_buffer(self, name, tensor, persistent=True):
        super().register_buffer(name, tensor, persistent)
        self._normc_widen()

    def _load_from_state_dict(self, *arguments):
        super()._load_from_state_dict(*arguments)
        self._normc_widen()  # assign=True takes tensors as they are

    def _normc_widen(self):
        """Makes the buffers of a state f32 that have 16 bits."""
        for name, buffer in self._buffers.items():
            if self._keeps and buffer is not None and buffer.dtype in (torch.bfloat16, torch.float16):
                self._buffers[name] = buffer.float()

    def _apply(self, fn, recurse=True):
        if not self._keeps:
            return super()._apply(fn, recurse)

        def kept(tensor):
            cast = fn(tensor)
            if id(tensor) in state and cast.is_floating_point() and not tensor.is_floating_point():
                return tensor.to(cast.device)  # module.type() casts a step, too
            if id(tensor) not in state or cast.dtype in (torch.float64, tensor.dtype) or not cast.is_floating_point():
                return cast
            return tensor.to(cast.device, state[id(tensor)])

        state = {id(buffer): buffer.dtype if name in self._exact else torch.float32
                 for name, buffer in self._buffers.items() if buffer is not None}
        return super()._apply(kept, recurse)


class _BatchNorm(StateKept):
    @property
    def _keeps(self):
        return self.momentum is not None

    def _is_torchs(self):
        """True if torch computes the module: its statistics are a plain mean, or a part of them is None."""
        state = (self.num_batches_tracked, self.running_mean, self.running_var)
        return self.track_running_stats and (not self._keeps or any(each is None for each in state))

    def forward(self, input):
        if self._is_torchs():
            return super().forward(input)
        self._check_input_dim(input)
        self._check_features(input)
        norm = self._text(input)
        training = self.training or self.running_mean is None
        if not training:
            state = (self.num_batches_tracked, self.running_mean, self.running_var)
            return _autograd.evaluate(norm, input, self.weight, self.bias, None, state)
        self._check_count(input)
        if not (self.training and self.track_running_stats):
            return _autograd.train(norm, input, self.weight, self.bias, None, self._fresh(input))[0]
        state = (self.num_batches_tracked, self.running_mean, self.running_var)
        y, following = _autograd.train(norm, input, self.weight, self.bias, None, state)
        _autograd.store(*self._moving(state, following))
        return y

    @property
    def _decay(self):
        return 1 - (self.momentum or 0.0)

    def _text(self, input):
        if self._keeps and not 0 <= self.momentum <= 1:
            raise ValueError(f"the momentum is {self.momentum}; normc takes one from 0 to 1")
        # A decay is below 1. With a momentum of 0 that of the text is free: `_moving` leaves the statistics out.
        return batch_text(self.num_features, input.dim() > 2, self._decay if self._decay != 1 else 0.0, self.eps)

    def _moving(self, state, following):
        """Returns the fields of a state that a step changes, and their next values: with a momentum of 0 the number of
        steps alone."""
        return (state, following) if self._decay != 1 else (state[:1], following[:1])

    def _fresh(self, input):
        kind = torch.float64 if input.dtype == torch.float64 else torch.float32
        # Two tensors: torch.compile takes no Function that is given one twice.
        mean, var = (torch.zeros(self.num_features, dtype=kind, device=input.device) for _ in range(2))
        return torch.zeros((), dtype=torch.int64, device=input.device), mean, var

    def _check_features(self, input):
        if input.shape[1] != self.num_features:
            takes = f"[batch, {self.num_features}, positions...]" if input.dim() > 2 else f"[batch, {self.num_features}]"
            raise RuntimeError(f"the input has the shape {list(input.shape)}; {type(self).__name__} takes {takes}")

    def _check_count(self, input):
        if input.numel() == input.shape[1]:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.size()}")


class BatchNorm1d(_BatchNorm, torch.nn.BatchNorm1d):
    pass


class BatchNorm2d(_BatchNorm, torch.nn.BatchNorm2d):
    pass


class BatchNorm3d(_BatchNorm, torch.nn.BatchNorm3d):
    pass
