"""Norms whose statistics follow from a state and its step: training, vmap, and the state of the next step."""

import jax
import jax.numpy as jnp
import normc.jax as nj
import numpy as np
import pytest
from formulas import arrays, batch_norm, close, gradients, power_norm_v

pytestmark = pytest.mark.usefixtures("compiler")

FEATURES = 16


def nu_of_one_step(x, scale, bias):
    """Returns y of power_norm_v. In its gradient nu is a running average that began at 0: a tenth of what it is of."""
    constant = jax.lax.stop_gradient(power_norm_v(x, 1.0, 0.0) / x)
    return (0.9 * x * constant + 0.1 * power_norm_v(x, 1.0, 0.0)) * scale + bias


# The first step, in which neither a window nor running statistics change y.
FIRST_STEP = {"batch_renorm": batch_norm, "mabn": power_norm_v, "unified_norm": nu_of_one_step}


def trained(norm):
    """Returns a function of x and a state: y, the gradients of x, scale and bias, and the next state."""
    _, scale, bias, dy = arrays((6, FEATURES), -1, "float32")

    def loss(x, scale, bias, state):
        y, after = norm(x, scale, bias, state)
        return (y * dy).sum(), (y, after)

    def step(x, state):
        of = jax.grad(loss, argnums=(0, 1, 2, 3), has_aux=True, allow_int=True)
        (*of_arrays, cotangents), (y, after) = of(x, scale, bias, state)
        return y, of_arrays, nj.next_state(after, cotangents)

    return step


@pytest.mark.parametrize("name", FIRST_STEP)
def test_the_first_step_is_the_formula(name):
    norm = nj.Norm(name, FEATURES)
    ours = lambda x, scale, bias: norm(x, scale, bias, norm.init_state())[0]
    given = arrays((6, FEATURES), -1, "float32")
    close(jax.jit(lambda: gradients(ours, *given))(), jax.jit(lambda: gradients(FIRST_STEP[name], *given))(), 3e-5)


def test_next_state_takes_the_fields_of_all_norms():
    carried = {field for name in FIRST_STEP for field in nj.Norm(name, FEATURES).carried}
    assert carried == {"nu", "window_nu"}
    state = dict.fromkeys(carried, 1)
    assert nj.next_state(state, dict.fromkeys(carried, 2)) == dict.fromkeys(carried, 2)


@pytest.mark.parametrize("name", FIRST_STEP)
def test_vmap_of_steps_is_a_loop_of_steps(name):
    norm = nj.Norm(name, FEATURES, numbers={"renorm_start": 1})
    step = jax.jit(trained(norm))
    x = arrays((6, FEATURES), -1, "float32")[0]
    states = [norm.init_state()]
    for factor in (1, 2):
        states.append(step(factor * x, states[-1])[2])
    assert [int(state["step"]) for state in states] == [0, 1, 2]
    stacked = lambda trees: jax.tree.map(lambda *leaves: np.stack(leaves), *trees)
    each = jax.jit(jax.vmap(trained(norm), (None, 0)))(x, stacked(states))
    close(each, stacked([step(x, state) for state in states]), 0)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int16"])
def test_a_step_stays_at_the_largest_of_its_type(dtype):
    norm = nj.Norm("mabn", FEATURES)
    largest = np.iinfo(dtype).max
    x, scale, bias, _ = arrays((6, FEATURES), -1, "float32")
    for step in (7, largest - 1, largest):
        _, after = norm(x, scale, bias, norm.init_state() | {"step": jnp.asarray(step, dtype)})
        assert after["step"].dtype == dtype and int(after["step"]) == min(step + 1, largest)


@pytest.mark.parametrize("name", ["power_norm", "mabn"])
def test_a_state_that_goes_through_two_calls(name):
    """Their gradient is two steps of nu, the later call first, as backward runs."""
    norm = nj.Norm(name, FEATURES)
    x, scale, bias, dy = arrays((6, FEATURES), -1, "float32")

    def call(state, factor):
        y, after = norm(factor * x, scale, bias, state)
        return (y * dy).sum(), after

    def twice(state):
        first, between = call(state, 1)
        second, after = call(between, 2)
        return first + second, after

    def scanned(state):
        def one(carry, factor):
            value, after = call(carry, factor)
            return after, value
        after, values = jax.lax.scan(one, state, jnp.array([1.0, 2.0]))
        return values.sum(), after

    gradient = lambda function: jax.jit(jax.grad(function, has_aux=True, allow_int=True))
    carried = lambda state: {field: state[field] for field in norm.carried}
    one = lambda state, factor: carried(gradient(lambda s: call(s, factor))(state)[0])
    state = norm.init_state()
    state |= {field: jnp.full_like(value, 0.2) for field, value in carried(state).items()}
    wanted = one(state | one(call(state, 1)[1], 2.0), 1.0)
    for function in (twice, scanned):
        close(carried(gradient(function)(state)[0]), wanted, 1e-6)
