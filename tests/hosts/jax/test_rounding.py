"""round="normalized": x0 is rounded to the type of x in front of the scale, as the code of Llama does."""

import jax
import jax.numpy as jnp
import normc.jax as nj
import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("compiler")

EPS = 1e-5


def llama(x, weight):
    h = x.astype(jnp.float32)
    h = h * jax.lax.rsqrt(jnp.mean(h * h, -1, keepdims=True) + EPS)
    return weight * h.astype(x.dtype)


def test_rounds_as_llama():
    draw = np.random.default_rng(3).standard_normal
    x, weight = jnp.asarray(0.5 + draw((64, 24)), jnp.bfloat16), jnp.asarray(1 + 0.3 * draw(24), jnp.bfloat16)
    y, plain, wanted = nj.rms_norm(x, weight, EPS, round="normalized"), nj.rms_norm(x, weight, EPS), llama(x, weight)
    assert jnp.mean(y != wanted) < 0.005 < 0.05 < jnp.mean(plain != wanted)
    dy = jnp.asarray(draw(x.shape), jnp.float32)
    of = lambda each: jax.grad(lambda x: jnp.sum(dy * nj.rms_norm(x, weight, EPS, round=each)))(x)
    assert (of("normalized") == of(None)).all()
    wide = x.astype(jnp.float32)
    assert (nj.rms_norm(wide, weight, EPS, round="normalized") == nj.rms_norm(wide, weight, EPS)).all()


@pytest.mark.parametrize("of, said", [
    (lambda: nj.rms_norm(jnp.ones(24), round="up"), "round is 'up'; known are None and 'normalized'"),
    (lambda: nj.Norm("batch_norm", 24, round="normalized"),
     r"needs 'reduce features', and 'batch_norm' has 'reduce rows' \[P16\]; leave round out"),
])
def test_refuses_a_rounding_that_the_norm_lacks(of, said):
    with pytest.raises(ValueError, match=said):
        of()
