"""Residual forms in the forward of a block: the sum in front of a norm and the norm become one kernel.

    h = x + self.attention(self.before(x))
    return h + self.mlp(self.after(h))            # reads h again, beside the norm of it

`rewritten` changes these expressions of the source and nothing else: control flow, arguments and all other calls stay
Python's. `add_norm`, which stands for them, looks at its operands in each call, and adds and normalizes apart where
one kernel would not be the same function.
"""

import ast
import functools
import linecache
import types

import torch

from . import _around, _ops


class Refused(Exception):
    """Why a forward is left as it is."""


def _is_plain(norm):
    """True if calling a module does no more than the forward for which its residual form stands."""
    hooks = (norm._forward_hooks, norm._forward_pre_hooks, norm._backward_hooks, norm._backward_pre_hooks)
    own = type(norm)
    return (own.forward is own._normc_forward_of_form and own.__call__ is torch.nn.Module.__call__
            and "forward" not in norm.__dict__ and not any(hooks) and not torch.nn.modules.module._has_any_global_hook())


def add_norm(a, b, norm):
    """Returns norm(a + b) and a + b, by one kernel where `norm` has one: of two tensors of one shape and one type on a
    CPU. The kernel makes a contiguous sum, which torch does of a first operand that is. Statistics are then of the sum
    before it is rounded to 16 bits (docs/around-a-norm.md). torch.compile takes no kernel that is given a tensor twice,
    so x + x is added apart."""
    plain = torch.Tensor, torch.nn.Parameter
    form = getattr(norm, "_normc_residual_form", None)
    if (form is not None and type(a) in plain and type(b) in plain and a.shape == b.shape and a.dtype == b.dtype
            and a.dtype in _ops._NAMES and a.device.type == b.device.type == "cpu" and a.is_contiguous()
            and a is not b and _is_plain(norm)):
        text, bias = form(a), getattr(norm, "bias", None)
        if text is not None and _ops.served(text, _ops.types_of(a, norm.weight)):
            return _around.apply(text, b, norm.weight, bias, None, {"residual": a})[0]
    h = a + b
    return norm(h), h


def _calls(node):
    """Yields the calls of an expression in the order in which it makes them; None for what cannot be judged."""
    if isinstance(node, ast.Call):
        yield from _calls(node.func)
        for each in (*node.args, *(keyword.value for keyword in node.keywords)):
            yield from _calls(each)
        yield node
    elif isinstance(node, (ast.Attribute, ast.BinOp, ast.UnaryOp, ast.Subscript, ast.Tuple, ast.Name, ast.Constant)):
        for each in ast.iter_child_nodes(node):  # in order of evaluation, with operators and contexts between
            if isinstance(each, ast.expr):
                yield from _calls(each)
    else:
        yield None


