"""Norms that quantize: codes in place of y, and their scales."""

import jax
import jax.numpy as jnp
import normc.jax as nj
import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("compiled_once")

SHAPE = (2, 5, 256)


def data(seed, dtype=jnp.float32):
    return jnp.asarray(0.5 + np.random.default_rng(seed).standard_normal(SHAPE), dtype)


def exact(x, residual):
    h = np.asarray(x, "float64") + np.asarray(residual, "float64")
    return h / np.sqrt((h * h).mean(-1, keepdims=True) + 1e-6)


def close(codes, scale, y, largest):
    """Codes of equal parts of a row, each with a scale, which has the code `largest` for the largest value. Two codes
    near a value are at most a step apart, or an eighth of the value for floats."""
    parts = y.reshape(*y.shape[:-1], scale.size // 10, -1)
    size = np.asarray(scale, "float64").reshape(*parts.shape[:-1], 1)
    step = size if codes.dtype == jnp.int8 else np.maximum(np.abs(parts) / 8, size / 512)
    assert np.allclose(size, np.abs(parts).max(-1, keepdims=True) / largest, rtol=1e-5, atol=0)
    assert (np.abs(np.asarray(codes, "float64").reshape(parts.shape) * size - parts) <= 0.501 * step).all()


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16], ids=["f32", "bf16"])
def test_codes_of_rows(dtype):
    norm, x, residual = nj.Norm("rms_norm_residual_int8", SHAPE[-1]), data(3, dtype), data(4, dtype)
    for f in (norm, jax.jit(norm.__call__)):
        codes, stream, scale = f(x, residual=residual)
        assert codes.dtype == jnp.int8 and scale.dtype == jnp.float32 and scale.shape == SHAPE[:-1]
        assert stream.dtype == dtype
        close(codes, scale, exact(x, residual), 127)


def test_codes_of_blocks():
    norm, x, residual = nj.Norm("rms_norm_residual_e4m3_block", SHAPE[-1]), data(3), data(4)
    codes, _, scale = norm(x, residual=residual)
    assert codes.dtype == jnp.float8_e4m3fn and scale.shape == (2, 5, 2)
    close(codes, scale, exact(x, residual), 448)
    row, _, one = norm(x[0, 0], residual=residual[0, 0])
    assert one.shape == (2,) and (np.asarray(row, "float32") == np.asarray(codes[0, 0], "float32")).all()


def test_one_scale_that_is_given(tmp_path):
    (tmp_path / "mine.norm").write_text("norm mine from rms_norm {\n  quantize int8(per = tensor)\n}\n")
    norm, x = nj.norm(tmp_path / "mine.norm", SHAPE[-1]), data(3)
    codes = norm(x, quant_scale=0.05 * jnp.ones((), jnp.float32))
    assert codes.dtype == jnp.int8 and (np.abs(codes * 0.05 - exact(x, 0 * x)) <= 0.0251).all()


def test_vmap_is_a_loop():
    norm, x, residual = nj.Norm("rms_norm_residual_int8", SHAPE[-1]), data(3), data(4)
    many = jnp.stack([x, 2 * x, x - 1])
    together = jax.vmap(lambda x: norm(x, residual=residual))(many)
    for at in range(3):
        for a, b in zip(together, norm(many[at], residual=residual), strict=True):
            assert (a[at] == b).all()


def test_codes_have_no_gradient():
    norm, x, residual = nj.Norm("rms_norm_residual_int8", SHAPE[-1]), data(3), data(4)
    with pytest.raises(TypeError, match="rms_norm_residual_int8 quantizes its output, and codes have no gradient"):
        jax.grad(lambda x: norm(x, residual=residual)[2].sum())(x)
