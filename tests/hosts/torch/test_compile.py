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


FRESH = {  # of sizes that no text was made for
    "layer_norm": (lambda: nt.LayerNorm(1301), (2, 1301)),
    "rms_norm": (lambda: nt.RMSNorm(1302), (2, 1302)),
    "group_norm": (lambda: nt.GroupNorm(3, 1305), (2, 1305, 2)),
    "instance_norm": (lambda: nt.InstanceNorm1d(1306), (2, 1306, 2)),
    "batch_norm": (lambda: nt.BatchNorm1d(1307), (2, 1307)),
    "layers": (lambda: torch.nn.Sequential(nt.LayerNorm(1308), torch.nn.Linear(1308, 13), nt.LayerNorm(13, 1.3)),
               (2, 1308)),
}


@pytest.mark.parametrize("name", FRESH)
def test_a_new_norm_is_compiled_once(name):
    from torch._dynamo.testing import CompileCounter

    make, shape = FRESH[name]
    counter = CompileCounter()
    compiled = torch.compile(make(), backend=counter)
    for _ in range(2):
        compiled(torch.randn(shape))
    assert counter.frame_count == 1


def test_a_batch_norm_without_running_statistics():
    module, x = nt.BatchNorm1d(24, track_running_stats=False), data_of((7, 24)).requires_grad_()
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    assert same(run(compiled.train(), x, data_of((7, 24), seed=6)), run(module, x, data_of((7, 24), seed=6)))


class Doubled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(24)

    def forward(self, x):
        return self.norm(x + x)


def test_a_sum_of_one_tensor_in_front_of_a_norm():
    module, x = Doubled(), data_of((7, 24))
    wanted = module(x)
    assert nt.replace(module).fused
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    assert (compiled(x) - wanted).abs().max() < 1e-5 and torch.equal(compiled(x), module(x))


class Twice(torch.nn.Module):
    def __init__(self, commit):
        super().__init__()
        self.norm = nt.PowerNorm(24, commit=commit)

    def forward(self, x):
        return self.norm(2 * self.norm(x))


@pytest.mark.parametrize("fullgraph", [True, False])
def test_a_norm_that_runs_twice_in_one_graph_is_refused(fullgraph):
    compiled = torch.compile(Twice("backward"), backend="aot_eager", fullgraph=fullgraph)
    with pytest.raises(Exception, match="power_norm.* runs more than once in one graph .*commit='forward'"):
        compiled(data_of((7, 24)).requires_grad_())


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.inductor)])
def test_a_norm_that_runs_in_two_graphs_before_a_backward_is_refused(backend):
    norm, x = nt.PowerNorm(24), data_of((7, 24)).requires_grad_()
    compiled = torch.compile(norm, backend=backend)
    first, second = compiled(x), compiled(x)
    second.sum().backward()
    # Where autograd sees that the graph writes the state, it says so first.
    with pytest.raises(RuntimeError, match="changed between a forward and its backward|modified by an inplace operation"):
        first.sum().backward()
    assert norm.step == 1
    compiled(x).sum().backward()
    assert norm.step == 2


OF_TORCH_2_10 = pytest.mark.skipif(torch.__version__.startswith("2.10."), reason="torch 2.10 does not compile it")


@pytest.mark.parametrize("commit", [pytest.param("forward", marks=OF_TORCH_2_10), "step"])
def test_a_norm_that_runs_twice_in_one_graph_is_eager_bit_by_bit(commit):
    module, other = Twice(commit), Twice(commit)
    compiled = Called(other, torch.compile(other, backend="aot_eager", fullgraph=True))
    assert same(steps(other, compiled, (7, 24)), steps(module, module, (7, 24)))


def test_a_norm_runs_in_a_trace_that_begins_again():
    def call(x):
        y = norm(x)
        torch._dynamo.graph_break()
        return 2 * y

    norm, other = nt.PowerNorm(24), nt.PowerNorm(24)
    warnings.filterwarnings("ignore", ".*is not a leaf Tensor.*")  # of torch, behind a break
    assert same(steps(norm, Called(norm, torch.compile(call, backend="aot_eager")), (7, 24)),
                steps(other, Called(other, lambda x: 2 * other(x)), (7, 24)))


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
