"""round="normalized": x0 is rounded to the type of x in front of the weight, as the code of Llama does."""

import normc.torch as nt
import pytest
import torch

from kit import data_of, same

EPS = 1e-6


def llama(x, weight, eps=EPS):
    """transformers.models.llama.modeling_llama.LlamaRMSNorm"""
    h = x.to(torch.float32)
    h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps)
    return weight * h.to(x.dtype)


def module_of(dtype, **options):
    module = nt.Norm("rms_norm", 96, numbers={"epsilon": EPS}, **options).to(dtype)
    with torch.no_grad():
        module.weight.copy_(data_of((96,), dtype, seed=9))
    return module


def unequal(a, b):
    return (a != b).double().mean().item()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_is_the_formula_of_llama(dtype):
    x, module, plain = data_of((64, 96), dtype), module_of(dtype, round="normalized"), module_of(dtype)
    wanted = llama(x, module.weight)
    # An error of x0 decides at a tie alone; without the option a third of the elements differ.
    assert unequal(module(x), wanted) < 0.005 < 0.05 < unequal(plain(x), wanted)
    assert (module(x) - wanted).abs().max() <= torch.finfo(dtype).eps * wanted.abs().max()
    with torch.no_grad():
        assert torch.equal(module(x), nt.functional.rms_norm(x, (96,), module.weight, EPS, round="normalized"))


def test_gradients_are_those_without_it():
    x, dy = data_of((7, 96), torch.bfloat16), data_of((7, 96), torch.bfloat16, seed=6)
    made = []
    for module in (module_of(torch.bfloat16, round="normalized"), module_of(torch.bfloat16)):
        given = x.clone().requires_grad_()
        made.append(torch.autograd.grad(module(given), (given, module.weight), dy))
    assert same(*made)


def test_data_of_f32_are_not_rounded():
    x = data_of((7, 96))
    assert torch.equal(module_of(torch.float32, round="normalized")(x), module_of(torch.float32)(x))


def test_goes_with_a_residual_and_a_stream():
    x, residual = data_of((64, 96), torch.bfloat16), data_of((64, 96), seed=6)
    module = nt.Norm("rms_norm_residual", 96, numbers={"epsilon": EPS}, round="normalized", dtype=torch.bfloat16)
    y, h = module(x, residual=residual)
    assert torch.equal(h, x.float() + residual)
    normalized = (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + EPS)).bfloat16()
    assert unequal(y, module.weight * normalized) < 0.005


def test_is_compiled_whole():
    module, x = module_of(torch.bfloat16, round="normalized"), data_of((7, 96), torch.bfloat16)
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x), module(x)) and "{round=normalized}" in repr(module)


@pytest.mark.parametrize("name, round, said", [
    ("rms_norm", "up", "round is 'up'; known are None and 'normalized'"),
    ("l2_norm", "normalized", r"round=normalized needs an affine, and 'l2_norm' has none \[P16\]; leave round out"),
    ("batch_norm", "normalized", r"needs 'reduce features', and 'batch_norm' has 'reduce rows' \[P16\]"),
])
def test_refuses_a_rounding_that_the_norm_lacks(name, round, said):
    with pytest.raises(ValueError, match=said):
        nt.Norm(name, 96, round=round)
