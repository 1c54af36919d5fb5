"""The operators of norms with tensors around them as torch sees them: schemas, fake kernels, torch.compile."""

import pytest
import torch
from normc.torch import _around

from around import CASES, STREAMS, outputs_of, run
from kit import same

OPERATORS = ("forward", "backward", "infer", "infer_backward")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def samples(case, dtype=torch.float32):
    """Returns arguments of the operators, as the module gives them."""
    module, inputs, seen = case.module(), case.inputs(dtype), {}
    real = {operator: getattr(_around, operator) for operator in OPERATORS}

    def recorded(operator):
        def call(*arguments):
            seen[operator] = arguments
            return real[operator](*arguments)
        return call

    plain = lambda a: a.detach().clone() if isinstance(a, torch.Tensor) else (
        [plain(b) for b in a] if isinstance(a, (list, tuple)) else a)
    with pytest.MonkeyPatch.context() as patch:
        for operator in OPERATORS:
            patch.setattr(_around, operator, recorded(operator))
        run(module, module, inputs)
        module.eval()
        run(module, module, inputs)
        with torch.no_grad():
            module(**inputs)
    return {operator: tuple(plain(a) for a in arguments) for operator, arguments in seen.items()}


# Types change no schema and no shape: one norm is enough.
@pytest.mark.parametrize("dtype, name", [
    pytest.param(dtype, name, marks=() if dtype == torch.float32 or name == "gemma_sandwich" else pytest.mark.rest)
    for name in CASES for dtype in (torch.float32, torch.bfloat16)], ids=str)
def test_opcheck(name, dtype):
    seen = samples(CASES[name], dtype)
    assert {"forward", "backward", "infer"} <= set(seen)
    for operator, arguments in seen.items():
        torch.library.opcheck(getattr(_around, operator), arguments)


def test_opcheck_of_some_gradients():
    arguments = samples(CASES["adaptive_layer_norm_zero"])["backward"]
    for wanted in (0b000001, 0b101000, 0b010001):
        torch.library.opcheck(_around.backward, (*arguments[:-1], wanted))


def bits(call, module, inputs):
    made, gradients = run(call, module, inputs)
    return [*made, *gradients, *(buffer.clone() for buffer in module.buffers())]


# Inductor takes the graphs of aot_eager, and what it makes of other operators is its own matter: two norms are enough.
@pytest.mark.parametrize("backend, name", [
    pytest.param(backend, name, marks=() if backend == "aot_eager" or name in STREAMS else pytest.mark.rest)
    for name in CASES for backend in ("aot_eager", "inductor")])
def test_compiled_is_eager_bit_by_bit(name, backend):
    case = CASES[name]
    module, other = case.module(), case.module()
    compiled = torch.compile(other, backend=backend, fullgraph=True)
    for seed in (5, 6):
        assert same(bits(compiled, other, case.inputs(seed=seed)), bits(module, module, case.inputs(seed=seed)))
    module.eval(), other.eval()
    assert same(bits(compiled, other, case.inputs()), bits(module, module, case.inputs()))
    with torch.no_grad():
        assert same(outputs_of(compiled(**case.inputs())), outputs_of(module(**case.inputs())))


@pytest.mark.parametrize("use", [(0,), (1,)], ids=["y", "stream"])
def test_compiled_without_the_gradient_of_an_output(use):
    case = CASES["rms_norm_residual"]
    module = case.module()
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    assert same(run(compiled, module, case.inputs(), use)[1], run(module, module, case.inputs(), use)[1])


def test_one_graph_serves_any_number_of_rows():
    case, graphs = CASES["rms_norm_residual"], []
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    backend = aot_autograd(fw_compiler=lambda g, i: (graphs.append(g), make_boxed_func(g.forward))[1])
    module = case.module()
    compiled = torch.compile(module, backend=backend, fullgraph=True)
    for rows in (3, 5, 8, 13):
        given = {name: value[:1].repeat(rows, 1, 1).requires_grad_() for name, value in case.inputs().items()}
        for value in given.values():
            torch._dynamo.mark_dynamic(value, 0)
        y, stream = compiled(**given)
        (y.sum() + stream.sum()).backward()
    assert len(graphs) == 2  # forward and backward


class Block(torch.nn.Module):
    """A layer and the norm of the stream that it adds to."""

    def __init__(self, norm):
        super().__init__()
        self.layer, self.norm = torch.nn.Linear(24, 24), norm

    def forward(self, x, residual):
        return self.norm(self.layer(x), residual=residual)


def test_exported_saved_loaded(tmp_path):
    case = CASES["rms_norm_residual"]
    block, rows = Block(case.module()).eval(), torch.export.Dim("rows", min=2, max=4096)
    with torch.no_grad():
        program = torch.export.export(block, tuple(case.inputs().values()), dynamic_shapes=({0: rows}, {0: rows}))
        torch.export.save(program, tmp_path / "model.pt2")
        loaded = torch.export.load(tmp_path / "model.pt2").module()
        given = [torch.cat([value, value + 1]) for value in case.inputs().values()]
        assert same(outputs_of(loaded(*given)), outputs_of(block(*given)))
