"""Tensors around a norm: a residual, a gate, a modulation, against formulas of torch; and what errors say."""

import normc.torch as nt
import pytest
import torch
from normc.torch import _around

from around import CASES, EPS, STREAMS, close, exact, outputs_of, rms, run
from kit import data_of, same

REFUSED = RuntimeError, ValueError  # torch 2.10 keeps the kind of an exception
TOLERANCE = {torch.float32: 3e-5, torch.bfloat16: 2e-2}


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_is_its_formula(name, dtype):
    case = CASES[name]
    module, inputs = case.module(), case.inputs(dtype)
    made, gradients = run(module, module, inputs)
    assert all(y.dtype == dtype for y in made) and len(made) == 1 + (name in STREAMS)
    assert [g.dtype for g in gradients[: len(inputs)]] == [dtype] * len(inputs)
    wanted = exact(case, inputs)
    close(made, wanted[0], TOLERANCE[dtype])
    close(gradients, wanted[1], TOLERANCE[dtype])


@pytest.mark.parametrize("name", CASES)
def test_gradcheck(name):
    case = CASES[name]
    module, inputs = case.module(torch.float64), case.inputs(torch.float64)
    names = [key for key, _ in module.named_parameters()]

    def f(*values):
        given = dict(zip(inputs, values))
        return torch.func.functional_call(module, dict(zip(names, values[len(inputs):])), (), given)

    values = (*(value.requires_grad_() for value in inputs.values()), *module.parameters())
    assert torch.autograd.gradcheck(f, values)
    if module.state:
        module.eval()
        assert torch.autograd.gradcheck(f, values)


@pytest.mark.parametrize("use", [(0,), (1,)], ids=["y", "stream"])
@pytest.mark.parametrize("name", STREAMS)
def test_an_output_without_a_gradient(name, use):
    case = CASES[name]
    module, inputs = case.module(), case.inputs()
    close(run(module, module, inputs, use)[1], exact(case, inputs, use=use)[1], 3e-5)


@pytest.mark.parametrize("name", CASES)
def test_only_the_wanted_gradients(name):
    case = CASES[name]
    inputs = case.inputs()
    module = case.module()
    full = dict(zip(inputs, run(module, module, inputs)[1]))
    for wanted in inputs:
        module = case.module().requires_grad_(False)
        given = {key: value.clone().requires_grad_(key == wanted) for key, value in inputs.items()}
        made = outputs_of(module(**given))
        sum((y * data_of(y.shape, y.dtype, 20 + at)).sum() for at, y in enumerate(made)).backward()
        assert torch.equal(given[wanted].grad, full[wanted])
        assert all(value.grad is None for key, value in given.items() if key != wanted)


@pytest.mark.parametrize("name", CASES)
def test_without_gradients(name):
    case = CASES[name]
    module, inputs = case.module(), case.inputs()
    with torch.no_grad():
        made = outputs_of(module(**inputs))
    wanted = run(case.module(), module, inputs)[0]
    assert not any(y.requires_grad for y in made)
    close(made, [y.double() for y in wanted], 1e-6)


def test_the_state_of_the_end_of_a_residual_block():
    case = CASES["resnet_tail"]
    module, bn = case.module(), torch.nn.BatchNorm2d(8, eps=EPS)
    bn.load_state_dict({**bn.state_dict(), "weight": module.weight.data, "bias": module.bias.data})
    for seed, recorded in ((5, True), (6, False), (7, True)):
        inputs = case.inputs(seed=seed)
        with torch.set_grad_enabled(recorded):
            made, wanted = module(**inputs), torch.relu(bn(inputs["x"]) + inputs["residual"])
        assert (made - wanted).abs().max() < 2e-5
    for a, b in zip(module.state[1:], (bn.running_mean, bn.running_var)):
        assert (a - b).abs().max() < 1e-5
    module.eval(), bn.eval()
    f = lambda x, residual: torch.relu(bn(x) + residual)
    ours, theirs = run(module, module, inputs), run(f, bn, inputs)
    for a, b in zip(ours, theirs):
        close(a, [each.double() for each in b], 2e-5)
    with torch.no_grad():
        assert torch.equal(module(**inputs), ours[0][0])


