"""A residual stream of another type than x."""

import jax
import jax.numpy as jnp
import normc.jax as nj
import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("compiler")

EPS = 1e-5
SHAPE = (5, 24)


def arrays(data=jnp.bfloat16, stream=jnp.float32, shape=SHAPE):
    draw = np.random.default_rng(3).standard_normal
    x, residual = (jnp.asarray(0.5 + draw(shape), dtype) for dtype in (data, stream))
    return x, residual, jnp.asarray(1 + 0.3 * draw(shape[-1]), jnp.float32)


def formula(x, residual, scale):
    h = x.astype(jnp.float32) + residual.astype(jnp.float32)
    return h * jax.lax.rsqrt(jnp.mean(h * h, -1, keepdims=True) + EPS) * scale, h


def norm_of(**options):
    return nj.Norm("rms_norm_residual", 24, numbers={"epsilon": EPS}, **options)


def loss(outputs):
    draw = np.random.default_rng(9).standard_normal
    return sum(jnp.sum(y.astype(jnp.float32) * draw(y.shape[-2:])) for y in outputs)


@pytest.mark.parametrize("data, stream", [(jnp.bfloat16, jnp.float32), (jnp.float32, jnp.bfloat16)])
def test_is_its_formula(data, stream):
    x, residual, scale = arrays(data, stream)
    norm = norm_of()
    y, h = jax.jit(norm)(x, scale, residual=residual)
    assert (y.dtype, h.dtype) == (data, stream)
    of = lambda call: jax.jit(jax.grad(lambda *a: loss(call(*a)), argnums=(0, 1, 2)))(x, residual, scale)
    ours, theirs = of(lambda x, r, s: norm(x, s, residual=r)), of(formula)
    assert [g.dtype for g in ours] == [data, stream, jnp.float32]
    for a, b in zip((y, h, *ours), (*formula(x, residual, scale), *theirs)):
        a, b = np.asarray(a, "float64"), np.asarray(b, "float64")
        assert np.abs(a - b).max() <= 2e-2 * max(1, np.abs(b).max())
    if stream == jnp.float32:  # nothing of the stream is rounded to 16 bits
        assert (h == x.astype(jnp.float32) + residual).all() and (ours[0] == ours[1].astype(data)).all()
        assert (ours[0].astype(stream) != ours[1]).any()


def test_vmap_is_a_loop():
    x, residual, scale = arrays(shape=(3, *SHAPE))
    norm = norm_of()
    of = jax.grad(lambda x, residual: loss(norm(x, scale, residual=residual)), argnums=(0, 1))
    for a, *rows in zip(jax.vmap(of)(x, residual), *(of(x[at], residual[at]) for at in range(3))):
        assert (a == jnp.stack(rows)).all()


def test_without_jit_and_without_gradients():
    x, residual, scale = arrays()
    y, h = norm_of()(x, scale, residual=residual)
    again, sums = jax.jit(norm_of())(x, scale, residual=residual)
    assert (y == again).all() and (h == sums).all()


@pytest.mark.parametrize("of, error, said", [
    (lambda: nj.Norm("gemma_sandwich", 24)(arrays()[0], residual=arrays()[1]), TypeError,
     r"residual has the type f32 and x bf16, which gemma_sandwich does not take: stream=f32, but 'gemma_sandwich' has no "
     r"residual in front of it \[P15\]; cast residual to bf16"),
    (lambda: nj.Norm("layer_norm", 24)(arrays()[0], residual=arrays()[1]), TypeError,
     "layer_norm takes nothing beside x; given is residual"),
    (lambda: norm_of()(arrays()[0], residual=jnp.ones(SHAPE, jnp.int32)), TypeError, "for residual, not int32"),
])
def test_refuses_a_residual_of_a_wrong_type(of, error, said):
    with pytest.raises(error, match=said):
        of()
