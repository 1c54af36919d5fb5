"""Tensors around a norm: a residual, a gate, a modulation, against formulas of jax.numpy; and what errors say."""

import jax
import jax.numpy as jnp
import normc.jax as nj
import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("compiled_once")

EPS = 1e-5
ROWS, IMAGES = (2, 5, 24), (3, 8, 4, 2)


def rms(x, scale=1.0):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + EPS) * scale


def standard(x, axes):
    return (x - jnp.mean(x, axes, keepdims=True)) * jax.lax.rsqrt(jnp.var(x, axes, keepdims=True) + EPS)


def residual_before(x, params, residual):
    return rms(x + residual, params["scale"]), x + residual


def zero(x, params, residual, gate, mod_scale, mod_shift):
    h = residual + gate[:, None] * x
    return (1 + mod_scale[:, None]) * standard(h, -1) + mod_shift[:, None], h


def gated(x, params, gate):
    h = x * jax.nn.silu(gate)
    return rms(h.reshape(*h.shape[:-1], 4, -1)).reshape(h.shape) * params["scale"]


def tail(x, params, residual):
    shape = (1, 8, 1, 1)
    y = standard(x, (0, 2, 3)) * params["scale"].reshape(shape) + params["bias"].reshape(shape)
    return jax.nn.relu(y + residual)


VECTORS = {name: (2, 24) for name in ("gate", "mod_scale", "mod_shift")}
# shape of x, shapes of what is around, formula, arguments of the norm
CASES = {
    "rms_norm_residual": (ROWS, {"residual": ROWS}, residual_before, {}),
    "adaptive_layer_norm_zero": (ROWS, {"residual": ROWS, **VECTORS}, zero, {"layout": "segments"}),
    "gated_rms_norm": (ROWS, {"gate": ROWS}, gated, {"options": {"groups": 4}}),
    "delta_gated_rms_norm": (ROWS, {"gate": ROWS}, lambda x, p, gate: rms(x, p["scale"]) * jax.nn.silu(gate), {}),
    "gemma_sandwich": (ROWS, {"residual": ROWS}, lambda x, p, residual: rms(x, 1 + p["scale"]) + residual, {}),
    "resnet_tail": (IMAGES, {"residual": IMAGES}, tail, {"layout": "channels_first"}),
}


def made(name, dtype=jnp.float32):
    """Returns the norm, its parameters, x with what is around, and the formula."""
    shape, around, formula, arguments = CASES[name]
    norm = nj.Norm(name, shape[1] if "channels" in arguments.get("layout", "") else shape[-1],
                   numbers={"epsilon": EPS}, **arguments)
    random = np.random.default_rng(3)
    given = {each: jnp.asarray(0.5 + random.standard_normal(size), dtype)
             for each, size in {"x": shape, **around}.items()}
    params = {each: value + 0.3 * random.standard_normal(value.shape).astype("float32")
              for each, value in norm.init().items()}
    return norm, params, given, formula


def called(norm, params, given, **options):
    out = norm(**given, **params, **options)
    return out[0] if "state" in options else out


def state_of(norm):
    state = norm.init_state()
    return {"state": state} if state else {}


def loss(outputs):
    random = np.random.default_rng(9)
    return sum(jnp.sum(y.astype(jnp.float32) * random.standard_normal(y.shape)) for y in jax.tree.leaves(outputs))


def close(ours, theirs, tolerance):
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        a, b = np.asarray(a, "float64"), np.asarray(b, "float64")
        assert np.abs(a - b).max() <= tolerance * max(1, np.abs(b).max())


@pytest.mark.parametrize("dtype, tolerance", [(jnp.float32, 1e-4), (jnp.bfloat16, 3e-2)], ids=["f32", "bf16"])
@pytest.mark.parametrize("name", CASES)
def test_is_its_formula(name, dtype, tolerance):
    norm, params, given, formula = made(name, dtype)
    wide = {each: value.astype(jnp.float32) for each, value in given.items()}
    of = lambda given, params: called(norm, params, given, **state_of(norm))
    wanted = lambda given, params: formula(
        given["x"], params, **{each: value for each, value in given.items() if each != "x"})
    close(jax.jit(of)(given, params), wanted(wide, params), tolerance)
    close(of(given, params), wanted(wide, params), tolerance)
    ours = jax.jit(jax.grad(lambda *a: loss(of(*a)), argnums=(0, 1)))(given, params)
    theirs = jax.grad(lambda *a: loss(wanted(*a)), argnums=(0, 1))(wide, params)
    assert all(value.dtype == dtype for value in ours[0].values())
    close(ours, theirs, tolerance)


@pytest.mark.parametrize("use", [0, 1])
@pytest.mark.parametrize("name", ["rms_norm_residual", "adaptive_layer_norm_zero"])
def test_an_output_without_a_gradient(name, use):
    norm, params, given, formula = made(name)
    ours = jax.grad(lambda given: loss(called(norm, params, given)[use]))(given)
    around = lambda given: {each: value for each, value in given.items() if each != "x"}
    close(ours, jax.grad(lambda given: loss(formula(given["x"], params, **around(given))[use]))(given), 1e-4)