def test_images_in_channels_last():
    case = CASES["resnet_tail"]
    module, inputs = case.module(), case.inputs()
    last = {"x": inputs["x"].to(memory_format=torch.channels_last), "residual": inputs["residual"]}
    y = case.module()(**last)
    assert y.is_contiguous(memory_format=torch.channels_last)
    assert (y - module(**inputs)).abs().max() < 1e-5


def test_vectors_of_a_larger_tensor():
    case = CASES["adaptive_layer_norm_zero"]
    inputs, all_of = case.inputs(), data_of((2, 72), seed=9)
    views = dict(zip(("gate", "mod_scale", "mod_shift"), all_of.chunk(3, -1)))
    whole = {name: view.clone() for name, view in views.items()}
    module = case.module()
    for a, b in zip(module(**{**inputs, **views}), module(**{**inputs, **whole})):
        assert torch.equal(a, b)


SCALED = """
norm scaled {
  gate      identity(at = before, per = feature)
  residual  before(stream = no)
  reduce    features
  affine    scale
  epsilon   1e-5
}
"""


def test_a_text_of_the_user(tmp_path):
    (tmp_path / "scaled.norm").write_text(SCALED)
    module = nt.norm(tmp_path / "scaled.norm", 24)
    inputs = {"x": data_of((5, 24)), "gate": data_of((24,), seed=6), "residual": data_of((5, 24), seed=7)}
    f = lambda x, gate, residual: rms(x * gate + residual, module.weight)
    for a, b in zip(run(module, module, inputs), run(f, module, inputs)):
        close(a, [each.double() for each in b], 3e-5)


def test_a_text_as_a_function():
    case = CASES["rms_norm_residual"]
    module, inputs = case.module(), case.inputs()
    f = lambda x, residual: nt.functional.norm(module.text, x, module.weight, residual=residual)
    for a, b in zip(run(f, module, inputs), run(module, module, inputs)):
        assert same(a, b)
    assert torch.equal(nt.functional.norm("rms_norm[*x24]", inputs["x"]), nt.RMSNorm(24, eps=1e-6)(inputs["x"]))


def test_masked_rows():
    case = CASES["rms_norm_residual"]
    module, inputs = case.module(), case.inputs()
    mask = torch.arange(5) < torch.tensor([[5], [3]])
    inputs = {name: value.requires_grad_() for name, value in inputs.items()}
    y, stream = module(mask=mask, **inputs)
    wanted, h = module(**inputs)
    assert torch.equal(y[mask], wanted[mask]) and not y[~mask].any()
    assert torch.equal(stream[mask], h[mask]) and not stream[~mask].any()
    (y.sum() + stream.sum()).backward()
    assert not any(value.grad[~mask].any() for value in inputs.values())


def test_the_mask_of_one_row_has_no_dimension():
    norm, x = nt.Norm("layer_norm", 24), data_of((3, 24))
    assert torch.equal(norm(x[0], torch.tensor(True)), norm(x)[0]) and not norm(x[0], torch.tensor(False)).any()
    mask = torch.tensor([True, False, True])
    assert torch.equal(torch.vmap(lambda row, valid: norm(row, valid))(x, mask), norm(x, mask))


def test_a_residual_behind_the_norm_has_no_gradient_in_masked_rows():
    case = CASES["gemma_sandwich"]
    module, inputs = case.module(), case.inputs()
    mask = torch.arange(5) < torch.tensor([[5], [3]])
    x = inputs["x"].requires_grad_()
    residual = inputs["residual"].requires_grad_()
    y = module(x, mask, residual=residual)
    factor = data_of(y.shape, seed=30)
    (y * factor).sum().backward()
    assert not y[~mask].any() and not x.grad[~mask].any() and x.grad[mask].any()
    assert not residual.grad[~mask].any() and torch.equal(residual.grad[mask], factor[mask])


