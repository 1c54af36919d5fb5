"""Types of arrays in a shard_map, and on a mesh: along which axes an array varies."""

import jax
import jax.numpy as jnp


def varying(value):
    """Returns the axes of a shard_map along which an array varies."""
    kind = jax.typeof(value)
    return kind.mat.varying if hasattr(kind, "mat") else getattr(kind, "vma", frozenset())


def unchecked_axes():
    """Returns the axes of a shard_map, or pmap, in which types do not say what varies."""
    axes = tuple(jax.sharding.get_abstract_mesh().manual_axes)
    return axes if axes and not varying(jax.lax.pcast(jnp.zeros(()), axes, to="varying")) else ()


def replicated(tree):
    """Returns arrays that each device has whole, of those that a mesh with Explicit axes divides: so a gradient, which
    a custom call makes, has the type of its array."""
    def whole(value):
        sharding = jax.typeof(value).sharding
        if jax.sharding.AxisType.Explicit not in sharding.mesh.axis_types or not any(sharding.spec):
            return value
        return jax.sharding.reshard(value, jax.sharding.NamedSharding(sharding.mesh, jax.sharding.PartitionSpec()))

    return jax.tree.map(whole, tree)


def together(tree):
    """Returns arrays that all vary along the same axes. The transpose sums gradients of what was replicated."""
    everywhere = frozenset().union(*map(varying, jax.tree.leaves(tree)))
    if not everywhere:
        return tree
    return jax.tree.map(lambda v: jax.lax.pcast(v, tuple(everywhere - varying(v)), to="varying"), tree)


def result_type(shape, dtype, like):
    """Returns the type of a result. In shard_map it varies along the axes along which `like` does."""
    kind = jax.typeof(like)
    if not hasattr(kind, "mat"):
        return jax.ShapeDtypeStruct(shape, dtype, vma=getattr(kind, "vma", None))
    if kind.mat.empty:
        return jax.ShapeDtypeStruct(shape, dtype)
    sharding = jax.sharding.NamedSharding(kind.sharding.mesh, jax.sharding.PartitionSpec())
    return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding, manual_axis_type=kind.mat)
