"""A norm of a text: its facts, and the shapes and types of what it takes and makes."""

import dataclasses
import functools
import math

import jax.numpy as jnp

from .._library import Library, check_numbers, is_alone

library = Library("jax")

NAMES = {jnp.dtype(name): short for name, short in
         {"float32": "f32", "float64": "f64", "bfloat16": "bf16", "float16": "f16"}.items()}
DTYPES = {"f32": jnp.float32, "f64": jnp.float64, "bf16": jnp.bfloat16, "f16": jnp.float16, "i8": jnp.int8,
          "e4m3": jnp.float8_e4m3fn, "e8m0": jnp.float8_e8m0fnu, "i64": jnp.int32}  # JAX has no int64 by default


@dataclasses.dataclass(frozen=True)
class Spec:
    """A norm of a text, as a static argument."""

    text: str
    name: str
    features: int
    segmented: bool
    channels_first: bool

    def facts(self, entry, dtype, mask=False):
        return library.facts(self.text, entry, NAMES[jnp.dtype(dtype)], "", mask)

    def check(self, numbers, dtype, mask=False):
        """Raises if the norm has no number of a name."""
        check_numbers(library, self.text, numbers, NAMES[jnp.dtype(dtype)], "", mask)

    def sizes(self, x):
        leading = x.shape if self.channels_first else x.shape[:-1]
        if not self.segmented:
            return {"segments": 1, "rows": math.prod(leading), "features": self.features}
        rows = x.shape[2:] if self.channels_first else x.shape[1:-1]
        return {"segments": x.shape[0], "rows": math.prod(rows), "features": self.features}

    @functools.lru_cache(maxsize=None)
    def each_row_alone(self, dtype, mask):
        """True if each row, or segment, has statistics of its own: so a batch under vmap is just more of them."""
        known = self.facts("forward", dtype, mask)
        return is_alone("segments" if self.segmented else "rows", known) and all(
            each["shape"] in ("elements", "pairs", "blocks") for each in known["around"])

    @functools.lru_cache(maxsize=None)
    def over_rows(self, dtype, mask):
        """True if a statistic is one of all rows, so one of a batch that is divided needs the rows of all shards."""
        known = self.facts("forward", dtype, mask)
        return bool(known["state"]) or any(
            not {"segments", "rows"}.intersection(field["shape"]) for field in known["saved"])


def field_shape(field, sizes, segmented):
    return tuple(sizes.get(axis, axis) for axis in field["shape"] if axis != 1 and (segmented or axis != "segments"))


def around_shape(spec, x, each):
    sizes = spec.sizes(x)
    return {"elements": x.shape, "segments": (sizes["segments"], sizes["features"]),
            "features": (sizes["features"],), "pairs": (*x.shape[:-1], each["pairs"]), "one": (1,),
            "blocks": (*x.shape[:-1], each["blocks"]) if each["blocks"] else x.shape[:-1]}[each["shape"]]
