"""Rows over four devices of this process: shard_map, with and without its check of varying axes."""

import os

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import normc.jax as nj
import numpy as np
import pytest
from formulas import arrays, batch_norm, close, gradients, layer_norm
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P


@pytest.fixture
def mesh():
    return Mesh(jax.devices(), ("rows",))


@pytest.mark.parametrize("check", [True, False])
def test_norms_of_rows_run_on_their_shard(mesh, check):
    x, scale, bias, dy = arrays((8, 3, 96), -1, "float32")

    def gradients(norm):
        def loss(x, scale, bias):
            return (norm(x, scale, bias) * dy).sum()
        return jax.jit(jax.grad(loss, argnums=(0, 1, 2)))

    sharded = jax.shard_map(nj.layer_norm, mesh=mesh, in_specs=(P("rows"), P(), P()), out_specs=P("rows"),
                            check_vma=check)
    close(jax.jit(sharded)(x, scale, bias), layer_norm(x, scale, bias), 3e-5)
    close(gradients(sharded)(x, scale, bias), gradients(layer_norm)(x, scale, bias), 3e-5)
    text = jax.jit(sharded).lower(x, scale, bias).compile().as_text()
    assert "all-gather" not in text


def test_a_gradient_inside_shard_map(mesh):
    x, scale, bias, _ = arrays((8, 96), -1, "float32")

    def step(norm):
        return lambda x, scale: jax.grad(lambda s: jax.lax.psum((norm(x, s, bias) ** 3).sum(), "rows"))(scale)

    ours = jax.shard_map(step(nj.layer_norm), mesh=mesh, in_specs=(P("rows"), P()), out_specs=P())(x, scale)
    close(ours, jax.grad(lambda s: (layer_norm(x, s, bias) ** 3).sum())(scale), 1e-4)


def test_explicitly_sharded_arrays():
    """The axes of jax.make_mesh are Explicit: the type of an array says how it is divided."""
    mesh = jax.make_mesh((4,), ("rows",))
    given = arrays((8, 96), -1, "float32")[:3]
    divided = tuple(jax.device_put(value, NamedSharding(mesh, P("rows"))) for value in given)
    loss = lambda norm: jax.value_and_grad(lambda *given: (norm(*given) ** 3).sum(), argnums=(0, 1, 2))
    state = nj.init_state("power_norm", 96)
    divided_state = state | {"nu": jax.device_put(state["nu"], NamedSharding(mesh, P("rows")))}

    def next_nu(x, scale, bias, state):
        of = jax.grad(lambda s: (nj.power_norm(x, scale, bias, s)[0] ** 3).sum(), allow_int=True)
        return of(state)["nu"]

    with jax.set_mesh(mesh):
        close(loss(nj.layer_norm)(*divided), loss(layer_norm)(*given), 1e-4)
        close(jax.jit(loss(nj.layer_norm))(*divided), loss(layer_norm)(*given), 1e-4)
        close(jax.vmap(nj.layer_norm, (0, None, None))(divided[0], *given[1:]), layer_norm(*given), 3e-5)
        close(jax.jit(next_nu)(*divided, divided_state), next_nu(*given, state), 1e-4)


NORMS = {"batch_norm": nj.batch_norm, "power_norm_v": nj.power_norm_v, "power_norm": nj.power_norm}


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("name", NORMS)
def test_statistics_of_all_shards(mesh, name, check):
    """Steps over four shards are steps on one device: y, gradients and the state, which all shards have."""
    x, scale, bias, dy = arrays((16, 96), -1, "float32")

    def sharded(x, scale, bias, state):
        norm = lambda *a: NORMS[name](*a, training=True, axis_name="rows")
        return jax.shard_map(norm, mesh=mesh, in_specs=(P("rows"), P(), P(), P()), out_specs=(P("rows"), P()),
                             check_vma=check)(x, scale, bias, state)

    def steps(norm):
        def loss(x, scale, bias, state):
            y, after = norm(x, scale, bias, state)
            return (y * dy).sum(), (y, after)

        state, all_of = nj.init_state(name, 96), []
        step = jax.jit(jax.grad(loss, argnums=(0, 1, 2, 3), has_aux=True, allow_int=True))
        for number in range(3):
            (*gradients, cotangents), (y, after) = step((1 + number) * x, scale, bias, state)
            state = nj.next_state(after, cotangents)
            all_of.append((gradients, y, state))
        return all_of

    if name == "power_norm" and not check:
        said = ("the next nu of power_norm is a cotangent, which JAX would add over the shards of 'rows': divide the "
                "rows of x by a shard_map with check_vma=True")
        with pytest.raises(ValueError, match=said):
            steps(sharded)
        return
    close(steps(sharded), steps(lambda *a: NORMS[name](*a, training=True)), 1e-4)


