"""Pairs of features that are turned behind a norm: q and k of attention."""

import jax
import jax.numpy as jnp
import normc.jax as nj
import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("compiled_once")

EPS, HEADS, WIDTH, TOKENS = 1e-6, 3, 8, 5
SHAPE = (2, TOKENS, HEADS * WIDTH)


def given(dtype=jnp.float32):
    """Returns the norm, x, its scale, and the tables."""
    random = np.random.default_rng(3)
    angle = np.arange(TOKENS)[:, None] / 100 ** (np.arange(WIDTH // 2) / WIDTH)
    tables = {name: jnp.broadcast_to(jnp.asarray(of(angle), jnp.float32), (2, *angle.shape))
              for name, of in (("rope_cos", np.cos), ("rope_sin", np.sin))}
    x = jnp.asarray(0.5 + random.standard_normal(SHAPE), dtype)
    scale = jnp.asarray(1 + 0.3 * random.standard_normal(SHAPE[-1]), jnp.float32)
    return nj.Norm("qk_norm_rope", SHAPE[-1], options={"heads": HEADS}), x, scale, tables


def formula(x, scale, rope_cos, rope_sin):
    heads = x.reshape(*x.shape[:-1], HEADS, WIDTH)
    y = heads * jax.lax.rsqrt(jnp.mean(heads * heads, -1, keepdims=True) + EPS) * scale.reshape(HEADS, WIDTH)
    p, q = jnp.split(y, 2, -1)
    c, s = rope_cos[..., None, :], rope_sin[..., None, :]
    return jnp.concatenate((p * c - q * s, q * c + p * s), -1).reshape(x.shape)


def loss(y):
    return jnp.sum(y.astype(jnp.float32) * np.random.default_rng(9).standard_normal(y.shape))


def close(ours, theirs, tolerance):
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        a, b = np.asarray(a, "float64"), np.asarray(b, "float64")
        assert np.abs(a - b).max() <= tolerance * max(1, np.abs(b).max())


@pytest.mark.parametrize("dtype, tolerance", [(jnp.float32, 1e-4), (jnp.bfloat16, 3e-2)], ids=["f32", "bf16"])
def test_is_its_formula(dtype, tolerance):
    norm, x, scale, tables = given(dtype)
    ours = jax.jit(jax.value_and_grad(lambda x, scale: loss(norm(x, scale, **tables)), argnums=(0, 1)))(x, scale)
    theirs = jax.value_and_grad(lambda x, scale: loss(formula(x, scale, **tables)), argnums=(0, 1))(
        x.astype(jnp.float32), scale)
    close(norm(x, scale, **tables), formula(x.astype(jnp.float32), scale, **tables), tolerance)
    close(ours[1], theirs[1], tolerance)


def test_vmap_is_a_loop():
    norm, x, scale, tables = given()
    many = jnp.stack([x, 2 * x, x - 1])
    f = jax.grad(lambda x, tables: loss(norm(x, scale, **tables)))
    together = jax.vmap(f, in_axes=(0, None))(many, tables)
    close(together, jnp.stack([f(one, tables) for one in many]), 1e-5)


def test_refuses_tables_of_another_shape_or_type():
    norm, x, scale, tables = given()
    with pytest.raises(ValueError, match=r"rope_cos is float32\[2, 5, 8\]; qk_norm_rope takes float32\[2, 5, 4\]"):
        norm(x, scale, **{**tables, "rope_cos": jnp.ones((2, TOKENS, WIDTH))})
    with pytest.raises(ValueError, match=r"rope_sin is bfloat16\[2, 5, 4\]; qk_norm_rope takes float32\[2, 5, 4\]"):
        norm(x, scale, **{**tables, "rope_sin": tables["rope_sin"].astype(jnp.bfloat16)})
