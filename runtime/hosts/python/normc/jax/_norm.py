"""Norms as functions of arrays, for any text, and the checks that they make while JAX traces them."""

import collections
import dataclasses
import functools

import jax
import jax.numpy as jnp

from .. import _around, _library
from . import _carries, _gradients, _shards, _spec

_SHAPES = {"features_last": "*x{}", "segments": "*x*x{}", "channels_first": "*x{}x*"}
_TAKES = {"features_last": "[..., {}]", "segments": "[batch, positions..., {}]",
          "channels_first": "[batch, {}, positions...]"}


class Norm:
    """A norm of any text: a pure function, for jit, grad, vmap, scan and shard_map.

    name        a norm that is built in, or what `normc._library.add_norm` returns
    features    the size of the last dimension, or of dimension 1 with layout="channels_first"
    options     what the norm leaves open: {"groups": 32}
    numbers     values that replace those of the text: {"epsilon": 1e-6}. JAX compiles and keeps a function for each
    round       "normalized": forward rounds what the affine takes to the type of x, if that has 16 bits, as the code
                of Llama does; for norms of rows (docs/language.md)
    layout      "features_last": [..., features]; "segments": [batch, positions..., features];
                "channels_first": [batch, features, positions...]

    A norm without a state returns y, and one with a state returns y and the next state, a dict of arrays.
    """

    def __init__(self, name, features, *, options=None, numbers=None, round=None, layout="features_last"):
        if layout not in _SHAPES:
            raise ValueError(f"layout is {layout!r}; known are {', '.join(map(repr, _SHAPES))}")
        self.name, self.features, self.layout = name.split("#")[0], features, layout
        self._spec = _spec.Spec(_library.text(name, _SHAPES[layout].format(features), options, numbers, round),
                                self.name, features, layout != "features_last", layout == "channels_first")
        _library.check_rounding(_spec.library, self._spec.text)
        self._numbers = set(numbers or ())

    def __repr__(self):
        return f"normc.jax.Norm({self._spec.text!r})"

    def init(self, dtype=jnp.float32):
        """Returns scale and bias, those that the norm has, as a dict: a factor of 1, and a bias of 0."""
        known = self._facts(dtype)
        starts = {"scale": known["neutral_scale"], "bias": 0.0}
        return {name: jnp.full(self.features, start, dtype) for name, start in starts.items() if known[name]}

    def init_state(self, dtype=jnp.float32):
        """Returns the state before the first step, for data of a type."""
        sizes = {"features": self.features}
        return {field["name"]: jnp.full(_spec.field_shape(field, sizes, False), field["init"],
                                        _spec.DTYPES[field["dtype"]])
                for field in self._facts(dtype)["state"]}

    @property
    def carried(self):
        """The fields of the state that backward changes: their cotangent is their next value."""
        return tuple(field["name"] for field in self._facts(jnp.float32, "backward")["state"] if field["written"])

    def __call__(self, x, scale=None, bias=None, state=None, *, training=True, mask=None, axis_name=None, **around):
        """Returns y, or (y, next state) if the norm has a state; (y, residual_out) stand for y where the norm has a
        stream of residuals. A factor that is left out is 1, a bias 0.

        mask        bool, in the shape of x without features; True for real rows
        around      the tensors that the norm takes beside x: residual, gate, mod_scale, mod_shift,
                    rope_cos, rope_sin (docs/around-a-norm.md). A residual in front of the norm may have another type
                    than x: that of the stream, which residual_out and its gradients have too
        axis_name   axes of a shard_map over which the rows are divided: statistics are those of all shards; with ()
                    those of the rows of each shard. Norms of each row need none
        """
        x = jnp.asarray(x)
        self._check_x(x)
        spec = self._streamed(x, mask, around)
        known = self._facts(x.dtype, mask=mask is not None, spec=spec)
        parameter = jnp.float64 if x.dtype == jnp.float64 else jnp.float32
        scale = self._parameter("scale", scale, known["scale"], parameter, known["neutral_scale"])
        bias = self._parameter("bias", bias, known["bias"], parameter, 0.0)
        mask = self._mask(mask, x)
        fields = self._fields(state, known["state"])
        around = self._beside(x, around, known)
        axes = axis_name if isinstance(axis_name, tuple) else () if axis_name is None else (axis_name,)
        if around and axes:
            raise ValueError(f"{self.name} takes tensors beside x; axis_name is for norms that take none")
        x, scale, bias, mask, around, fields = _shards.replicated((x, scale, bias, mask, around, fields))
        x, scale, bias, mask, around = _shards.together((x, scale, bias, mask, around))
        if fields and training and not known["codes"]:
            fields = _carries.carrying(spec, x, fields, (scale, bias, mask, around))
        of_batch = spec.over_rows(x.dtype, mask is not None) and (training or not fields)
        if of_batch and axis_name is None:
            self._check_said()
        if of_batch and (fields or axis_name is None):
            self._check_shards(x, fields, axes)
        if of_batch and axes:
            if self.carried and not _shards.varying(x).issuperset(axes):
                raise ValueError(
                    f"the next {', '.join(self.carried)} of {self.name} is a cotangent, which JAX would add over the "
                    f"shards of {', '.join(map(repr, axes))}: divide the rows of x by a shard_map with check_vma=True")
            y, following = _gradients.train_over(spec, axes, x, scale, bias, mask, fields)
        elif known["codes"]:
            y, following = _gradients.quantized(spec, training, x, scale, bias, mask, fields, around)
            y = y if y[1:] else y[0]
        elif training or not fields:
            made, following = _gradients.train(spec, x, scale, bias, mask, fields, around)
            y = made if made[1:] else made[0]
        else:
            made, following = _gradients.evaluate(spec, x, scale, bias, mask, fields, around), fields
            y = made if made[1:] else made[0]
        if not fields:
            return y
        return y, {field["name"]: value for field, value in zip(known["state"], following)}

    def _facts(self, dtype, entry="forward", mask=False, spec=None):
        self._check_type(dtype)
        spec = spec or self._spec
        spec.check(self._numbers, dtype, mask)
        return spec.facts(entry, dtype, mask)

    def _streamed(self, x, mask, around):
        """Returns the spec of a call: with the type of the stream, if a residual has another type than x."""
        residual = around.get("residual")
        if residual is None or jnp.result_type(residual) == x.dtype or "stream=" in self._spec.text:
            return self._spec
        kind = jnp.result_type(residual)
        if kind not in _spec.NAMES:
            raise TypeError(f"{self.name} takes float32, float64, bfloat16 or float16 for residual, not {kind}")
        of = lambda text: dataclasses.replace(self._spec, text=text)
        facts = lambda text: of(text).facts("forward", x.dtype, mask is not None)
        return of(_around.streamed(self._spec.text, _spec.NAMES[x.dtype], _spec.NAMES[kind], facts))

    def _check_type(self, dtype):
        if jnp.dtype(dtype) not in _spec.NAMES:
            raise TypeError(f"{self.name} takes float32, float64, bfloat16 or float16, not {jnp.dtype(dtype)}")

    def _check_x(self, x):
        self._check_type(x.dtype)
        axis, least = {"features_last": (-1, 1), "segments": (-1, 3), "channels_first": (1, 3)}[self.layout]
        if x.ndim < least or x.shape[axis] != self.features:
            raise ValueError(f"x has the shape {list(x.shape)}; {self.name} takes "
                             f"{_TAKES[self.layout].format(self.features)}")

    def _parameter(self, what, value, has, dtype, start):
        if not has:
            if value is not None:
                raise ValueError(f"{self.name} has no {what}, but one is given")
            return None
        if value is None:
            return jnp.full(self.features, start, dtype)
        value = jnp.asarray(value)
        if value.shape != (self.features,):
            raise ValueError(f"{what} has the shape {list(value.shape)}; {self.name} takes [{self.features}]")
        if not jnp.issubdtype(value.dtype, jnp.floating) or value.dtype.itemsize > jnp.dtype(dtype).itemsize:
            raise TypeError(f"{what} has the type {value.dtype}; {self.name} computes with {jnp.dtype(dtype)}")
        return value.astype(dtype)

    def _beside(self, x, around, known):
        inputs, _ = _around.inputs_of(known)
        rows = {each["name"]: each for each in known["around"]}
        made = []
        for name, value in zip(inputs, _around.ordered(self.name, inputs, around)):
            value, shape = jnp.asarray(value), _spec.around_shape(self._spec, x, rows[name])
            value = value.reshape(shape) if rows[name]["shape"] == "one" and value.size == 1 else value
            kind = _spec.DTYPES[rows[name]["dtype"]]
            if value.shape != shape or value.dtype != kind:
                raise ValueError(f"{name} is {value.dtype}{list(value.shape)}; {self.name} takes "
                                 f"{jnp.dtype(kind)}{list(shape)}")
            made.append(value)
        return tuple(made)

    def _mask(self, mask, x):
        if mask is None:
            return None
        mask = jnp.asarray(mask)
        shape = (x.shape[0], *x.shape[2:]) if self.layout == "channels_first" else x.shape[:-1]
        if mask.shape != shape or mask.dtype != jnp.bool_:
            raise ValueError(f"mask is {mask.dtype}{list(mask.shape)}; {self.name} takes bool{list(shape)}")
        return mask

    def _fields(self, state, wanted):
        names = [field["name"] for field in wanted]
        if state is None and names:
            raise ValueError(f"{self.name} has a state: give one with {', '.join(names)} (init_state makes it)")
        if set(state or ()) != set(names):
            raise ValueError(f"{self.name} has a state of {', '.join(names) or 'no fields'}; "
                             f"given are {', '.join(state) or 'none'}")
        fields = []
        for field in wanted:
            value = jnp.asarray(state[field["name"]])
            shape = _spec.field_shape(field, {"features": self.features}, False)
            fits = (jnp.issubdtype(value.dtype, jnp.integer) and jnp.iinfo(value.dtype).bits >= 8
                    if field["dtype"] == "i64" else value.dtype == _spec.DTYPES[field["dtype"]])
            if value.shape != shape or not fits:
                raise ValueError(f"{field['name']} of the state is {value.dtype}{list(value.shape)}; {self.name} "
                                 f"takes {jnp.dtype(_spec.DTYPES[field['dtype']])}{list(shape)}")
            fields.append(value)
        return tuple(fields)

    def _check_said(self):
        """Raises where only axis_name can say which rows a statistic is of."""
        axes = _shards.unchecked_axes()
        if axes:
            raise ValueError(
                f"{self.name} takes its statistics over rows, and in pmap and with check_vma=False JAX does not say "
                f"whether x has only those of one shard of {_named(axes)}. axis_name={_named(axes)} takes them over "
                "all shards, axis_name=() over the rows of each, whose state is then its own")

    def _check_shards(self, x, fields, given):
        """Raises if statistics would be those of some shards, and the call does not say so. Those of the axes that are
        `given` are gathered."""
        axes = _shards.varying(x) - frozenset(given)
        if fields:
            axes = frozenset().union(*(axes - _shards.varying(value) for value in fields))
        if axes:
            one = (f"{self.name} takes its statistics over rows, and in this shard_map x has only the rows of one "
                   f"shard of {_named(axes)}")
            if fields:
                raise ValueError(
                    f"{one}, but the state is that of all. axis_name={_named(axes.union(given))} takes them over all "
                    f"shards; for a state of each shard give one that varies: jax.lax.pcast(state, {_named(axes)}, "
                    "to='varying')")
            raise ValueError(f"{one}. axis_name={_named(axes)} takes them over all shards, axis_name=() over the rows "
                             "of each")


