"""The libraries of operators: where they are, and how they are set up.

Each host has a library of its own (lib/libnormc_torch.so, lib/libnormc_jax.so), and each library finds the
packages of the built-in norms beside it. What a user adds goes to all libraries that are loaded, and to those
that are loaded later.
"""

import ctypes
import functools
import hashlib
import json
import logging
import operator
import os
import pathlib
import re
import secrets
import threading

_HERE = pathlib.Path(__file__).absolute().parent
_log = logging.getLogger("normc")
_LINE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
_warned = set()  # reasons why something could not be compiled


@_LINE
def _say(_, line):
    """Logs a line of a library. A kernel for any number of features may serve where none could be compiled, so this is
    a warning, once for each reason."""
    line = line.decode()
    failed, _, reason = line.partition(": ")
    is_new = failed.startswith("could not compile ") and reason not in _warned
    if is_new:
        _warned.add(reason)
    _log.log(logging.WARNING if is_new else logging.INFO, "%s", line)


# What an error says where a kernel is missing and nothing compiles it: without a compiler, and after compiler("").
INSTALL = "install normc-compiler"
OFF = 'compiling is off: normc.compiler("") was called'


class Error(RuntimeError):
    """A call that normc refused, with its reason."""


def cache_folder():
    """Returns the folder of packages that were compiled at first use."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "normc")


def _installed_compiler():
    try:
        import normc_compiler
    except ImportError:
        return ""
    return normc_compiler.program()


class Library:
    """One library of operators."""

    def __init__(self, name):
        self.path = str(_HERE / "lib" / f"libnormc_{name}.so")
        if not os.path.exists(self.path):
            raise ImportError(f"this installation of normc has no {os.path.basename(self.path)}: the host was not there, or "
                              "was too old, when normc was built; install it, then normc again")
        self._c = ctypes.CDLL(self.path)
        for function in ("add_package", "add_norm", "set_compiler", "set_log", "describe"):
            getattr(self._c, "normc_hosts_" + function).restype = ctypes.c_char_p
        self.call("set_log", _say)
        self.facts = functools.lru_cache(maxsize=None)(self._facts)
        with _lock:
            for function, arguments in _settings:
                self.call(function, *arguments)
            _libraries.append(self)

    def call(self, function, *arguments):
        coded = [a.encode() if isinstance(a, str) else a for a in arguments]
        reason = getattr(self._c, "normc_hosts_" + function)(*coded)
        if reason:
            text = reason.decode()
            for kept, path in list(_files.items()):  # another thread may add a norm
                text = text.replace(kept, path)
            raise Error(text)

    def _facts(self, norm, entry, data, params="", mask=False, cuda=-1):
        """Returns what is known of an operator before it runs: see Configure.h."""
        text = ctypes.c_char_p()
        self.call("describe", norm, entry, data, params, int(mask), cuda, ctypes.byref(text))
        return json.loads(text.value)


def is_alone(axis, known):
    """True if each element of an axis, of rows or segments, has statistics of its own, by the facts of a forward: then a
    batch in front of x is just more of them."""
    return not known["state"] and bool(known["saved"]) and all(axis in field["shape"] for field in known["saved"])


_lock = threading.RLock()  # of the lists: a library that is loaded while another thread sets something has that too
_libraries = []
_settings = []
_files = {}  # which file of the user a text in the cache is: an error has its place there


def settings():
    """Returns how often packages, norms and compilers were set: what was not served may be served after one more."""
    return len(_settings)


def _set(function, *arguments):
    with _lock:
        for library in _libraries:
            library.call(function, *arguments)
        _settings.append((function, arguments))


def compiler(program="", cache=""):
    """Sets the program `normc` that compiles missing problems, and its cache; an empty program: none."""
    _warned.clear()
    _set("set_compiler", program or "", cache or cache_folder())


def _name_of(path, written):
    """Returns the name of the norm of a file: that which no other norm of it is made from."""
    text = re.sub("//[^\n]*", "", written.decode("utf-8-sig", "replace"))
    bases = dict(re.findall(r"\bnorm\s+([A-Za-z_]\w*)(?:\s+from\s+([A-Za-z_]\w*))?\s*\{", text))
    if not bases:
        raise Error(f"{path} defines no norm: write one as 'norm NAME {{ ... }}'")
    last = [name for name in bases if name not in bases.values()]
    if len(last) != 1:
        raise Error(f"{path} defines {', '.join(bases)}, and takes one norm that no other of the file is made from; "
                    "give each of them a file of its own")
    return last[0]


def _place(source):
    """Returns where the text of a norm lies in the cache of the compiler."""
    caches = [arguments[1] for function, arguments in _settings if function == "set_compiler"]
    return pathlib.Path(caches[-1] if caches else cache_folder()).absolute() / "norms" / (source + ".norm")


def _kept(source, written):
    """Puts the text of a norm into the cache, and returns where: its file may change or go while the process runs, and
    a cache of another day may be asked for it."""
    kept = _place(source)
    if kept.exists():
        return kept
    draft = kept.with_suffix("." + secrets.token_hex(8))  # threads and processes may keep it at the same time
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(written)
        draft.replace(kept)
    except OSError as error:
        raise Error(f"the text of a norm is kept in {kept.parent}, which cannot be written: {error}; choose a folder "
                    "with normc.compiler(program, cache)") from None
    return kept


def add_norm(path):
    """Adds the norm of a .norm file: of several, that which no other of the file is made from. Returns its name and
    its source: what stands before the shape in a text."""
    try:
        written = pathlib.Path(path).read_bytes()
    except FileNotFoundError:
        if not re.fullmatch(r"\w+", str(path)):
            raise
        raise FileNotFoundError(f"no file '{path}'; norm() reads a .norm file, Norm('{path}', features) takes a built-in "
                                "norm") from None
    name = _name_of(path, written)
    source = hashlib.sha256(written).hexdigest()[:12]
    kept = str(_kept(source, written))
    _files[kept] = str(path)
    _set("add_norm", source, kept)
    return f"{name}#{source}"


def add_kept(text):
    """Adds the norm of a user that a text names, as add_norm did in another process, if the cache has it."""
    source = re.match(r"[^[#]*#(\w+)", text)
    added = {arguments[0] for function, arguments in _settings if function in ("add_norm", "add_package")}
    if source and source[1] not in added and _place(source[1]).exists():
        _set("add_norm", source[1], str(_place(source[1])))


def add_package(path, norm):
    """Adds a package that has a norm. Returns the norm's name and source."""
    path = str(pathlib.Path(path).resolve())
    source = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()[:12]
    _set("add_package", source, path)
    return f"{norm}#{source}"