class _Rewriter(ast.NodeTransformer):
    def __init__(self, owner, norms):
        self.owner, self.norms, self.found = owner, norms, {}

    def visit_FunctionDef(self, node):
        return node  # a function inside runs when it likes

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = visit_FunctionDef

    def _normalized(self, call):
        """Returns the name of a norm and its operand, if a call is one of a norm with one argument."""
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and len(call.args) == 1:
            owner = call.func.value
            if isinstance(owner, ast.Name) and owner.id == self.owner and call.func.attr in self.norms:
                if not call.keywords and not isinstance(call.args[0], ast.Starred):
                    return call.func.attr, call.args[0]
        return None, None

    def _fused(self, name, sum, call):
        self.found.setdefault(name, sum.lineno)
        made = ast.Call(ast.Attribute(call.func.value, "_normc_add_norm", ast.Load()), [sum.left, sum.right, call.func], [])
        return ast.copy_location(made, sum)

    def visit_Call(self, node):
        """norm(a + b)"""
        self.generic_visit(node)
        name, operand = self._normalized(node)
        if name is None or not _is_sum(operand):
            return node
        return ast.copy_location(ast.Subscript(self._fused(name, operand, node), ast.Constant(0), ast.Load()), node)

    def statements(self, body):
        """Rewrites `h = a + b`, other names for h, and a statement that first of all calls norm(h)."""
        for at, statement in enumerate(body):
            if not (isinstance(statement, ast.Assign) and _is_name(statement.targets) and _is_sum(statement.value)):
                continue
            names, after = {statement.targets[0].id}, at + 1
            while after < len(body) and _is_alias(body[after], names):
                names.add(body[after].targets[0].id)
                after += 1
            if after == len(body) or not isinstance(body[after], (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)):
                continue
            call = next(_calls(body[after].value), None) if body[after].value is not None else None
            name, operand = self._normalized(call)
            if name is None or not isinstance(operand, ast.Name) or operand.id not in names:
                continue
            if isinstance(body[after], ast.AugAssign) and not isinstance(body[after].target, ast.Name):
                continue  # it reads its target before
            y = f"_normc_{name}"
            targets = ast.Tuple([ast.Name(y, ast.Store()), statement.targets[0]], ast.Store())
            statement.value, statement.targets = self._fused(name, statement.value, call), [targets]
            body[after] = _Replacer(call, ast.Name(y, ast.Load())).visit(body[after])

    def blocks(self, node):
        """Rewrites all lists of statements below a node."""
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            below = getattr(node, field, [])
            if field not in ("handlers", "cases"):
                self.statements(below)
            for each in below:
                if not isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    self.blocks(each)

    def rewrite(self, function):
        self.blocks(function)
        function.body = [self.visit(statement) for statement in function.body]
        return function


def _is_sum(node):
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)


def _is_name(targets):
    return len(targets) == 1 and isinstance(targets[0], ast.Name)


def _is_alias(statement, names):
    """True for `residual = h`, which gives the value of one of `names` another name."""
    return (isinstance(statement, ast.Assign) and _is_name(statement.targets) and isinstance(statement.value, ast.Name)
            and statement.value.id in names and statement.targets[0].id not in names)


class _Replacer(ast.NodeTransformer):
    def __init__(self, call, other):
        self.call, self.other = call, other

    def visit(self, node):
        return ast.copy_location(self.other, node) if node is self.call else self.generic_visit(node)


def _codes(code):
    """Yields all code in the code of a file."""
    yield code
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _codes(each)


def _code_of(tree, function):
    """Returns the code in a file that has the name and the place of that of a function; None if there is none."""
    wanted = function.__code__.co_name, function.__code__.co_firstlineno
    compiled = compile(tree, function.__code__.co_filename, "exec", dont_inherit=True)
    return next((code for code in _codes(compiled) if (code.co_name, code.co_firstlineno) == wanted), None)


def _definition_of(tree, code):
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            if min([node.lineno, *(each.lineno for each in node.decorator_list)]) == code.co_firstlineno:
                return node
    raise Refused("its source is not there")


@functools.lru_cache(maxsize=None)
def rewritten(function, norms):
    """Returns the forward of a class with residual forms of the norms that have them, and the line of the sum of each
    such norm. Its class has to have `_normc_add_norm`. Raises Refused if the source is not that of the function."""
    if not isinstance(function, types.FunctionType):
        raise Refused("it is no function of Python")
    code = function.__code__
    source = "".join(linecache.getlines(code.co_filename))
    try:
        tree = ast.parse(source)
        if source and _code_of(tree, function) != code:
            raise Refused("its source has changed")
        definition = _definition_of(tree, code)
    except SyntaxError:
        raise Refused("its source has changed") from None
    leading = [*definition.args.posonlyargs, *definition.args.args]
    owner = leading[0].arg if leading else ""
    stored = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    if owner in stored:
        raise Refused(f"it assigns to {owner}")
    rewriter = _Rewriter(owner, norms)
    rewriter.rewrite(definition)
    changed = _code_of(ast.fix_missing_locations(tree), function)
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))
    made = types.FunctionType(changed, function.__globals__, function.__name__, function.__defaults__,
                              tuple(cells[name] for name in changed.co_freevars))
    functools.update_wrapper(made, function)
    del made.__wrapped__
    made.__kwdefaults__ = function.__kwdefaults__
    return made, rewriter.found