def test_evaluation():
    norm, params, given, _ = made("resnet_tail")
    state = norm.init_state()
    names = [each for each in state if each != "step"]
    column = lambda value: jnp.asarray(value, jnp.float32).reshape(1, 8, 1, 1)
    mean, var = (column(np.random.default_rng(at).uniform(0.5, 1.5, 8)) for at in (1, 2))
    state = {**state, **{each: value.reshape(-1) for each, value in zip(names, (mean, var))}}

    def wanted(given):
        y = (given["x"] - mean) * jax.lax.rsqrt(var + EPS) * column(params["scale"]) + column(params["bias"])
        return jax.nn.relu(y + given["residual"])

    of = lambda given: called(norm, params, given, state=state, training=False)
    close(of(given), wanted(given), 1e-4)
    close(jax.grad(lambda given: loss(of(given)))(given), jax.grad(lambda given: loss(wanted(given)))(given), 1e-4)


@pytest.mark.parametrize("name", ["rms_norm_residual", "adaptive_layer_norm_zero", "delta_gated_rms_norm"])
def test_vmap_is_a_loop(name):
    norm, params, given, _ = made(name)
    many = {each: jnp.stack([value, 2 * value, value - 1]) for each, value in given.items()}
    f = jax.grad(lambda given: loss(called(norm, params, given)))
    one = lambda at: {each: value[at] for each, value in many.items()}
    close(jax.vmap(f)(many), jax.tree.map(lambda *a: jnp.stack(a), *(f(one(at)) for at in range(3))), 1e-5)


def call(name, **changed):
    norm, params, given, _ = made(name)
    return called(norm, params, {**given, **changed}, **state_of(norm))


@pytest.mark.parametrize("of, error, said", [
    (lambda: call("rms_norm_residual", residual=None), TypeError, "takes residual beside x; missing is residual"),
    (lambda: call("rms_norm_residual", gate=jnp.ones(ROWS)), TypeError, "takes residual beside x; given is gate"),
    (lambda: nj.Norm("layer_norm", 24)(jnp.ones((5, 24)), residual=jnp.ones((5, 24))), TypeError,
     "layer_norm takes nothing beside x; given is residual"),
    (lambda: call("adaptive_layer_norm_zero", mod_scale=jnp.ones((2, 1, 24))), ValueError,
     r"mod_scale is float32\[2, 1, 24\]; adaptive_layer_norm_zero takes float32\[2, 24\]"),
    (lambda: call("gated_rms_norm", gate=jnp.ones(ROWS, jnp.bfloat16)), ValueError, "gate is bfloat16"),
    (lambda: call("resnet_tail", axis_name="rows"), ValueError, "axis_name is for norms that take none"),
])
def test_refuses_tensors_that_the_norm_does_not_take(of, error, said):
    with pytest.raises(error, match=said):
        of()


def test_an_axis_name_without_axes_changes_nothing():
    close(call("resnet_tail", axis_name=()), call("resnet_tail"), 0)


def test_a_factor_that_is_left_out_is_one():
    norm, x = nj.Norm("gemma_rms_norm", 24, numbers={"epsilon": EPS}), made("rms_norm_residual")[2]["x"]
    close(norm(x), rms(x), 1e-5)
    close(norm(x, **norm.init()), rms(x), 1e-5)


def test_a_state_that_backward_changes(tmp_path):
    (tmp_path / "mine.norm").write_text("norm mine from power_norm {\n  residual before\n  gate silu\n}\n")
    mine, plain = nj.norm(tmp_path / "mine.norm", 24), nj.Norm("power_norm", 24)
    given = {each: jnp.asarray(np.random.default_rng(at).standard_normal((7, 24)), jnp.float32)
             for at, each in enumerate(("x", "residual", "gate"))}

    def ours(given, params, state):
        outputs, after = mine(**given, **params, state=state)
        return loss(outputs), after

    def theirs(given, params, state):
        h = given["x"] + given["residual"]
        y, after = plain(h, **params, state=state)
        return loss((y * jax.nn.silu(given["gate"]), h)), after

    made = []
    for of in (ours, theirs):
        state, seen = plain.init_state(), []
        for _ in range(2):
            step = jax.jit(jax.value_and_grad(of, argnums=(0, 1, 2), has_aux=True, allow_int=True))
            (value, after), (*gradients, cotangents) = step(given, plain.init(), state)
            state = nj.next_state(after, cotangents)
            seen += [value, gradients, state]
        made.append(seen)
    close(*made, 1e-4)


def test_a_residual_behind_the_norm_has_no_gradient_in_masked_rows():
    norm, params, given, _ = made("gemma_sandwich")
    mask = jnp.arange(5) < jnp.array([[5], [3]])
    assert not called(norm, params, given, mask=mask)[~mask].any()
    gradients = jax.grad(lambda given: loss(called(norm, params, given, mask=mask)))(given)
    for each in jax.tree.leaves(gradients):
        assert not each[~mask].any() and each[mask].any()
