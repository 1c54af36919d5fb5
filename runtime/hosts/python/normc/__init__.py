"""Normalization layers as compiled kernels, for PyTorch and JAX.

    import normc.torch as nt      # modules with the signatures of torch.nn
    import normc.jax as nj        # functions for jax.jit

`compiler` says how problems that the installed packages do not have are compiled.
"""

from ._library import Error, cache_folder, compiler

__version__ = "0.1.0"
__all__ = ["Error", "cache_folder", "compiler"]
