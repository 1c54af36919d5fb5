"""torch.compile: one graph, the bits of eager code, no compilation for each number of rows, no warnings."""

import subprocess
import sys
import warnings

import normc.torch as nt
import pytest
import torch

from kit import CARRIED, EXACT, STATES, data_of, module_of, run, same

CASES = {**EXACT, **CARRIED}


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torch's own complaints below excepted
        for text in (r".*should not be instantiated.*", r".*TF32.*", r".*online softmax.*", r".*torch\.jit.*", r".*pkg_resources.*"):
            warnings.filterwarnings("ignore", text)
        yield


def steps(module, call, shape, rows=(7, 7, 9)):
    """Returns what three steps give, of which the last has another number of rows."""
    return [each for seed, count in enumerate(rows)
            for each in run(call, data_of((count, *shape[1:]), seed=seed), data_of((count, *shape[1:]), seed=9))]


class Called(torch.nn.Module):
    """A module whose forward is another callable."""

    def __init__(self, module, call):
        super().__init__()
        self.module, self.call = module, call

    def forward(self, x):
        return self.call(x)


@pytest.mark.parametrize("name", CASES)
def test_is_eager_bit_by_bit(name):
    module, shape = module_of(name)
    wanted = steps(module, module, shape)
    module, _ = module_of(name)
    ours = steps(module, Called(module, torch.compile(module, backend="aot_eager", fullgraph=True)), shape)
    assert same(ours, wanted)


@pytest.mark.parametrize("name", STATES)
def test_evaluation_is_eager_bit_by_bit(name):
    module, shape = module_of(name)
    steps(module, module, shape)
    module.eval()
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    with torch.no_grad():
        assert torch.equal(compiled(data_of(shape)), module(data_of(shape)))


@pytest.mark.parametrize("name", STATES)
def test_the_gradient_of_evaluation_is_eager_bit_by_bit(name):
    module, shape = module_of(name)
    module.eval()
    compiled = Called(module, torch.compile(module, backend="aot_eager", fullgraph=True))
    assert same(steps(module, compiled, shape), steps(module, module, shape))


def model_of(names):
    torch.manual_seed(1)
    return torch.nn.Sequential(*(module_of(name)[0] for name in names))


@pytest.mark.inductor
@pytest.mark.parametrize("names, shape", [
    (["layer_norm", "rms_norm", "power_norm", "batch_norm", "power_norm_v", "power_norm_released"], (7, 24)),
    (["group_norm", "batch_norm of images", "instance_norm"], (7, 8, 3, 2)),
], ids=["rows", "images"])
def test_inductor_is_eager_bit_by_bit(names, shape):
    model = model_of(names)
    wanted = steps(model, model, shape)
    model = model_of(names)
    assert same(steps(model, Called(model, torch.compile(model, fullgraph=True)), shape), wanted)


@pytest.mark.parametrize("name", ["layer_norm", "power_norm", "batch_norm of images"])
def test_one_graph_serves_any_number_of_rows(name):
    graphs = []

    def count(graph, inputs):
        graphs.append(graph)
        return graph.forward

    module, shape = module_of(name)
    from torch._dynamo.backends.common import aot_autograd
    from functorch.compile import make_boxed_func

    backend = aot_autograd(fw_compiler=lambda g, i: (graphs.append(g), make_boxed_func(g.forward))[1])
    compiled = torch.compile(module, backend=backend, fullgraph=True)
    for rows in (3, 5, 8, 13):
        x = data_of((rows, *shape[1:])).requires_grad_()
        torch._dynamo.mark_dynamic(x, 0)
        compiled(x).sum().backward()
    assert len(graphs) == 2  # forward and backward


def test_a_functional_is_compiled():
    f = torch.compile(lambda x, w: nt.functional.layer_norm(x.sin(), (24,), w).cos(), backend="aot_eager", fullgraph=True)
    x, w = data_of((5, 24)).requires_grad_(), data_of((24,)).requires_grad_()
    assert torch.equal(f(x, w), nt.functional.layer_norm(x.sin(), (24,), w).cos())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=str)
def test_other_types(dtype):
    module, shape = module_of("power_norm", dtype)
    wanted = run(module, data_of(shape, dtype), data_of(shape, dtype, 6))
    module, _ = module_of("power_norm", dtype)
    compiled = Called(module, torch.compile(module, backend="aot_eager", fullgraph=True))
    assert same(run(compiled, data_of(shape, dtype), data_of(shape, dtype, 6)), wanted)


@pytest.mark.parametrize("commit", ["forward", "step"])
def test_other_commits(commit):
    def trained(make):
        torch.manual_seed(0)
        norm = nt.PowerNorm(24, commit=commit)
        call = make(norm)
        seen = []
        for seed in range(3):
            seen += run(Called(norm, call), data_of((7, 24), seed=seed), data_of((7, 24), seed=9))
            nt.commit(norm)
        return seen + list(norm.state)

    assert same(trained(lambda norm: torch.compile(norm, backend="aot_eager", fullgraph=True)), trained(lambda norm: norm))


def test_channels_last():
    module, _ = module_of("group_norm")
    x = data_of((2, 8, 4, 4)).to(memory_format=torch.channels_last)
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    with torch.no_grad():
        y = compiled(x)
        assert torch.equal(y, module(x)) and y.stride() == x.stride()


def test_an_import_leaves_the_compiler_of_torch_out():
    """torch._dynamo takes as long to import as torch; code that compiles nothing does not need it."""
    program = "import sys, normc.torch; sys.exit('torch._dynamo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
