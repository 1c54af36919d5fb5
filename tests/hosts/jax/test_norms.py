"""Norms against formulas of jax.numpy, and in JAX's transformations: jit, grad, vmap, scan, donation, export."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import normc
import normc.jax as nj
import pytest
from formulas import CASES, arrays, centred, close, gradients, layer_norm, power_norm_step

BOUNDS = {"float32": 3e-5, "bfloat16": 4e-2, "float16": 6e-3}


@pytest.mark.parametrize("name", CASES)
def test_is_the_formula(name):
    ours, formula, shape, axis = CASES[name]
    reference = jax.jit(lambda *a: gradients(formula, *a))
    for dtype, bound in BOUNDS.items():
        given = arrays(shape, axis, dtype)
        mine = jax.jit(lambda *a: gradients(ours, *a))(*given)
        assert all(a.dtype == dtype for a in mine)
        close(mine, [a.astype(dtype) for a in reference(*(a.astype("float32") for a in given))], bound)


@pytest.mark.parametrize("name", CASES)
def test_vmap_over_all_arguments(name):
    check_vmap(name, (1, 1, 1))


@pytest.mark.parametrize("batched", [(1, 0, 0), (0, 1, 0), (1, 0, 1)])
@pytest.mark.parametrize("name", ["layer_norm", "instance_norm, channels first", "batch_norm"])
def test_vmap_over_some_arguments(name, batched):
    check_vmap(name, batched)


def check_vmap(name, batched):
    ours, formula, shape, axis = CASES[name]
    x, scale, bias, dy = arrays(shape, axis, "float32")
    given = [jnp.stack([a, 2 * a, a - 1]) if many else a for a, many in zip((x, scale, bias), batched)]

    def run(norm):
        each = jax.vmap(lambda *a: gradients(norm, *a, dy), tuple(0 if many else None for many in batched))
        return jax.jit(each)(*given)

    close(run(ours), run(formula), 1e-4)


def test_vmap_of_vmap():
    x, scale, bias, _ = arrays((2, 3, 5, 96), -1, "float32")
    scales = jnp.stack([scale, 2 * scale, 3 * scale])
    twice = lambda norm: jax.vmap(jax.vmap(norm, (0, None, None)), (None, 0, None))(x[0], scales, bias)
    close(twice(nj.layer_norm), twice(layer_norm), 3e-5)
    rows = lambda norm: jax.vmap(jax.vmap(norm, (0, None, None)), (0, None, None))(x, scale, bias)
    close(rows(nj.layer_norm), rows(layer_norm), 3e-5)


def test_rows_of_a_batch_are_one_call():
    x, scale, bias, _ = arrays((6, 4, 96), -1, "float32")
    each = jax.vmap(nj.layer_norm, (1, None, None), 1)
    close(each(x, scale, bias), layer_norm(x, scale, bias), 3e-5)
    assert jax.jit(each).lower(x, scale, bias).as_text().count("stablehlo.while") == 0


def test_default_parameters_are_ones_and_zeros():
    x = arrays((5, 96), -1, "float32")[0]
    close(nj.layer_norm(x), centred(x, -1, 1e-5), 3e-5)
    close(nj.layer_norm(x, eps=0.5), centred(x, -1, 0.5), 3e-5)


def test_no_rows():
    x = jnp.zeros((0, 96))
    assert nj.layer_norm(x).shape == (0, 96)
    assert jax.grad(lambda x: nj.layer_norm(x).sum())(x).shape == (0, 96)


def test_the_state_of_batch_norm():
    x, scale, bias, _ = arrays((33, 96), -1, "float32")
    state = nj.init_state("batch_norm", 96)
    y, after = jax.jit(lambda x, s: nj.batch_norm(x, scale, bias, s, training=True))(x, state)
    assert after["step"] == 1 and state["step"] == 0
    close(after["running_mean"], 0.1 * x.mean(0), 1e-5)
    close(after["running_var"], 0.9 + 0.1 * x.var(0, ddof=1), 1e-5)
    still, same = nj.batch_norm(x, scale, bias, after, training=False)
    close(same, after, 0)
    close(still, (x - after["running_mean"]) / jnp.sqrt(after["running_var"] + 1e-5) * scale + bias, 3e-5)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "uint32"])
def test_a_step_keeps_its_type(dtype):
    x = jnp.ones((3, 96))
    state = nj.init_state("batch_norm", 96)
    largest = np.iinfo(dtype).max
    for step, wanted in ((3, 4), (largest - 1, largest), *([(largest, largest)] if np.iinfo(dtype).bits < 32 else [])):
        after = nj.batch_norm(x, None, None, state | {"step": np.array(step, dtype)}, training=True)[1]
        assert int(after["step"]) == wanted and after["step"].dtype == dtype


def test_gradients_of_evaluation_take_the_statistics_as_constants():
    x, scale, bias, dy = arrays((33, 96), -1, "float32")
    state = nj.batch_norm(x, scale, bias, nj.init_state("batch_norm", 96), training=True)[1]
    ours = lambda x, s, b: nj.batch_norm(x, s, b, state, training=False)[0]
    formula = lambda x, s, b: (x - state["running_mean"]) / jnp.sqrt(state["running_var"] + 1e-5) * s + b
    close(gradients(ours, x, scale, bias, dy), gradients(formula, x, scale, bias, dy), 3e-5)


def test_the_next_state_is_a_constant_of_gradients():
    x, scale, bias, _ = arrays((33, 96), -1, "float32")
    state = nj.init_state("batch_norm", 96)
    mean = lambda x: nj.batch_norm(x, scale, bias, state, training=True)[1]["running_mean"].sum()
    assert mean(x) != 0 and (jax.grad(mean)(x) == 0).all()


def test_power_norm_trains_with_scan_and_donation():
    """A loop of scan is a loop of steps."""
    xs = jax.random.normal(jax.random.key(1), (5, 32, 96))
    scale, bias = jnp.linspace(0.5, 1.5, 96), jnp.zeros(96)
    step = power_norm_step(bias)
    state = nj.init_state("power_norm", 96)
    one_by_one = (scale, state)
    for x in xs:
        one_by_one, _ = jax.jit(step)(one_by_one, x)
    looped = jax.jit(lambda c: jax.lax.scan(step, c, xs)[0])((scale, state))
    close(looped, one_by_one, 0)
    assert looped[1]["step"] == 5 and jnp.abs(looped[1]["nu"]).max() > 0

    # PN by its formulas, for the first step: y divides by the quadratic mean of before.
    x, dy = xs[0], jax.grad(lambda y: jnp.mean(y**3))(xs[0] / jnp.sqrt(1 + 1e-5) * scale + bias)
    second = (x * x).mean(0)
    normal = x / jnp.sqrt(1 + 1e-5)
    after, _ = jax.jit(step)((scale, state), x)
    close(after[1]["psi2"], 0.9 + 0.1 * second, 1e-5)
    close(after[0], scale - 0.1 * (dy * normal).sum(0), 1e-5)

    # A state that is given away is changed in place; one that is kept is not.
    forward = lambda x, state: nj.power_norm(x, scale, bias, state)
    kept = jax.tree.map(jnp.copy, state)
    close(jax.jit(forward)(xs[0], kept), jax.jit(forward)(xs[0], state), 0)
    close(kept, state, 0)
    address = kept["psi2"].unsafe_buffer_pointer()
    _, after = jax.jit(forward, donate_argnums=1)(xs[0], kept)
    assert kept["psi2"].is_deleted() and after["psi2"].unsafe_buffer_pointer() == address


def test_next_state_of_a_model():
    state = {"a": {"psi2": 1, "nu": 2, "step": 3}, "b": [{"running_mean": 4, "window_nu": 5}]}
    cotangents = {"a": {"psi2": 0, "nu": 7, "step": 0}, "b": [{"running_mean": 0, "window_nu": 8}]}
    wanted = {"a": {"psi2": 1, "nu": 7, "step": 3}, "b": [{"running_mean": 4, "window_nu": 8}]}
    assert nj.next_state(state, cotangents) == wanted
    assert nj.Norm("power_norm", 96).carried == ("nu",)
    assert nj.Norm("batch_norm_unbiased", 96).carried == ()


class Box:
    def __init__(self, value):
        self.value = value


@dataclasses.dataclass
class Fields:
    psi2: Any
    nu: Any


class Pair(NamedTuple):
    psi2: Any
    nu: Any


class Unnamed(list):
    pass


jax.tree_util.register_pytree_with_keys(Box, lambda box: (((jax.tree_util.GetAttrKey("value"), box.value),), None),
                                        lambda _, values: Box(*values))
jax.tree_util.register_dataclass(Fields)
jax.tree_util.register_pytree_node(Unnamed, lambda each: (tuple(each), None), lambda _, values: Unnamed(values))


@pytest.mark.parametrize("state", [
    lambda psi2, nu: {"psi2": Box(psi2), "nu": Box(nu)},  # as Variable of nnx, or Partitioned of linen
    lambda psi2, nu: Box({"psi2": psi2, "nu": nu}),
    Fields,
    Pair,
    lambda psi2, nu: {"nu": {"psi2": psi2, "nu": nu}, "window_nu": [Pair(Box(psi2), Box(nu))]},
])
def test_next_state_finds_fields_by_their_names(state):
    after = nj.next_state(state(1.0, 2.0), state(0.0, 7.0))
    assert jax.tree.structure(after) == jax.tree.structure(state(1.0, 2.0))
    assert jax.tree.leaves(after) == jax.tree.leaves(state(1.0, 7.0))


def test_next_state_refuses_arrays_without_names():
    state = {"norm": Unnamed([1.0, 2.0])}
    with pytest.raises(ValueError, match=r"the state has no nu or window_nu, and its array at \['norm'\]\[.*0.*\] has "
                                         r"no name, so what backward changed would be lost: give .* carried=\(\)"):
        nj.next_state(state, state)
    assert nj.next_state(state, state, carried=()) == state
    assert nj.next_state({"running_mean": 1}, {"running_mean": 0}) == {"running_mean": 1}


def test_nu_stays_where_no_backward_makes_it():
    """Evaluation leaves nu to a training call of the same loss, which may be given the same state."""
    x, scale, bias, dy = arrays((33, 96), -1, "float32")
    state = nj.init_state("power_norm", 96) | {"nu": jnp.linspace(-1, 1, 96)}

    def nu_of(*calls):
        def loss(state):
            total, given = 0.0, [state]
            for at, training in calls:
                y, after = nj.power_norm(x, scale, bias, given[at], training)
                total, given = total + (y * dy).sum(), [*given, after]
            return total, given[-1]
        cotangents, after = jax.jit(jax.grad(loss, has_aux=True, allow_int=True))(state)
        return nj.next_state(after, cotangents)["nu"]

    trained = nu_of((0, True))
    assert not jnp.allclose(trained, state["nu"])
    for calls in ((), ((0, False),), ((0, False), (0, False)), ((0, False), (1, False))):
        close(nu_of(*calls), state["nu"], 0)
    for calls in (((0, True), (0, False)), ((0, True), (1, False)), ((0, False), (1, True))):
        close(nu_of(*calls), trained, 0)
    close(nu_of((0, True), (1, False), (1, True)), nu_of((0, True), (1, True)), 0)
    each = jax.grad(lambda state: jax.vmap(lambda x: nj.power_norm(x, scale, bias, state, False)[0])(x[:, None]).sum(),
                    allow_int=True)
    close(nj.next_state(state, each(state)), state, 0)


def test_nu_of_layers_that_a_scan_skips():
    x, scale, bias, dy = arrays((33, 96), -1, "float32")
    nu = jnp.stack([jnp.linspace(1, 2, 96), jnp.linspace(2, 3, 96)])
    states = jax.tree.map(lambda value: jnp.stack([value, value]), nj.init_state("power_norm", 96)) | {"nu": nu}

    def loss(states):
        def layer(x, each):
            runs, state = each
            return jax.lax.cond(runs, lambda: nj.power_norm(x, scale, bias, state), lambda: (x, state))
        y, after = jax.lax.scan(layer, x, (jnp.array([True, False]), states))
        return (y * dy).sum(), after

    cotangents, after = jax.jit(jax.grad(loss, has_aux=True, allow_int=True))(states)
    close(nj.next_state(after, cotangents)["nu"], jnp.stack([cotangents["nu"][0], nu[1]]), 0)
    assert not jnp.allclose(cotangents["nu"][0], nu[0])


def test_a_batch_of_vmap_that_shares_a_state():
    x, scale, bias, dy = arrays((3, 5, 96), -1, "float32")
    state = nj.init_state("power_norm", 96)
    states = jax.tree.map(lambda value: jnp.stack([value] * 3), state)

    def loss(state, x, scale):
        y, after = nj.power_norm(x, scale, bias, state)
        return (y * dy[0]).sum(), after

    nu_of = jax.grad(lambda *given: loss(*given)[0], allow_int=True)
    summed = lambda each, axes: lambda *given: jax.vmap(each, axes)(*given)[0].sum()
    alone = jnp.stack([nu_of(state, each, scale)["nu"] for each in x])
    close(jax.vmap(nu_of, (None, 0, None))(state, x, scale)["nu"], alone, 1e-6)
    close(jax.grad(summed(loss, (0, 0, None)), allow_int=True)(states, x, scale)["nu"], alone, 1e-6)
    close(jax.grad(summed(loss, (None, 0, None)), 1)(state, x, scale),
          jax.grad(lambda x: sum(loss(state, each, scale)[0] for each in x))(x), 1e-6)
    for axes, given in (((None, 0, None), (state, x, scale)), ((None, None, 0), (state, x[0], jnp.stack([scale] * 3)))):
        for each in (loss, jax.jit(loss)):
            with pytest.raises(ValueError, match="the next nu of power_norm is a cotangent, which JAX would add over "
                                                 "the batch of vmap, since the batch shares one state: give each"):
                jax.grad(summed(each, axes), allow_int=True)(*given)


def test_checkpoint_repeats_forward():
    x, scale, bias, dy = arrays((33, 96), -1, "float32")
    state = nj.init_state("power_norm", 96)
    norm = lambda x, state: nj.power_norm(x, scale, bias, state)
    plain = jax.grad(lambda x: (norm(x, state)[0] * dy).sum())(x)
    again = jax.grad(lambda x: (jax.checkpoint(norm)(x, state)[0] * dy).sum())(x)
    close(again, plain, 0)


def test_export_with_any_number_of_rows():
    x, scale, bias, _ = arrays((5, 96), -1, "float32")
    rows, = jax.export.symbolic_shape("rows")
    shape = jax.ShapeDtypeStruct((rows, 96), x.dtype)
    for function in (nj.layer_norm, jax.grad(lambda x, s, b: (nj.layer_norm(x, s, b) ** 3).sum())):
        exported = jax.export.export(jax.jit(function), disabled_checks=nj.export_checks())(shape, scale, bias)
        loaded = jax.export.deserialize(exported.serialize())
        close(loaded.call(x, scale, bias), function(x, scale, bias), 0)


def test_norm_of_a_text(tmp_path, compiler):
    text = tmp_path / "mine.norm"
    text.write_text("""norm mine {
  reduce    features
  center    none
  moment    raw
  divide_by current
  backward  exact
  affine    scale
  epsilon   1e-6
}
""")
    norm = nj.norm(text, 48, numbers={"epsilon": 1e-3})
    x, scale, _, dy = arrays((9, 48), -1, "float32")
    formula = lambda x, scale: x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-3) * scale
    run = lambda f: jax.vjp(f, x, scale)[1](dy)
    assert list(norm.init()) == ["scale"]
    close(run(norm), run(formula), 3e-5)
    close(jax.vmap(norm, (0, None))(x[:, None], scale), formula(x, scale)[:, None], 3e-5)


def test_mask_leaves_rows_out(compiler):
    norm = nj.Norm("batch_norm_unbiased", 96)
    x, scale, bias, _ = arrays((33, 96), -1, "float32")
    real = jnp.arange(33) < 20
    y, state = norm(x, scale, bias, norm.init_state(), mask=real)
    close(y[:20], nj.batch_norm(x[:20], scale, bias, norm.init_state(), training=True)[0], 3e-5)
    assert (y[20:] == 0).all()
    with pytest.raises(ValueError, match=r"mask is float32\[33\]; batch_norm_unbiased takes bool\[33\]"):
        norm(x, scale, bias, norm.init_state(), mask=jnp.ones(33))


def test_many_threads_agree():
    x, scale, bias, _ = arrays((4096, 256), -1, "float32")
    close(nj.layer_norm(x, scale, bias), layer_norm(x, scale, bias), 3e-5)
    dy = jax.grad(lambda x, s, b: (nj.layer_norm(x, s, b) ** 3).sum(), argnums=(0, 1, 2))
    first = dy(x, scale, bias)
    for _ in range(3):
        close(dy(x, scale, bias), first, 0)


def bn(x=None, scale=None, bias=None, **state):
    x = jnp.ones((4, 96)) if x is None else x
    return nj.batch_norm(x, scale, bias, nj.init_state("batch_norm", 96) | state, training=True)


@pytest.mark.parametrize("call, said", [
    (lambda: nj.layer_norm(jnp.ones((4, 96)), jnp.ones(48)), r"scale has the shape \[48\]; layer_norm takes \[96\]"),
    (lambda: nj.layer_norm(jnp.ones((4, 96)), None, jnp.ones((1, 96))), r"bias has the shape \[1, 96\]"),
    (lambda: nj.layer_norm(jnp.ones((4, 96), int)), "takes float32, float64, bfloat16 or float16, not int32"),
    (lambda: nj.layer_norm(jnp.ones((4, 96)), jnp.ones(96, int)), "scale has the type int32; layer_norm computes with"),
    (lambda: nj.layer_norm(jnp.ones(())), r"x is a number; layer_norm takes \[..., features\]"),
    (lambda: bn(1.0), r"x is a number; batch_norm takes \[..., features\]"),
    (lambda: nj.power_norm(1.0, None, None, {}), r"x is a number; power_norm takes \[..., features\]"),
    (lambda: nj.power_norm_v(1.0, None, None, {}), r"x is a number; power_norm_v takes \[..., features\]"),
    (lambda: nj.group_norm(1.0, 4), r"x is a number; group_norm takes \[..., features\]"),
    (lambda: nj.instance_norm(jnp.ones(32)), r"x has the shape \[32\]; instance_norm takes \[batch, positions"),
    (lambda: nj.layer_norm(jnp.ones((4, 96)), eps=-1), "epsilon"),
    (lambda: nj.Norm("layer_norm", 96)(jnp.ones((4, 95))), r"x has the shape \[4, 95\]; layer_norm takes \[..., 96\]"),
    (lambda: nj.Norm("rms_norm", 96)(jnp.ones((4, 96)), None, jnp.ones(96)), "rms_norm has no bias, but one is given"),
    (lambda: nj.Norm("layer_norm", 96, numbers={"decay": 1})(jnp.ones((4, 96))), "has no number decay; it has epsilon"),
    (lambda: nj.Norm("no_norm", 96)(jnp.ones((4, 96))), "no_norm"),
    (lambda: nj.Norm("layer_norm", 96, layout="rows"), "layout is 'rows'; known are 'features_last'"),
    (lambda: nj.group_norm(jnp.ones((2, 3, 31)), 4), "31 channels are not divisible by 4 groups"),
    (lambda: nj.group_norm(jnp.ones((2, 3, 32)), jnp.ones(32), jnp.ones(32)),
     "group_norm takes the number of groups as its second argument, an integer, not "),
    (lambda: nj.group_norm(jnp.ones((2, 3, 32)), 4.0), "second argument, an integer, not float"),
    (lambda: nj.group_norm(jnp.ones((2, 3, 4, 32)), 4, channel_axis=2), "channel_axis is 2; .* takes 1 or -1"),
    (lambda: nj.group_norm(jnp.ones((2, 3, 4, 32)), 4, channel_axis=7), "channel_axis is 7; group_norm takes 1 or -1"),
    (lambda: nj.init_state("batch_norm", 96, jnp.int32), "batch_norm_unbiased takes float32, .* not int32"),
    (lambda: nj.Norm("layer_norm", 96).init(jnp.int32), "layer_norm takes float32, float64, bfloat16 or float16, not"),
    (lambda: nj.Norm("power_norm", 96)(jnp.ones((4, 96))), "power_norm has a state: give one with step, psi2, nu"),
    (lambda: nj.Norm("layer_norm", 96)(jnp.ones((4, 96)), state={"nu": 1}), "has a state of no fields; given are nu"),
    (lambda: bn(running_mean=jnp.zeros(95)), r"running_mean of the state is float32\[95\]; .* takes float32\[96\]"),
    (lambda: bn(step=jnp.zeros(())), r"step of the state is float32\[\]; .* takes int32\[\]"),
    (lambda: bn(step=jnp.zeros((), "int4")), r"step of the state is int4\[\]; .* takes int32\[\]"),
    (lambda: nj.init_state("layer_norm", 96), "layer_norm has no state"),
])
def test_refuses_wrong_arguments_with_and_without_jit(call, said):
    for run in (call, jax.jit(call)):
        with pytest.raises((TypeError, ValueError, normc.Error), match=said):
            run()


def test_the_handler_checks_shapes_itself():
    """A graph may be made without normc.jax: every size is checked when it runs."""
    text = "layer_norm[*x96] epsilon=1e-05"
    attributes = dict(norm=text, rank=np.int32(2), mask=np.int32(0), rows=np.int32(1))
    x, y = jnp.ones((4, 96)), jax.ShapeDtypeStruct((4, 96), "float32")
    good = jnp.ones(96)
    for given, made, said in (
        ((x, good[:48], good), y, "scale"),
        ((x, good, good[:48]), y, "bias"),
        ((x, good.astype("bfloat16"), good), y, "scale has dtype bf16"),
        ((x, good, good), jax.ShapeDtypeStruct((4, 48), "float32"), "y"),
        ((x[:, :48], good, good), y, "x"),
        ((x, good), y, "layer_norm:infer has 3 inputs, not 2"),
        ((jnp.ones((4, 96), complex), good, good), y, "a norm takes arrays of float32"),
    ):
        with pytest.raises(Exception, match=said):
            jax.block_until_ready(jax.ffi.ffi_call("normc_infer", made)(*given, **attributes))
    row = jax.ffi.ffi_call("normc_infer", jax.ShapeDtypeStruct((96,), "float32"))
    with pytest.raises(Exception, match="features"):
        jax.block_until_ready(row(x[0, :48], good, good, **(attributes | {"rank": np.int32(1)})))


def test_forward_mode_and_second_derivatives_fail_loudly():
    x = jnp.ones((4, 96))
    with pytest.raises(TypeError, match="forward-mode|jvp"):
        jax.jvp(nj.layer_norm, (x,), (x,))
    of = jax.grad(lambda x: nj.layer_norm(x).sum())
    for second in (jax.grad(lambda x: of(x).sum()), jax.jacfwd(of)):
        with pytest.raises(TypeError, match="norms of normc have no second derivative, and a gradient of one was "
                                            "differentiated again; use the formula of the norm in jax.numpy there"):
            second(x)
