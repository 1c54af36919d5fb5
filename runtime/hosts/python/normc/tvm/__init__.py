"""The functions of normc for tvm-ffi: calls without a framework's dispatch, with tensors of any framework.

    from normc import tvm
    norms = tvm.load()
    norms.infer("layer_norm[*x768] epsilon=1e-05", x, scale, bias, None, y)      # results are arguments

runtime/hosts/tvm/Functions.cpp says which arguments each entry has. A library for a host without Python is
`tvm.library.path`.
"""

import functools

import tvm_ffi

from .._library import Library

library = Library("tvm_ffi")


@functools.cache
def load():
    """Returns the module with the functions forward, backward, infer and infer_backward."""
    return tvm_ffi.load_module(library.path)