def function_of(case):
    """Returns a loss as a function of parameters, inputs and buffers, and these."""
    module, inputs = case.module(), case.inputs()
    factors = [data_of(y.shape, seed=20 + at) for at, y in enumerate(outputs_of(case.module()(**inputs)))]

    def loss(values, inputs, buffers):
        made = outputs_of(torch.func.functional_call(module, {**values, **buffers}, (), inputs))
        return sum((y * factor).sum() for y, factor in zip(made, factors))

    values = {key: value.detach() for key, value in module.named_parameters()}
    return loss, (values, inputs, {key: value.clone() for key, value in module.named_buffers()})


@pytest.mark.parametrize("name", CASES)
def test_func_grad_is_autograd(name):
    loss, arguments = function_of(CASES[name])
    values, inputs = torch.func.grad(loss, argnums=(0, 1))(*arguments)
    module = CASES[name].module()
    assert same([*inputs.values(), *values.values()], run(module, module, arguments[1])[1])


@pytest.mark.parametrize("name", [name for name in CASES if name != "resnet_tail"])
def test_gradients_of_each_sample(name):
    loss, (values, inputs, _) = function_of(CASES[name])
    many = {key: torch.stack([value, 2 * value, value - 1]) for key, value in inputs.items()}
    of = torch.func.grad(loss, argnums=(0, 1))
    ours = torch.vmap(of, in_dims=(None, 0, None))(values, many, {})
    for at in range(3):
        theirs = of(values, {key: value[at] for key, value in many.items()}, {})
        for a, b in zip(ours, theirs):
            close([value[at] for value in a.values()], [value.double() for value in b.values()], 1e-5)


def test_a_second_derivative_is_refused():
    case = CASES["delta_gated_rms_norm"]
    inputs = {name: value.requires_grad_() for name, value in case.inputs().items()}
    (dz,) = torch.autograd.grad(case.module()(**inputs).square().sum(), inputs["gate"], create_graph=True)
    with pytest.raises(RuntimeError, match="norms of normc have no second derivative"):
        dz.sum().backward()
    (dz,) = torch.autograd.grad(case.module()(**inputs).sum(), inputs["gate"], create_graph=True)
    with pytest.raises(RuntimeError, match="norms of normc have no second derivative"):
        dz.sum().backward()


def call(name, **changed):
    case = CASES[name]
    return case.module()(**{**case.inputs(), **changed})


@pytest.mark.parametrize("made, error, said", [
    (lambda: call("rms_norm_residual", residual=None), TypeError,
     "rms_norm_residual takes residual beside x; missing is residual"),
    (lambda: call("adaptive_layer_norm_zero", gate=None, mod_shift=None), TypeError,
     "takes residual, gate, mod_scale, mod_shift beside x; missing is gate, mod_shift"),
    (lambda: call("rms_norm_residual", gate=data_of((2, 24))), TypeError,
     "rms_norm_residual takes residual beside x; given is gate"),
    (lambda: nt.Norm("layer_norm", 24)(data_of((5, 24)), residual=data_of((5, 24))), TypeError,
     "layer_norm takes nothing beside x; given is residual"),
    (lambda: call("rms_norm_residual", residual=data_of((2, 4, 24))), REFUSED,
     r"residual has the shape \[2, 4, 24\]; rms_norm_residual takes that of x, \[2, 5, 24\]"),
    (lambda: call("adaptive_layer_norm_zero", mod_scale=data_of((2, 1, 24))), REFUSED,
     r"mod_scale has the shape \[2, 1, 24\]; adaptive_layer_norm_zero takes \[segments, features\], \[2, 24\]"),
    (lambda: call("gated_rms_norm", gate=data_of(CASES["gated_rms_norm"].shape, torch.bfloat16)), REFUSED,
     "gate has dtype bf16; this plan takes f32"),
    (lambda: _around.forward(data_of((5, 24)), None, None, None, [], None, "rms_norm_residual[*x24]"), REFUSED,
     "rms_norm_residual takes 1 tensors around the norm: residual; given are 0"),
])
def test_refuses_tensors_that_the_norm_does_not_take(made, error, said):
    with pytest.raises(error, match=said):
        made()


def test_statistics_over_ranks_are_refused():
    with pytest.raises(ValueError, match="resnet_tail.* takes tensors beside x; statistics over ranks"):
        nt.synchronise(CASES["resnet_tail"].module())
