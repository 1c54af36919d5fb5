"""Norms on a CUDA device: formulas of jax.numpy in f64, states, and what errors say. The formulas need types of 64
bits. Kernels come from tests/hosts/compile-cuda."""

import jax
import jax.numpy as jnp
import normc.jax as nj
import numpy as np
import pytest
from formulas import CASES, arrays, close, gradients, layer_norm, power_norm_step

DEVICE = "gpu"
FOUND = jax.default_backend() == DEVICE
if FOUND:
    jax.config.update("jax_enable_x64", True)
pytestmark = [pytest.mark.skipif(not FOUND, reason="JAX finds no CUDA device"), pytest.mark.usefixtures("cuda_kernels")]
BOUNDS = {"float32": 3e-5, "bfloat16": 4e-2, "float16": 6e-3}
WITHOUT_STATE = [name for name in CASES if name.split("_")[0] not in ("batch", "power")]


def state_of(name, features):
    state = nj.init_state(name, features)
    return {**state, "step": state["step"].astype("int64")}


def check(ours, formula, given, bound):
    """Compares y and gradients of a norm with those of its formula in f64."""
    mine = jax.jit(lambda *a: gradients(ours, *a))(*given)
    wanted = jax.jit(lambda *a: gradients(formula, *a))(*(a.astype("float64") for a in given))
    assert all(each.devices() == {jax.devices(DEVICE)[0]} for each in mine)
    close(mine, [each.astype(given[0].dtype) for each in wanted], bound)


@pytest.mark.parametrize("name", WITHOUT_STATE)
def test_is_the_formula(name):
    ours, formula, shape, axis = CASES[name]
    types = ["float32"] if name in ("group_norm", "group_norm of vectors", "instance_norm") else BOUNDS
    for dtype in types:
        check(ours, formula, arrays(shape, axis, dtype), BOUNDS[dtype])


def test_rows_of_a_known_length():
    check(nj.layer_norm, layer_norm, arrays((37, 1024), -1, "float32"), 3e-5)
    check(nj.layer_norm, layer_norm, arrays((37, 4096), -1, "bfloat16"), 4e-2)


@pytest.mark.parametrize("name", ["batch_norm", "batch_norm of images", "batch_norm, channels first", "power_norm_v"])
def test_statistics_of_the_batch(name):
    _, formula, shape, axis = CASES[name]
    norm = name if name == "power_norm_v" else "batch_norm"
    more = {"channel_axis": 1} if axis == 1 else {}
    state = state_of(norm, shape[axis])
    ours = lambda x, scale, bias: getattr(nj, norm)(x, scale, bias, state, training=True, **more)[0]
    for dtype in ("float32", "bfloat16"):
        check(ours, formula, arrays(shape, axis, dtype), BOUNDS[dtype])


def test_the_state_of_batch_norm():
    x, scale, bias, _ = arrays((33, 96), -1, "float32")
    y, after = jax.jit(lambda x, s: nj.batch_norm(x, scale, bias, s, training=True))(x, state_of("batch_norm", 96))
    assert after["step"] == 1
    close(after["running_mean"], 0.1 * x.mean(0), 1e-5)
    close(after["running_var"], 0.9 + 0.1 * x.var(0, ddof=1), 1e-5)
    still, _ = nj.batch_norm(x, scale, bias, after, training=False)
    close(still, (x - after["running_mean"]) / jnp.sqrt(after["running_var"] + 1e-5) * scale + bias, 3e-5)


def trained(device, state):
    """Returns the parameters and the state of PowerNorm after five steps in a loop of scan, and the gradients."""
    step = power_norm_step(np.zeros(96, "float32"))
    given = np.linspace(0.5, 1.5, 96, dtype="float32"), state
    given = jax.device_put((given, np.random.default_rng(1).normal(size=(5, 32, 96)).astype("float32")), device)
    return jax.jit(lambda carry, xs: jax.lax.scan(step, carry, xs), donate_argnums=0)(*given)


@pytest.mark.parametrize("state", [nj.init_state, state_of], ids=["a step of 32 bits", "a step of 64 bits"])
def test_power_norm_trains_with_scan_and_donation_as_on_the_cpu(state):
    ours, theirs = (trained(jax.devices(name)[0], state("power_norm", 96)) for name in (DEVICE, "cpu"))
    assert ours[0][1]["step"] == 5
    close(ours, theirs, 1e-4)


@pytest.mark.parametrize("batched", [(0, None, None), (None, 0, None), (0, 0, 0)])
@pytest.mark.parametrize("name", ["layer_norm", "instance_norm, channels first"])
def test_vmap_is_that_of_the_formula(name, batched):
    ours, formula, shape, axis = CASES[name]
    x, scale, bias, dy = arrays(shape, axis, "float32")
    given = [a if along is None else jnp.stack([a, 2 * a, a - 1]) for a, along in zip((x, scale, bias), batched)]
    run = lambda norm: jax.jit(jax.vmap(lambda *a: gradients(norm, *a, dy), batched))(*given)
    close(run(ours), run(formula), 1e-4)


def test_refuses_f64():
    with pytest.raises(Exception, match=r"no kernel serves layer_norm:\w+@f64\[\*x96\]"):
        jax.block_until_ready(nj.layer_norm(jnp.ones((4, 96), "float64")))
