"""The functions of tvm-ffi with arrays of NumPy and tensors of torch."""

import os

import normc
import normc.tvm
import numpy as np
import pytest
import torch

norms = normc.tvm.load()
LN = "layer_norm[*x96] epsilon=1e-05"


def test_infer_of_numpy_arrays_is_the_formula():
    x = np.random.default_rng(1).normal(1, 2, (5, 7, 96)).astype("float32")
    scale, bias = np.linspace(0.5, 1.5, 96, dtype="float32"), np.linspace(-1, 1, 96, dtype="float32")
    y = np.empty_like(x)
    norms.infer(LN, x, scale, bias, None, y)
    expected = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale + bias
    assert abs(y - expected).max() < 3e-5
    row = np.empty(96, "float32")
    norms.infer(LN, x[0, 0], scale, bias, None, row)
    assert (row == y[0, 0]).all()


@pytest.mark.parametrize("dtype, bound", [(torch.float64, 1e-12), (torch.float32, 3e-5), (torch.bfloat16, 3e-2)])
def test_forward_and_backward_of_torch_tensors_are_those_of_torch(dtype, bound):
    torch.manual_seed(1)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    x, dy = torch.randn(33, 96, dtype=dtype), torch.randn(33, 96, dtype=dtype)
    scale, bias = torch.randn(96, dtype=wide), torch.randn(96, dtype=wide)
    given = [t.to(wide).requires_grad_() for t in (x, scale, bias)]
    expected = torch.nn.functional.layer_norm(given[0], (96,), *given[1:])
    expected.backward(dy.to(wide))
    y, dx = torch.empty_like(x), torch.empty_like(x)
    mean, rstd = torch.empty(33, dtype=wide), torch.empty(33, dtype=wide)
    dscale, dbias = torch.empty_like(scale), torch.empty_like(bias)
    norms.forward(LN, x, scale, bias, None, y, mean, rstd)
    norms.backward(LN, x, dy, scale, None, None, mean, rstd, dx, dscale, dbias)
    for ours, theirs in zip((y, dx, dscale, dbias), (expected, *(t.grad for t in given)), strict=True):
        assert (ours.double() - theirs.double()).abs().max() <= bound * theirs.double().abs().max()


def test_a_state_and_strides():
    text = "power_norm[*x96] decay=0.5"
    x = torch.randn(32, 192)[:, :96]
    scale, bias = torch.ones(96), torch.zeros(96)
    step, psi2, nu = torch.zeros((), dtype=torch.int64), torch.ones(96), torch.zeros(96)
    y, rstd, second = torch.empty(32, 96), torch.empty(96), torch.empty(96)
    norms.forward(text, x, scale, bias, None, step, psi2, y, rstd, second, step, psi2)
    assert step == 1 and torch.allclose(psi2, 0.5 + 0.5 * (x * x).mean(0))
    assert torch.allclose(y, x / (1 + 1e-5) ** 0.5, atol=1e-5)
    dx, dscale, dbias = torch.empty_like(y), torch.empty(96), torch.empty(96)
    norms.backward(text, x, torch.randn(32, 96), scale, None, None, rstd, second, nu, dx, dscale, dbias, nu)
    assert nu.abs().max() > 0


def test_a_row_with_a_mask(tmp_path):
    normc.compiler(os.environ["NORMC_TEST_COMPILER"], str(tmp_path))
    x, y = np.arange(96, dtype="float32"), np.ones(96, "float32")
    norms.infer(LN, x, np.ones(96, "float32"), np.zeros(96, "float32"), np.array(False), y)
    normc.compiler("")
    assert (y == 0).all()


@pytest.mark.parametrize("text, said", [
    ("rms_norm[*x96] epsilon=1e-06", "rms_norm has no bias, but one is given"),
    ("layer_norm[512x96]", "an axis beside its features is '512', and has to be '\\*'"),
    ("layer_norm[*x96] epsilon=1 epsilon=2", "'epsilon' is given twice"),
    ("layer_norm[*x96", "\\] is missing"),
    ("[*x96]", "it begins with no name"),
    ("layer_norm[96]", "its shape has 1 axes"),
    ("layer_norm[*x0]", "its number of features is '0'"),
    ("layer_norm[*x96]now", "after the shape stands 'now'"),
    ("layer_norm[*x96] epsilon", "'epsilon' has no value"),
])
def test_refuses_a_text(text, said):
    row = np.ones(96, "float32")
    with pytest.raises(ValueError, match=said):
        norms.infer(text, np.ones((4, 96), "float32"), row, row, None, np.ones((4, 96), "float32"))


