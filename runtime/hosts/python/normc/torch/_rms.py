"""RMS norms that models define themselves, as Llama's code does: what a forward computes, by its graph."""

import functools
import itertools
from types import FunctionType, MethodType

import torch
import torch.fx

from . import _autograd, _ops
from .functional import row_text

# The graph of a forward as text -> a norm, and its rounding. `wide` is a cast to f32, `cast` one to the type of x, x0
# the normalized value in f32.
_KNOWN = {
    "mul(cast(x0),w)": ("rms_norm", "normalized"),  # Llama, Mistral, Qwen: the cast stands before the weight
    "cast(mul(x0,w))": ("rms_norm", None),          # OLMo
    "cast(mul(x0,wide(w)))": ("rms_norm", None),
    "cast(mul(add(1,wide(w)),x0))": ("gemma_rms_norm", None),
}
_X0 = "mul(rsqrt(add(eps,mean(square(wide(x))))),wide(x))"


def _name(target):
    return target if isinstance(target, str) else getattr(target, "__name__", "")


def _text(node, eps, types):
    """Returns what a node of a graph computes as text, in one form for each way to write it; operands of a sum and of a
    product are in order. `types` are nodes that are the type of x. Raises LookupError for what is not known."""
    of = lambda each: _text(each, eps, types)
    if not isinstance(node, torch.fx.Node):
        if node == eps and isinstance(node, float):
            return "eps"
        if node in (1, 2) and isinstance(node, (int, float)):
            return str(int(node))
        raise LookupError(node)
    if node.op == "placeholder":
        return "x"
    if node.op == "get_attr":
        return {"weight": "w"}[node.target]
    name, arguments, options = _name(node.target), node.args, node.kwargs
    if name == "float" and len(arguments) == 1 and not options:
        return f"wide({of(arguments[0])})"
    if name == "to" and len(arguments) + len(options) == 2:
        kind = options.get("dtype", arguments[-1])
        if kind is torch.float32 or kind in types:
            return f"{'wide' if kind is torch.float32 else 'cast'}({of(arguments[0])})"
    if name == "type_as" and len(arguments) == 2 and not options and of(arguments[1]) == "x":
        return f"cast({of(arguments[0])})"
    if name in ("rsqrt", "square") and len(arguments) == 1 and not options:
        return f"{name}({of(arguments[0])})"
    if name == "pow" and len(arguments) == 2 and not options and of(arguments[1]) == "2":
        return f"square({of(arguments[0])})"
    if name == "mean":
        given = dict(zip(("input", "dim", "keepdim"), arguments), **options)
        if set(given) == {"input", "dim", "keepdim"} and given["dim"] in (-1, (-1,), [-1]) and given["keepdim"] is True:
            return f"mean({of(given['input'])})"
    if name in ("add", "mul") and len(arguments) == 2 and not options:
        a, b = sorted(map(of, arguments))
        return f"square({a})" if name == "mul" and a == b else f"{name}({a},{b})"
    raise LookupError(node)


def _form(graph, eps):
    """Returns the norm of a graph, and its rounding; None if it is another function."""
    if any(not node.users for node in graph.nodes if node.op.startswith("call") and node.target is not getattr):
        return None  # it changes or watches a tensor beside what it returns
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    types = {node for node in graph.nodes if node.target is getattr and node.args == (inputs[0], "dtype")}
    (output,) = (node for node in graph.nodes if node.op == "output")
    try:
        return _KNOWN.get(_text(output.args[0], eps, types).replace(_X0, "x0")) if len(inputs) == 1 else None
    except LookupError:
        return None


def _eps_of(module, names):
    """Returns the number that all attributes of these names are; None if there is none."""
    found = {getattr(module, name, None) for name in names}
    eps = found.pop() if len(found) == 1 else None
    return eps if isinstance(eps, float) else None


class _Tracer(torch.fx.Tracer):
    """Refuses a forward that computes in another grad mode than that of its call: a graph does not show it, and its
    gradient is that of another function."""

    def create_node(self, *arguments, **named):
        if torch.is_grad_enabled() != self.grad:
            raise NotImplementedError("the grad mode changes")
        return super().create_node(*arguments, **named)

    def trace(self, module):
        self.grad = torch.is_grad_enabled()
        return super().trace(module)


class _Watched:
    """Records the attributes that a forward reads. While it is traced, a module is of a class made of this one and its
    own."""

    def __init_subclass__(cls):
        pass  # that of the own class is for classes that stay

    def __getattribute__(self, name):
        read = super().__getattribute__
        read("_normc_read").add(name)
        return read(name)


