"""Norms in f64, which JAX has after a switch for the whole process: gradients against differences, and formulas."""

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import normc.jax as nj
import pytest
from formulas import CASES, arrays, close
from jax.test_util import check_grads


@pytest.mark.parametrize("name", CASES)
def test_is_the_formula(name):
    ours, formula, shape, axis = CASES[name]
    x, scale, bias, dy = arrays(shape, axis, "float64")

    def run(norm):
        y, back = jax.vjp(norm, x, scale, bias)
        return (y, *back(dy))

    close(jax.jit(lambda: run(ours))(), jax.jit(lambda: run(formula))(), 1e-12)


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_differences(name):
    ours, _, shape, axis = CASES[name]
    check_grads(jax.jit(ours), arrays(shape, axis, "float64")[:3], order=1, modes=["rev"])


@pytest.mark.parametrize("step", ["int32", "uint32", "int64", "uint64"])
def test_a_step_of_either_size(step):
    x = arrays((33, 96), -1, "float64")[0]
    state = nj.init_state("power_norm", 96, "float64")
    assert state["psi2"].dtype == "float64"
    state["step"] = state["step"].astype(step)
    for _ in range(3):
        state = jax.jit(lambda s: nj.power_norm(x, None, None, s)[1])(state)
    assert state["step"] == 3 and state["step"].dtype == step


def test_parameters_are_no_wider_than_the_data():
    x = jnp.ones((4, 96), "float32")
    with pytest.raises(TypeError, match="scale has the type float64; layer_norm computes with float32"):
        nj.layer_norm(x, jnp.ones(96))