@pytest.mark.parametrize("arguments, said", [
    ((np.ones((4, 95), "f"), np.ones(96, "f"), np.ones(96, "f"), None, np.ones((4, 95), "f")), "x has"),
    ((np.ones((4, 96), "f"), np.ones(48, "f"), np.ones(96, "f"), None, np.ones((4, 96), "f")), "scale has"),
    ((np.ones((4, 96), "f"), None, None, None, np.ones((4, 96), "f")), "scale is missing"),
    ((np.ones((4, 96), "f"), np.ones(96, "f"), np.ones(96, "f"), None), "takes 1 tensors after mask, not 0"),
    ((np.ones((4, 96), "f"), np.ones(96, "f"), np.ones(96, "f"), None, None), "a result is missing"),
    ((np.ones((4, 96), "f"), 1, None, None), "argument 3 is neither a tensor nor None"),
    ((), "a norm takes a text, x, scale"),
])
def test_refuses_tensors_that_do_not_fit(arguments, said):
    with pytest.raises(ValueError, match=said):
        norms.infer(LN, *arguments)


@pytest.mark.parametrize("first", [3, np.ones(96, "f")])
def test_refuses_what_is_no_text(first):
    with pytest.raises(ValueError, match="the first argument is not the text of a norm"):
        norms.infer(first, np.ones((4, 96), "f"))


def test_a_stream_of_residuals(tmp_path):
    normc.compiler(os.environ["NORMC_TEST_COMPILER"], str(tmp_path))
    text = "rms_norm_residual[*x96] epsilon=1e-05"
    torch.manual_seed(1)
    x, residual, dy, dh = (torch.randn(5, 96) for _ in range(4))
    scale = torch.randn(96)
    given = [t.clone().requires_grad_() for t in (x, residual, scale)]
    stream = given[0] + given[1]
    expected = torch.nn.functional.rms_norm(stream, (96,), given[2], 1e-5)
    torch.autograd.backward((expected, stream), (dy, dh))
    y, h, dx, dscale, rstd = *(torch.empty_like(x) for _ in range(3)), torch.empty_like(scale), torch.empty(5)
    norms.forward(text, x, scale, None, None, residual, y, h, rstd)
    norms.backward(text, x, dy, scale, None, None, h, dh, rstd, dx, dscale)
    normc.compiler("")
    for ours, theirs in zip((y, h, dx, dx, dscale), (expected, stream, *(t.grad for t in given)), strict=True):
        assert (ours - theirs).abs().max() <= 3e-5 * theirs.abs().max()


def test_a_stream_of_another_type(tmp_path):
    normc.compiler(os.environ["NORMC_TEST_COMPILER"], str(tmp_path))
    text = "rms_norm_residual[*x96]{stream=f32} epsilon=1e-05"
    torch.manual_seed(1)
    x, dy = torch.randn(5, 96, dtype=torch.bfloat16), torch.randn(5, 96, dtype=torch.bfloat16)
    residual, dh, scale = torch.randn(5, 96), torch.randn(5, 96), torch.randn(96)
    stream = (x.float() + residual).requires_grad_()
    expected = torch.nn.functional.rms_norm(stream, (96,), scale, 1e-5)
    torch.autograd.backward((expected, stream), (dy.float(), dh))
    y, dx, h, dresidual, rstd = torch.empty_like(x), torch.empty_like(x), *torch.empty(2, 5, 96), torch.empty(5)
    norms.forward(text, x, scale, None, None, residual, y, h, rstd)
    norms.backward(text, x, dy, scale, None, None, h, dh, rstd, dx, dresidual, torch.empty(96))
    normc.compiler("")
    assert torch.equal(h, stream) and (dresidual - stream.grad).abs().max() <= 3e-5 * stream.grad.abs().max()
    assert (y - expected).abs().max() <= 1e-2 * expected.abs().max() and torch.equal(dx, dresidual.bfloat16())
