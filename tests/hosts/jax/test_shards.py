"""Rows over four devices of this process: shard_map, with and without its check of varying axes."""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import normc.jax as nj
import pytest
from formulas import arrays, close, layer_norm
from jax.sharding import Mesh, PartitionSpec as P


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


def test_statistics_of_all_shards_are_refused(mesh):
    x = arrays((8, 96), -1, "float32")[0]
    norm = lambda x, state: nj.batch_norm(x, None, None, state, training=True)
    state = nj.init_state("batch_norm", 96)
    with pytest.raises(ValueError, match="batch_norm_unbiased takes its statistics over rows, and in this shard_map"):
        jax.shard_map(norm, mesh=mesh, in_specs=(P("rows"), P()), out_specs=(P("rows"), P()))(x, state)


def test_a_state_of_each_shard(mesh):
    x = arrays((8, 96), -1, "float32")[0]

    def each(x, state):
        y, state = nj.batch_norm(x, None, None, jax.lax.pcast(state, "rows", to="varying"), training=True)
        return y, jax.tree.map(lambda value: value[None], state)

    y, states = jax.shard_map(each, mesh=mesh, in_specs=(P("rows"), P()), out_specs=P("rows"))(
        x, nj.init_state("batch_norm", 96))
    for shard in range(4):
        alone, state = nj.batch_norm(x[2 * shard : 2 * shard + 2], None, None, nj.init_state("batch_norm", 96), True)
        close(y[2 * shard : 2 * shard + 2], alone, 0)
        close(jax.tree.map(lambda v: v[shard], states), state, 0)


def test_evaluation_runs_on_its_shard(mesh):
    x = arrays((8, 96), -1, "float32")[0]
    norm = lambda x, state: nj.batch_norm(x, None, None, state, training=False)[0]
    state = nj.init_state("batch_norm", 96)
    close(jax.shard_map(norm, mesh=mesh, in_specs=(P("rows"), P()), out_specs=P("rows"))(x, state), norm(x, state), 0)
