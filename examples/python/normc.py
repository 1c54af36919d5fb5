"""Compiled normalization layers for NumPy, over the C API of libnormc_runtime.

    package = normc.Package("norms.npk")
    layer = package.norm("power_norm", features=1024)
    y = layer.forward(x, scale=scale, bias=bias)
    dx, dscale, dbias = layer.backward(x, dy, scale=scale)
    layer.state["psi2"]                     # the state, as arrays that may be read and written

Needs nothing but NumPy and the library. Arrays are passed as they are, strides included; nothing is copied.
"""

import ctypes
import os

import numpy as np


class Error(RuntimeError):
    """A call that the library refused, with its sentence about it."""


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _DType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Request(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("problem", ctypes.c_char_p),
        ("isa_cap", ctypes.c_char_p),
        ("denormals", ctypes.c_int),
        ("max_threads", ctypes.c_int32),
        ("numbers", ctypes.c_void_p),
        ("number_count", ctypes.c_size_t),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("steady", ctypes.c_int32),
        ("output_reuse", ctypes.c_int32),
        ("one_kernel", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class _Number(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_double)]


class _Sizes(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("segments", ctypes.c_int64),
        ("rows", ctypes.c_int64),
        ("features", ctypes.c_int64),
    ]


class _Field(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("ndim", ctypes.c_int32),
        ("shape", ctypes.c_int64 * 4),
        ("offset", ctypes.c_size_t),
        ("bytes", ctypes.c_size_t),
        ("init", ctypes.c_double),
    ]


_TENSORS = ("x", "y", "dy", "dx", "scale", "bias", "dscale", "dbias", "mask")
_OUTPUTS = ("y", "dx", "dscale", "dbias")
_BUFFERS = ("state_in", "state_out", "saved", "workspace")


class _Args(ctypes.Structure):
    _fields_ = (
        [("struct_size", ctypes.c_size_t)]
        + [(name, ctypes.POINTER(_Tensor)) for name in _TENSORS]
        + [item for name in _BUFFERS for item in ((name, ctypes.c_void_p), (name + "_bytes", ctypes.c_size_t))]
        + [("state", ctypes.c_void_p), ("stream", ctypes.c_void_p)]
    )


_DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": np.uint16}
_FIELD_TYPES = (np.float32, np.float64, np.int64)
_CODES = {"f": 2, "u": 1, "i": 0, "b": 6}
_BFLOAT = 4
_OUT_OF_RANGE = 11


def _load():
    here = os.path.dirname(os.path.abspath(__file__))
    beside = os.path.join(here, "..", "..", "build", "lib", "libnormc_runtime.so")
    for path in (os.environ.get("NORMC_RUNTIME"), beside, "libnormc_runtime.so.0"):
        if path and (os.path.exists(path) or os.sep not in path):
            library = ctypes.CDLL(path)
            library.normc_last_error.restype = ctypes.c_char_p
            return library
    raise Error("libnormc_runtime.so was not found: build it, or name it in NORMC_RUNTIME")


_library = _load()


def _check(status):
    if status != 0:
        raise Error(_library.normc_last_error().decode())


class _Handle:
    """Owns a C object."""

    def __init__(self, kind, create, *arguments):
        self.pointer = ctypes.c_void_p()
        self._destroy = getattr(_library, f"normc_{kind}_destroy")
        _check(create(*arguments, ctypes.byref(self.pointer)))

    def __del__(self):
        if getattr(self, "pointer", None):
            self._destroy(self.pointer)


def _view(name, array, bfloat=False):
    """A DLPack view of an array, which the caller keeps alive. What DLPack cannot say is refused here."""
    if not isinstance(array, np.ndarray):
        raise Error(f"{name} is a {type(array).__name__}; it must be a NumPy array")
    if array.dtype.kind not in _CODES or not array.dtype.isnative:
        raise Error(f"{name} has dtype {array.dtype}, which has no name in DLPack")
    if any(stride % array.itemsize for stride in array.strides):
        raise Error(f"{name} has strides of {array.strides} bytes; they must be multiples of its elements' {array.itemsize}")
    if name in _OUTPUTS and not array.flags.writeable:
        raise Error(f"{name} is written, and is a read-only array")
    dims = ctypes.c_int64 * array.ndim
    tensor = _Tensor(data=array.ctypes.data, device=_Device(1, 0), ndim=array.ndim)
    tensor.dtype = _DType(_BFLOAT if bfloat else _CODES[array.dtype.kind], 8 * array.itemsize, 1)
    tensor.shape = dims(*array.shape)
    tensor.strides = dims(*(stride // array.itemsize for stride in array.strides))
    return tensor


class Plan:
    """One problem, served by the best kernel of a package. Shared freely between threads."""

    def __init__(self, package, problem, numbers=None, **options):
        values = [_Number(name.encode(), value) for name, value in (numbers or {}).items()]
        array = (_Number * len(values))(*values)
        request = _Request(problem=problem.encode(), numbers=ctypes.cast(array, ctypes.c_void_p), number_count=len(values))
        request.struct_size = ctypes.sizeof(request)
        for name, value in options.items():
            setattr(request, name, value.encode() if isinstance(value, str) else value)
        self.problem = problem
        self._bfloat = "@bf16" in problem, "params=bf16" in problem
        self._handle = _Handle("plan", _library.normc_plan_create, package._handle.pointer, ctypes.byref(request))
        self._bytes = {}

    def __str__(self):
        text = ctypes.c_char_p()
        _check(_library.normc_plan_describe(self._handle.pointer, ctypes.byref(text)))
        return text.value.decode()

    def buffer_bytes(self, what, segments, rows, features):
        """Bytes of "state", "saved" or "workspace" for these sizes."""
        key = what, segments, rows, features
        if key not in self._bytes:
            sizes, result = self._sizes(segments, rows, features), ctypes.c_size_t()
            query = getattr(_library, f"normc_plan_{what}_bytes")
            _check(query(self._handle.pointer, ctypes.byref(sizes), ctypes.byref(result)))
            self._bytes[key] = result.value
        return self._bytes[key]

    def fields(self, what, segments, rows, features):
        """The fields of "state" or "saved": name -> (dtype, shape, offset in bytes)."""
        sizes, result = self._sizes(segments, rows, features), {}
        query = getattr(_library, f"normc_plan_{what}_field")
        while True:
            field = _Field(struct_size=ctypes.sizeof(_Field))
            index = ctypes.c_size_t(len(result))
            status = query(self._handle.pointer, ctypes.byref(sizes), index, ctypes.byref(field))
            if status == _OUT_OF_RANGE:
                return result
            _check(status)
            result[field.name.decode()] = _FIELD_TYPES[field.type], tuple(field.shape[: field.ndim]), field.offset

    def init_state(self, memory, features):
        sizes = self._sizes(1, 0, features)
        _check(
            _library.normc_plan_state_init(
                self._handle.pointer, ctypes.byref(sizes), ctypes.c_void_p(memory.ctypes.data), ctypes.c_size_t(memory.nbytes)
            )
        )

    def execute(self, **arguments):
        """Runs the plan on named arrays: x, y, ..., mask; state_in, state_out, saved, workspace as bytes."""
        args = _Args(struct_size=ctypes.sizeof(_Args))
        keep = []
        for name, array in arguments.items():
            if array is None:
                continue
            if name in _BUFFERS:
                setattr(args, name, array.ctypes.data)
                setattr(args, name + "_bytes", array.nbytes)
            else:
                bfloat = self._bfloat[name not in ("x", "y", "dy", "dx")] and array.dtype == np.uint16
                keep.append(_view(name, array, bfloat))
                setattr(args, name, ctypes.pointer(keep[-1]))
        _check(_library.normc_execute(self._handle.pointer, ctypes.byref(args)))

    @staticmethod
    def _sizes(segments, rows, features):
        return _Sizes(ctypes.sizeof(_Sizes), segments, rows, features)


class Package:
    """An open .npk file. `threads`: how many to use at most; 0 is all."""

    def __init__(self, path, threads=0):
        options = _ContextOptions(max_threads=threads)
        options.struct_size = ctypes.sizeof(options)
        context = _Handle("context", _library.normc_context_create, ctypes.byref(options))
        self._handle = _Handle("package", _library.normc_package_open, context.pointer, os.fsencode(path))

    def plan(self, problem, numbers=None, **options):
        return Plan(self, problem, numbers, **options)

    def norm(self, name, features, **options):
        return Norm(self, name, features, **options)


class _ContextOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("parallel_for", ctypes.c_void_p),
        ("parallel_for_ctx", ctypes.c_void_p),
        ("log", ctypes.c_void_p),
        ("log_ctx", ctypes.c_void_p),
        ("max_threads", ctypes.c_int32),
    ]


class Norm:
    """A normalization layer with its state, for arrays of rows x features.

    `options` are those of the problem text, such as "heads=16,mask"; `numbers` replace numbers of the spec. A call of
    `backward` belongs to the last `forward`, unless it is given what that forward returned in `saved`.
    """

    def __init__(self, package, name, features, dtype="f32", options="", numbers=None, inference=False):
        self.features = features
        self._dtype = _DTYPES[dtype]
        params = next((part[7:] for part in options.split(",") if part.startswith("params=")), None)
        self._params = _DTYPES[params or ("f64" if dtype == "f64" else "f32")]
        tail = f"@{dtype}[*x{features}]" + (f"{{{options}}}" if options else "")
        entries = ("infer",) if inference else ("forward", "backward")
        self._plans = {}
        for entry in entries:
            self._plans[entry] = package.plan(f"{name}:{entry}{tail}", numbers)
        first = self._plans[entries[0]]
        self.memory = _aligned(first.buffer_bytes("state", 1, 0, features))
        if self.memory.size:
            first.init_state(self.memory, features)
        self.state = {
            field: self.memory[offset:].view(kind)[: int(np.prod(shape))].reshape(shape)
            for field, (kind, shape, offset) in first.fields("state", 1, 0, features).items()
        }
        self.saved = None
        self._workspace = _aligned(0)

    def forward(self, x, scale=None, bias=None, mask=None, update_state=True, out=None):
        """y. With update_state false the state stays as it is, as in the first pass of activations that are
        recomputed: the second, before backward, updates it, and sees the state that the first saw."""
        plan, rows = self._plans["forward"], x.size // self.features
        y = np.empty_like(x) if out is None else out
        self.saved = _aligned(plan.buffer_bytes("saved", 1, rows, self.features))
        plan.execute(
            x=x, y=y, scale=scale, bias=bias, mask=mask, saved=_or_none(self.saved), workspace=self._scratch(plan, rows),
            state_in=_or_none(self.memory), state_out=_or_none(self.memory) if update_state else None,
        )  # fmt: skip
        return y

    def backward(self, x, dy, scale=None, bias=None, mask=None, saved=None):
        """dx, dscale, dbias; the latter None where the norm has no scale or bias."""
        if saved is None and self.saved is None:
            raise Error("backward needs a forward before it")
        plan, rows = self._plans["backward"], x.size // self.features
        dx = np.empty_like(dy)
        dscale = None if scale is None else np.empty(self.features, self._params)
        dbias = None if bias is None else np.empty(self.features, self._params)
        plan.execute(
            x=x, dy=dy, dx=dx, scale=scale, bias=bias, dscale=dscale, dbias=dbias, mask=mask,
            saved=_or_none(self.saved if saved is None else saved), workspace=self._scratch(plan, rows),
            state_in=_or_none(self.memory), state_out=_or_none(self.memory),
        )  # fmt: skip
        return dx, dscale, dbias

    def infer(self, x, scale=None, bias=None, mask=None, out=None):
        plan, rows = self._plans["infer"], x.size // self.features
        y = np.empty_like(x) if out is None else out
        plan.execute(
            x=x, y=y, scale=scale, bias=bias, mask=mask, workspace=self._scratch(plan, rows), state_in=_or_none(self.memory)
        )
        return y

    def describe(self):
        return "\n".join(str(plan) for plan in self._plans.values())

    def _scratch(self, plan, rows):
        needed = plan.buffer_bytes("workspace", 1, rows, self.features)
        if self._workspace.size < needed:
            self._workspace = _aligned(needed)
        return _or_none(self._workspace)


def _aligned(size):
    """Bytes that begin at a multiple of 64."""
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size]


def _or_none(memory):
    return memory if memory.size else None
