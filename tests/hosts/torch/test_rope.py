"""Pairs of features that are turned behind a norm: q and k of attention."""

import normc.torch as nt
import pytest
import torch

from around import outputs_of, run
from kit import data_of

EPS, HEADS, WIDTH, TOKENS = 1e-6, 3, 8, 5
SHAPE = (2, TOKENS, HEADS * WIDTH)


def module_of(dtype=torch.float32):
    module = nt.Norm("qk_norm_rope", SHAPE[-1], options={"heads": HEADS})
    with torch.no_grad():
        module.weight.copy_(data_of(module.weight.shape))
    return module.to(dtype)


def tables():
    """Returns cosines and sines of the positions of a sequence, for all sequences of a batch: strides of 0."""
    angle = torch.arange(TOKENS)[:, None] / 100 ** (torch.arange(WIDTH // 2) / WIDTH)
    return {"rope_cos": angle.cos().expand(2, -1, -1), "rope_sin": angle.sin().expand(2, -1, -1)}


def formula(x, weight, rope_cos, rope_sin):
    heads = x.unflatten(-1, (HEADS, WIDTH))
    y = heads * (heads.square().mean(-1, keepdim=True) + EPS).rsqrt() * weight.unflatten(0, (HEADS, WIDTH))
    p, q = y.chunk(2, -1)
    c, s = rope_cos[..., None, :], rope_sin[..., None, :]
    return torch.cat((p * c - q * s, q * c + p * s), -1).flatten(-2)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 3e-5), (torch.bfloat16, 2e-2)], ids=str)
def test_is_its_formula(dtype, tolerance):
    module, x = module_of(), data_of(SHAPE, dtype)
    ours = run(lambda x: module(x, **tables()), module, {"x": x})
    wide = module_of(torch.float64)
    exact = {name: value.double() for name, value in tables().items()}
    theirs = run(lambda x: formula(x, wide.weight, **exact), wide, {"x": x.double()})
    for a, b in zip(sum(ours, []), sum(theirs, [])):
        assert a.shape == b.shape and (a.double() - b).abs().max() <= tolerance * b.abs().max().clamp(min=1)


def test_is_compiled_whole():
    module, x = module_of(), data_of(SHAPE)
    f = torch.compile(lambda x, **given: module(x, **given), fullgraph=True, backend="aot_eager")
    ours = run(lambda x: f(x, **tables()), module, {"x": x})
    for a, b in zip(sum(ours, []), sum(run(lambda x: module(x, **tables()), module, {"x": x}), [])):
        assert torch.equal(a, b)


def test_tables_have_no_gradient():
    module, x, given = module_of(), data_of(SHAPE), tables()
    given["rope_cos"] = given["rope_cos"].clone().requires_grad_()
    outputs_of(module(x, **given))[0].sum().backward()
    assert given["rope_cos"].grad is None and module.weight.grad is not None


def test_refuses_tables_of_another_shape_or_type():
    module, x, given = module_of(), data_of(SHAPE), tables()
    with pytest.raises((RuntimeError, ValueError), match=r"rope_cos has the shape \[2, 5, 8\]; qk_norm_rope takes that "
                                                         r"of x with pairs in place of features, \[2, 5, 4\]"):
        module(x, **{**given, "rope_cos": torch.ones(2, TOKENS, WIDTH)})
    with pytest.raises((RuntimeError, ValueError), match="rope_sin has dtype f64; this plan takes f32"):
        module(x, **{**given, "rope_sin": given["rope_sin"].double()})
    with pytest.raises(TypeError, match="qk_norm_rope takes rope_cos, rope_sin beside x; missing is rope_sin"):
        module(x, rope_cos=given["rope_cos"])