def _named(axes):
    """Returns axes as an argument is written: 'a', or ('a', 'b')."""
    axes = tuple(sorted(axes))
    return repr(axes if len(axes) > 1 else axes[0])


def norm(path, features, **arguments):
    """Returns the norm of a .norm file, with the arguments of `Norm`. The compiler has to be installed: it compiles
    the norm at the first use, in a process of its own, into the user's cache."""
    return Norm(_library.add_norm(path), features, **arguments)


@functools.lru_cache(maxsize=None)
def cached(name, features, layout, options=(), numbers=(), round=None):
    return Norm(name, features, layout=layout, options=dict(options), numbers=dict(numbers), round=round)


def next_state(state, cotangents, carried=("nu", "window_nu")):
    """Returns the state after a step: that of forward, with the fields that backward changed.

    Backward of PowerNorm makes the next nu. A gradient is the only thing that JAX lets a backward return, so the
    cotangent of nu *is* the next nu, to be stored instead of added:

        def loss(params, state, x):
            y, state = nj.power_norm(x, params["scale"], params["bias"], state)
            return jnp.mean(y**2), state

        gradients = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True, allow_int=True)
        (value, after), (grads, cotangents) = gradients(params, state, x)
        state = nj.next_state(after, cotangents)

    A cotangent of 0 is that of a state from which no backward made a nu: in evaluation, or where the loss does not use
    the norm. Then nu stays.

    state        what forward returned: states of norms, nested as a model likes it. An array lies below the name of its
                 field, in a box of one array too
    cotangents   of the state that forward was given, in the same tree
    carried      names of the fields: those of all norms, or Norm.carried of one
    """
    leaves, tree = jax.tree_util.tree_flatten_with_path(state)
    names = _names_of_arrays([path for path, _ in leaves])
    fields = [next((name for name in reversed(each) if name in carried), "") for each in names]
    if carried and not any(fields) and not all(names):
        unnamed = jax.tree_util.keystr(leaves[names.index([])][0]) or "its root"
        raise ValueError(f"the state has no {' or '.join(carried)}, and its array at {unnamed} has no name, so what "
                         "backward changed would be lost: give dicts, dataclasses or named tuples with the names of "
                         "the fields, or carried=() if backward changes none")

    def chosen(field, value, cotangent):
        if not field:
            return value
        rank = min(jnp.ndim(cotangent), 2 if field.startswith("window") else 1)  # of one state; others stack states
        made = jnp.any(cotangent != 0, axis=tuple(range(-rank, 0)), keepdims=True)
        return jnp.where(made, cotangent, value)

    return jax.tree.map(chosen, jax.tree.unflatten(tree, fields), state, cotangents)


def _names_of_arrays(paths):
    """Returns the names in each path below which no other array is: a module may have the name of a field."""
    below = collections.Counter(path[:depth] for path in paths for depth in range(1, len(path) + 1))
    return [[name for depth, entry in enumerate(path, 1) if below[path[:depth]] == 1
             for name in [getattr(entry, "key", getattr(entry, "name", None))] if isinstance(name, str)]
            for path in paths]
