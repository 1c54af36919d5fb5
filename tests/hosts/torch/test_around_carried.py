"""Tensors around a norm whose backward moves the state: the bits of the state, and each way to commit it."""

import normc.torch as nt
import pytest
import torch
from torch.nn.functional import silu
from torch.utils.checkpoint import checkpoint

from kit import data_of, same

MINE = """
norm mine from power_norm {
  residual before
  gate     silu
}
"""


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


@pytest.fixture
def make(tmp_path):
    path = tmp_path / "mine.norm"
    path.write_text(MINE)
    return lambda **arguments: nt.norm(path, 24, **arguments)


def composed(module):
    """The same from PowerNorm and operators of torch."""
    def call(x, residual, gate):
        h = x + residual
        return module(h) * silu(gate), h
    return call


def steps(module, call):
    """Returns what each of three steps gives, and the state after it."""
    seen = []
    for seed in range(3):
        given = [data_of((7, 24), seed=10 * seed + at).requires_grad_() for at in range(3)]
        y, h = call(given[0], residual=given[1], gate=given[2])
        (y * data_of(y.shape, seed=4) + h * data_of(y.shape, seed=5)).sum().backward()
        nt.commit(module)
        seen += [y.detach(), h.detach(), *(each.grad for each in given), *(p.grad.clone() for p in module.parameters())]
        seen += [field.clone() for field in module.state]
    return seen


@pytest.mark.parametrize("commit", ["backward", "forward", "step"])
def test_is_the_norm_and_what_is_around_it(make, commit):
    module, other = make(commit=commit), nt.PowerNorm(24, commit=commit)
    ours, theirs = steps(module, module), steps(other, composed(other))
    assert len(ours) == len(theirs) and module.step == 3
    for a, b in zip(ours, theirs):
        assert (a - b).abs().max() <= 1e-4 * b.abs().max().clamp(min=1)


@pytest.mark.parametrize("commit", ["backward", "forward", "step"])
def test_compiled_is_eager_bit_by_bit(make, commit):
    module, other = make(commit=commit), make(commit=commit)
    compiled = torch.compile(other, backend="aot_eager", fullgraph=True)
    assert same(steps(other, compiled), steps(module, module))


def test_recomputation_changes_nothing(make):
    module, other = make(), make()
    again = lambda x, residual, gate: checkpoint(
        lambda x, residual, gate: other(x, residual=residual, gate=gate), x, residual, gate, use_reentrant=False)
    assert same(steps(other, again), steps(module, module))


def test_without_gradients(make):
    module, given = make(), {name: data_of((7, 24)) for name in ("x", "residual", "gate")}
    with torch.no_grad():
        module(**given)
    assert module.step == 0
    module.requires_grad_(False)(**given)
    assert module.step == 1


def test_two_forwards_before_a_backward_are_refused(make):
    module, given = make(), {name: data_of((7, 24)).requires_grad_() for name in ("x", "residual", "gate")}
    first, second = module(**given), module(**given)
    first[0].sum().backward()
    with pytest.raises(RuntimeError, match="changed between a forward and its backward"):
        second[0].sum().backward()


def test_two_forwards_in_one_graph_are_refused(make):
    module, given = make(), {name: data_of((7, 24)).requires_grad_() for name in ("x", "residual", "gate")}
    compiled = torch.compile(lambda: module(**given)[0] + module(**given)[0], backend="aot_eager")
    with pytest.raises(Exception, match="mine.* runs more than once in one graph of torch.compile"):
        compiled()


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.inductor)])
def test_two_forwards_in_two_graphs_are_refused(make, backend):
    module, given = make(), {name: data_of((7, 24)).requires_grad_() for name in ("x", "residual", "gate")}
    compiled = torch.compile(module, backend=backend)
    first, second = compiled(**given), compiled(**given)
    first[0].sum().backward()
    with pytest.raises(RuntimeError, match="changed between a forward and its backward|modified by an inplace operation"):
        second[0].sum().backward()


def test_a_transform_is_refused(make):
    module, given = make(), {name: data_of((7, 24)) for name in ("residual", "gate")}
    with pytest.raises(RuntimeError, match="changes its state, which a transform"):
        torch.func.grad(lambda x: module(x, **given)[0].sum())(data_of((7, 24)))


def test_evaluation(make):
    module, other = make(), nt.PowerNorm(24)
    steps(module, module)
    other.load_state_dict(module.state_dict())
    module.eval(), other.eval()
    x, residual, gate = (data_of((7, 24), seed=at) for at in range(3))
    for a, b in zip(module(x, residual=residual, gate=gate), composed(other)(x, residual, gate)):
        assert (a - b).abs().max() < 1e-5