def test_a_state_that_goes_through_two_calls_over_shards(mesh):
    x, scale, bias, dy = arrays((16, 96), -1, "float32")
    state = nj.init_state("power_norm", 96)

    def next_nu(norm):
        def loss(state):
            first, between = norm(x, state)
            second, _ = norm(2 * x, between)
            return ((first + second) * dy).sum()
        return jax.jit(jax.grad(loss, allow_int=True))(state)["nu"]

    sharded = jax.shard_map(lambda x, state: nj.power_norm(x, scale, bias, state, axis_name="rows"), mesh=mesh,
                            in_specs=(P("rows"), P()), out_specs=(P("rows"), P()))
    close(next_nu(sharded), next_nu(lambda x, state: nj.power_norm(x, scale, bias, state)), 1e-5)


def test_a_saved_step_over_shards(mesh, compiler):
    x, scale, bias, dy = arrays((16, 8), -1, "float32")
    norm = nj.Norm("batch_renorm", 8)

    def run(norm):
        def loss(*given):
            y, after = norm(*given, after_one)
            return (y * dy).sum(), after
        return jax.jit(jax.grad(loss, argnums=(0, 1, 2), has_aux=True))(x, scale, bias)

    after_one = norm(x, scale, bias, norm.init_state())[1]
    sharded = jax.shard_map(lambda *given: norm(*given, axis_name="rows"), mesh=mesh,
                            in_specs=(P("rows"), P(), P(), P()), out_specs=(P("rows"), P()))
    close(run(sharded), run(norm), 3e-5)


@pytest.fixture
def over_rows(tmp_path, compiler):
    """Returns a norm over rows without a state."""
    text = tmp_path / "over_rows.norm"
    text.write_text("""norm over_rows {
  reduce    rows
  center    current
  moment    central
  divide_by current
  backward  exact
  affine    scale, bias
  epsilon   1e-5
}
""")
    return nj.norm(text, 8)


def test_statistics_of_all_shards_without_a_state(mesh, over_rows):
    x, scale, bias, dy = arrays((16, 8), -1, "float32")
    run = lambda norm: jax.jit(lambda: gradients(norm, x, scale, bias, dy))()
    for training in (True, False):
        norm = lambda *given: over_rows(*given, training=training, axis_name="rows")
        sharded = jax.shard_map(norm, mesh=mesh, in_specs=(P("rows"), P(), P()), out_specs=P("rows"))
        close(run(sharded), run(batch_norm), 3e-5)
    each = jax.shard_map(lambda x: over_rows(x, axis_name=()), mesh=mesh, in_specs=P("rows"), out_specs=P("rows"))(x)
    close(each[:4], batch_norm(x[:4], 1.0, 0.0), 3e-5)
    with pytest.raises(ValueError, match=r"x has only the rows of one shard of 'rows'\. axis_name='rows' takes them "
                                         r"over all shards, axis_name=\(\) over the rows of each"):
        jax.shard_map(over_rows, mesh=mesh, in_specs=P("rows"), out_specs=P("rows"))(x)


def test_statistics_over_an_axis_of_vmap():
    x, scale, bias, _ = arrays((4, 4, 96), -1, "float32")
    state = nj.init_state("batch_norm", 96)
    norm = lambda x: nj.batch_norm(x, scale, bias, state, training=True, axis_name="parts")
    y, after = jax.vmap(norm, axis_name="parts")(x)
    close((y, jax.tree.map(lambda value: value[3], after)), nj.batch_norm(x, scale, bias, state, training=True), 3e-5)
    loss = lambda x: (norm(x)[0] ** 3).sum()
    whole = jax.grad(lambda x: (nj.batch_norm(x, scale, bias, state, training=True)[0] ** 3).sum())(x)
    close(jax.vmap(jax.grad(loss), axis_name="parts")(x), whole, 1e-4)
    with pytest.raises(NameError, match=r"unbound axis name: parts: JAX runs the backward of batch_norm_unbiased "
                                        r"outside of the vmap that has the axis; take the gradient inside of it, vmap"):
        jax.grad(lambda x: jax.vmap(loss, axis_name="parts")(x).sum())(x)


