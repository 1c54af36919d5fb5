"""Norms with tensors around them, for tests: modules, inputs, and what each norm is as a formula of torch."""

import dataclasses
from typing import Any, Callable

import normc.torch as nt
import torch
from torch.nn.functional import batch_norm, layer_norm, relu, silu

from kit import data_of

EPS = 1e-5


def rms(x, weight=1.0):
    return x * (x.square().mean(-1, keepdim=True) + EPS).rsqrt() * weight


@dataclasses.dataclass
class Case:
    """A norm, the shapes of x and of what is around, and its formula: of x, weight, bias and these."""

    name: str
    shape: tuple
    around: dict
    formula: Callable
    options: Any = None
    layout: str = "features_last"

    def module(self, dtype=torch.float32):
        torch.manual_seed(3)
        features = self.shape[1] if self.layout == "channels_first" else self.shape[-1]
        module = nt.Norm(self.name, features, options=self.options, layout=self.layout, numbers={"epsilon": EPS})
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.normal_(1, 0.3)
        return module.double() if dtype == torch.float64 else module  # scale and bias stay in f32

    def inputs(self, dtype=torch.float32, seed=5):
        shapes = {"x": self.shape, **self.around}
        return {name: data_of(shape, dtype, seed + at) for at, (name, shape) in enumerate(shapes.items())}

    def expected(self, module, x, **around):
        return self.formula(x, module.weight, module.bias, **around)


def _residual(x, weight, bias, residual):
    return rms(x + residual, weight), x + residual


def _zero(x, weight, bias, gate, residual, mod_scale, mod_shift):
    h = residual + gate[:, None] * x
    return (1 + mod_scale[:, None]) * layer_norm(h, h.shape[-1:], eps=EPS) + mod_shift[:, None], h


def _gated(x, weight, bias, gate):
    return rms((x * silu(gate)).unflatten(-1, (4, -1))).flatten(-2) * weight


def _tail(x, weight, bias, residual):
    return relu(batch_norm(x, None, None, weight, bias, True, eps=EPS) + residual)


ROWS, IMAGES = (2, 5, 24), (3, 8, 4, 2)
CASES = {case.name: case for case in (
    Case("rms_norm_residual", ROWS, {"residual": ROWS}, _residual),
    Case("adaptive_layer_norm_zero", ROWS,
         {"residual": ROWS, "gate": (2, 24), "mod_scale": (2, 24), "mod_shift": (2, 24)}, _zero, layout="segments"),
    Case("gated_rms_norm", ROWS, {"gate": ROWS}, _gated, options={"groups": 4}),
    Case("delta_gated_rms_norm", ROWS, {"gate": ROWS}, lambda x, weight, bias, gate: rms(x, weight) * silu(gate)),
    Case("gemma_sandwich", ROWS, {"residual": ROWS}, lambda x, weight, bias, residual: rms(x, 1 + weight) + residual),
    Case("resnet_tail", IMAGES, {"residual": IMAGES}, _tail, layout="channels_first"),
)}
STREAMS = [name for name, case in CASES.items() if name in ("rms_norm_residual", "adaptive_layer_norm_zero")]


def outputs_of(made):
    return list(made) if isinstance(made, tuple) else [made]


def run(call, module, inputs, use=(0, 1)):
    """Returns the outputs of a call, then the gradients of a loss of those in `use`: of inputs and of parameters."""
    inputs = {name: value.detach().clone().requires_grad_() for name, value in inputs.items()}
    made = outputs_of(call(**inputs))
    loss = sum((y * data_of(y.shape, y.dtype, 20 + at).to(y.device)).sum() for at, y in enumerate(made) if at in use)
    every = [*inputs.values(), *module.parameters()]
    return [y.detach() for y in made], list(torch.autograd.grad(loss, every, materialize_grads=True))


def exact(case, inputs, **options):
    """Returns what `run` does, of the formula in f64."""
    module = case.module(torch.float64)
    return run(lambda **given: case.expected(module, **given), module,
               {name: value.double() for name, value in inputs.items()}, **options)


def close(ours, theirs, tolerance):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert a.shape == b.shape and (a.to(b.device).double() - b).abs().max() <= tolerance * b.abs().max().clamp(min=1)