def rounding(round):
    """Returns what `round` of a norm is, if it is known."""
    if round not in (None, "normalized"):
        raise ValueError(f"round is {round!r}; known are None and 'normalized'")
    return round


def group_count(groups):
    """Returns the number of groups of a group norm. Raises if it is no integer: other norms take a scale at its place."""
    try:
        return operator.index(groups)
    except TypeError:
        raise TypeError("group_norm takes the number of groups as its second argument, an integer, not "
                        f"{type(groups).__name__}") from None


def _option(name, value):
    """Returns an option as it stands in a text."""
    if name in ("layout", "mask", "params", "y"):
        raise ValueError(f"options has {name}={value!r}, but types and the mask follow from the arrays of a call, and "
                         "layout is an argument; give what the norm leaves open, e.g. groups, or its stream or round")
    try:
        return f"{name}={value if isinstance(value, str) else operator.index(value)}"
    except TypeError:
        raise TypeError(f"options has {name}={value!r}; give an integer or a word") from None


def _number(name, value):
    """Returns a number as it stands in a text."""
    if type(value) in (int, float):
        return f"{name}={value!r}"
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return f"{name}={float(value)!r}"
    except TypeError:
        raise TypeError(f"numbers has {name}={value!r}; give a number, whose value is known when the norm is made"
                        ) from None


def text(norm, shape, options=None, numbers=None, round=None):
    """Returns the text of a norm: `layer_norm[*x768] epsilon=1e-06` (NormText.h)."""
    if norm.endswith(".norm"):
        raise ValueError(f"{norm} is a file, and a norm is named here; normc.torch.norm and normc.jax.norm take the "
                         "file")
    options = dict(options or {}, **({"round": round} if rounding(round) else {}))
    inside = ",".join(_option(name, value) for name, value in sorted(options.items()))
    parts = [f"{norm}[{shape}]" + (f"{{{inside}}}" if inside else "")]
    parts += [_number(name, value) for name, value in (numbers or {}).items()]
    return " ".join(parts)


def _named(norm):
    """Returns the name of the norm of a text."""
    return re.match("[^[#]*", norm)[0]


def check_numbers(library, norm, numbers, *request):
    """Raises if the norm of a text has no number of a name. All entries of a norm have the same numbers."""
    known = library.facts(norm.split(" ")[0], "forward", *request)["numbers"]
    unknown = set(numbers or ()) - set(known)
    if unknown:
        raise ValueError(f"{_named(norm)} has no number {', '.join(sorted(unknown))}; "
                         f"it has {', '.join(sorted(known))}")


def check_rounding(library, norm):
    """Raises if a text rounds what its affine takes, and the language has no such norm (P16). Data of f32 are not
    rounded, so this asks for bf16."""
    if "round=" not in norm:
        return
    try:
        library.facts(norm, "infer", "bf16")
    except Error as error:
        refused = re.search(r"error: (.*\[P16\])", str(error))
        if refused:  # else it is the first call that needs a kernel which is not there
            raise ValueError(f"{refused[1]}; leave round out") from None


if _installed_compiler():
    compiler(_installed_compiler())
