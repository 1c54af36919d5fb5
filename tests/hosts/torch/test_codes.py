"""Norms that quantize: codes in place of y, and their scales."""

import normc.torch as nt
import pytest
import torch

from around import rms
from kit import data_of

EPS, SHAPE = 1e-6, (2, 5, 256)
TYPES = {"int8": (torch.int8, 127), "e4m3": (torch.float8_e4m3fn, 448)}


def values_of(codes, scale):
    """Returns what codes stand for; each scale is that of equal parts of a row."""
    scale = scale.double() if scale.dim() == codes.dim() else scale.double().unsqueeze(-1)
    return (codes.double().unflatten(-1, (scale.shape[-1], -1)) * scale.unsqueeze(-1)).flatten(-2)


def steps_of(y, codes, scale):
    """Returns the largest distance between two codes near each value: a step, or an eighth of it for floats."""
    size = scale.double() if scale.dim() == codes.dim() else scale.double().unsqueeze(-1)
    size = size.repeat_interleave(y.shape[-1] // size.shape[-1], -1)
    return size if codes.dtype == torch.int8 else torch.maximum(y.abs() / 8, size / 512)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_codes_of_rows(dtype):
    module = nt.Norm("rms_norm_residual_int8", SHAPE[-1]).requires_grad_(False)
    x, residual = data_of(SHAPE, dtype), data_of(SHAPE, dtype, seed=6)
    codes, stream, scale = module(x, residual=residual)
    y = rms(x.double() + residual.double(), module.weight.double())
    assert codes.dtype == torch.int8 and codes.shape == x.shape
    assert scale.dtype == torch.float32 and scale.shape == x.shape[:-1]
    assert torch.allclose(scale.double(), y.abs().amax(-1) / 127, rtol=1e-5)
    assert ((values_of(codes, scale) - y).abs() <= 0.501 * steps_of(y, codes, scale)).all()
    assert torch.equal(stream, (x.double() + residual.double()).to(dtype))


def test_codes_of_blocks():
    module = nt.Norm("rms_norm_residual_e4m3_block", SHAPE[-1]).requires_grad_(False)
    x, residual = data_of(SHAPE), data_of(SHAPE, seed=6)
    codes, _, scale = module(x, residual=residual)
    y = rms(x.double() + residual.double(), module.weight.double())
    assert codes.dtype == torch.float8_e4m3fn and scale.shape == (2, 5, 2)
    assert ((values_of(codes, scale) - y).abs() <= 0.501 * steps_of(y, codes, scale)).all()
    row, stream, one = module(x[0, 0], residual=residual[0, 0])
    assert row.shape == stream.shape == (256,) and one.shape == (2,)
    assert torch.equal(row.view(torch.int8), codes[0, 0].view(torch.int8)) and torch.equal(one, scale[0, 0])


@pytest.fixture
def made(tmp_path):
    def make(clause):
        (tmp_path / "mine.norm").write_text(f"norm mine from layer_norm {{\n  {clause}\n}}\n")
        return nt.norm(tmp_path / "mine.norm", SHAPE[-1]).requires_grad_(False)
    return make


def test_one_scale_that_is_given(made):
    module, x, scale = made("quantize int8(per = tensor)"), data_of(SHAPE), torch.tensor(0.05)
    y = torch.nn.functional.layer_norm(x.double(), SHAPE[-1:], eps=1e-5)
    codes = module(x, quant_scale=scale)
    assert codes.dtype == torch.int8 and ((codes * 0.05 - y).abs() <= 0.0251).all()


def test_scales_that_are_powers_of_two(made):
    module, x = made("quantize e4m3(per = block, size = 32, scale = power_of_two)"), data_of(SHAPE)
    try:
        codes, scale = module(x)
    except RuntimeError as error:  # torch 2.10
        assert "this torch gives extensions no float8_e8m0fnu" in str(error)
        return
    assert scale.dtype == torch.float8_e8m0fnu and scale.shape == (2, 5, 8)
    y = torch.nn.functional.layer_norm(x.double(), SHAPE[-1:], eps=1e-5)
    scale = scale.float()
    assert ((values_of(codes, scale) - y).abs() <= 0.501 * steps_of(y, codes, scale)).all()


def test_is_compiled_whole():
    module = nt.Norm("rms_norm_residual_int8", SHAPE[-1]).requires_grad_(False)
    x, residual = data_of(SHAPE), data_of(SHAPE, seed=6)
    f = torch.compile(lambda x, residual: module(x, residual=residual), fullgraph=True, backend="aot_eager")
    for a, b in zip(f(x, residual), module(x, residual=residual), strict=True):
        assert a.dtype == b.dtype and torch.equal(a, b)


def test_codes_have_no_gradient():
    module, x, residual = nt.Norm("rms_norm_residual_int8", SHAPE[-1]), data_of(SHAPE), data_of(SHAPE, seed=6)
    with pytest.raises(TypeError, match="rms_norm_residual_int8 quantizes its output, and codes have no gradient: call "
                                        "it without gradients, and train the norm without 'quantize'"):
        module(x, residual=residual)
    with torch.no_grad():
        assert len(module(x, residual=residual)) == 3