def test_statistics_of_one_shard_are_refused(mesh):
    x = arrays((8, 96), -1, "float32")[0]
    norm = lambda x, state: nj.batch_norm(x, None, None, state, training=True)
    state = nj.init_state("batch_norm", 96)
    with pytest.raises(ValueError, match="batch_norm_unbiased takes its statistics over rows, .* axis_name='rows' takes"):
        jax.shard_map(norm, mesh=mesh, in_specs=(P("rows"), P()), out_specs=(P("rows"), P()))(x, state)


def test_statistics_of_one_shard_are_refused_where_types_do_not_say_so(mesh):
    x, state = arrays((8, 96), -1, "float32")[0], nj.init_state("batch_norm", 96)

    def norm(x, **arguments):
        return nj.batch_norm(x, None, None, state, training=True, **arguments)[0]

    unchecked = lambda norm: jax.shard_map(norm, mesh=mesh, in_specs=P("rows"), out_specs=P("rows"), check_vma=False)
    said = (r"with check_vma=False JAX does not say whether x has only those of one shard of 'rows'\. axis_name='rows' "
            r"takes them over all shards, axis_name=\(\) over the rows of each")
    for run, given in ((unchecked(norm), x), (jax.pmap(norm, axis_name="rows"), x.reshape(4, 2, 96))):
        with pytest.raises(ValueError, match=said):
            run(given)
    each = unchecked(lambda x: norm(x, axis_name=()))(x)
    close(each[2:4], norm(x[2:4]), 3e-5)


def test_an_axis_that_is_left_out_is_refused():
    mesh = Mesh(np.reshape(jax.devices(), (2, 2)), ("a", "b"))
    x, both = arrays((8, 96), -1, "float32")[0], P(("a", "b"))
    state = nj.init_state("batch_norm", 96)

    def run(axis_name, own=(), out=P()):
        def norm(x, state):
            state = jax.lax.pcast(state, own, to="varying")
            y, after = nj.batch_norm(x, None, None, state, True, axis_name=axis_name)
            return y, after["running_mean"]
        return jax.shard_map(norm, mesh=mesh, in_specs=(both, P()), out_specs=(both, out))(x, state)

    y, after = nj.batch_norm(x, None, None, state, True)
    close(run(("a", "b")), (y, after["running_mean"]), 3e-5)
    with pytest.raises(ValueError, match=r"one shard of 'b', but .*=\('a', 'b'\) takes them .*pcast\(state, 'b'"):
        run("a")
    with pytest.raises(ValueError, match=r"one shard of \('a', 'b'\), but .* axis_name=\('a', 'b'\) takes"):
        run(())
    # A state of each half of the rows.
    y, mean = run("a", "b", P("b"))
    half = np.array([0, 1, 4, 5])
    close(y[half], nj.batch_norm(x[half], None, None, state, True)[0], 3e-5)
    close(mean[:96], 0.1 * x[half].mean(0), 3e-5)


def test_a_state_of_each_shard(mesh):
    x = arrays((8, 96), -1, "float32")[0]

    def each(x, state):
        y, state = nj.batch_norm(x, None, None, jax.lax.pcast(state, "rows", to="varying"), training=True)
        return y, jax.tree.map(lambda value: value[None], state)

    y, states = jax.shard_map(each, mesh=mesh, in_specs=(P("rows"), P()), out_specs=P("rows"))(
        x, nj.init_state("batch_norm", 96))
    for shard in range(4):
        rows = slice(2 * shard, 2 * shard + 2)
        alone, state = nj.batch_norm(x[rows], None, None, nj.init_state("batch_norm", 96), True)
        close(y[rows], alone, 0)
        close(jax.tree.map(lambda v: v[shard], states), state, 0)


def test_evaluation_runs_on_its_shard(mesh):
    x = arrays((8, 96), -1, "float32")[0]
    norm = lambda x, state: nj.batch_norm(x, None, None, state, training=False)[0]
    state = nj.init_state("batch_norm", 96)
    close(jax.shard_map(norm, mesh=mesh, in_specs=(P("rows"), P()), out_specs=P("rows"))(x, state), norm(x, state), 0)
