"""States whose fields backward makes: their cotangent is their next value."""

import jax
from jax.extend import core
from jax.interpreters import ad, batching, mlir

# A field of a state whose cotangent is its next value, and after it all else that a call is given. In grad(vmap(...))
# the rule of vmap comes first, and notes that a batch shares the field. In vmap(grad(...)) the rule of the gradient
# comes first, and each element has a cotangent of its own.
_carries = core.Primitive("normc_carries")
_carries.def_impl(lambda value, *_, **__: value)
_carries.def_abstract_eval(lambda value, *_, **__: value)
mlir.register_lowering(_carries, lambda _, value, *__, **___: [value])


def _carries_batch(values, dims, *, shared, **names):
    return _carries.bind(*values, shared=shared or dims[0] is None, **names), dims[0]


def _carries_gradient(values, tangents, *, shared, norm, field):
    if shared and not isinstance(tangents[0], ad.Zero):
        raise ValueError(
            f"the next {field} of {norm} is a cotangent, which JAX would add over the batch of vmap, since the batch "
            "shares one state: give each element a state of its own (in_axes=0), take the gradient inside of vmap, or "
            "call the norm with the whole batch")
    return values[0], tangents[0]


batching.primitive_batchers[_carries] = _carries_batch
ad.primitive_jvps[_carries] = _carries_gradient


def carrying(spec, x, state, others):
    """Returns a state. A gradient of it raises if vmap gives one state to a batch of x or of others."""
    rest = jax.tree.leaves((x, others, state))
    return tuple(_carries.bind(value, *rest, shared=False, norm=spec.name, field=field["name"])
                 if field["written"] else value
                 for field, value in zip(spec.facts("backward", x.dtype)["state"], state))