_SETTINGS = (bool, int, float, str, tuple, torch.dtype, type(None))
_METHODS = (FunctionType, MethodType)


def _settings(module, names):
    """Returns the attributes of these names that a caller may change later, with their values; None stands for one that
    is not there. Raises LookupError for an object, which may change inside."""
    found = []
    for name in sorted(names - vars(torch.nn.Module()).keys()):
        value = getattr(module, name, None)
        if isinstance(value, _SETTINGS):
            found.append((name, value))
        elif name in vars(module) or not isinstance(value, _METHODS):
            raise LookupError(name)
    return tuple(found)


def recognized(module):
    """Returns the norm and the rounding that a module is, the names of the attributes that are its epsilon, and the
    other attributes that its forward reads, with their values: one with a weight of each feature and no more, whose
    forward is, in training and in evaluation, with gradients and without, a graph that is known. None for any other."""
    names = tuple(name for name, value in vars(module).items() if isinstance(value, float))
    weight, eps = getattr(module, "weight", None), _eps_of(module, names)
    one = [name for name, _ in module.named_parameters()] == ["weight"] and not any(True for _ in module.buffers())
    if not one or any(True for _ in module.children()) or weight.dim() != 1 or eps is None:
        return None
    own, read, forms, before = type(module), set(), set(), dict(vars(module))
    try:
        module.__class__ = type(own.__name__, (_Watched, own), {"_normc_read": read})
        for training, grad in itertools.product((True, False), repeat=2):
            module.training = training
            with torch.set_grad_enabled(grad):
                forms.add(_form(_Tracer().trace(module), eps))
            if {**vars(module), "training": before["training"]} != before:
                return None  # it remembers something
        module.__class__ = own
        settings = _settings(module, {name for name in read - {"weight", *names} if not name.startswith("__")})
    except Exception:  # what a trace cannot follow: any kind of error of the code that is traced
        return None
    finally:
        module.__class__ = own
        vars(module).clear()
        vars(module).update(before)
    (form,) = forms if len(forms) == 1 else (None,)
    return form and (*form, names, settings)


def text_of(module, form, suffix=""):
    """Returns the text of a module of a form that `recognized` gave, of its epsilon now."""
    name, round, names, _ = form
    return row_text(name + suffix, module.weight.shape, _eps_of(module, names), round)


class OwnRMSNorm:
    """What a recognized module becomes: a class made of this one and its own. It runs its own forward for what is not
    the same function: data or a weight in f64, types that differ where the product is not cast, an epsilon that became
    no number of Python, and an attribute that has another value than when it was traced. Names begin with _normc, since
    the class of a model may have any others."""

    def _normc_takes(self, x):
        kinds, (_, round, names, settings) = (torch.float32, torch.bfloat16, torch.float16), self._normc_form
        one_type = self.weight.dtype == x.dtype or (round is None and self.weight.dtype == torch.float32)
        return (isinstance(x, torch.Tensor) and x.device.type == "cpu" and x.dtype in kinds and one_type
                and x.shape[-1:] == self.weight.shape and _eps_of(self, names) is not None
                and all(getattr(self, name, None) == value for name, value in settings)
                and _ops.served(self._normc_text(), _ops.types_of(x, self.weight)))

    def _normc_text(self, suffix=""):
        return text_of(self, self._normc_form, suffix)

    def _normc_residual_form(self, x):
        is_plain = self._normc_form[0] == "rms_norm"
        return self._normc_text("_residual") if is_plain and self._normc_takes(x) else None

    def forward(self, *given, **named):
        if named or len(given) != 1 or not self._normc_takes(*given):
            return super().forward(*given, **named)
        return _autograd.normalize(self._normc_text(), *given, self.weight)

    _normc_forward_of_form = forward

    def __reduce_ex__(self, protocol):
        return _made, (type(self).__mro__[2], self._normc_form), self.__getstate__()


@functools.lru_cache(maxsize=None)
def class_of(own, form):
    """Returns the class that a module of the class `own` becomes."""
    return type(own.__name__, (OwnRMSNorm, own), {"_normc_form": form, "__module__": own.__module__, "__doc__": own.__doc__,
                                                  "__qualname__": own.__qualname__})


def _made(own, form):
    made = class_of(own, form)
    return made.__new__(made)
