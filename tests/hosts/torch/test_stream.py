"""A residual stream of another type than x: layers in 16 bits, the sum of all of them in f32."""

import normc.torch as nt
import pytest
import torch
from normc.torch import _around

from around import CASES, close, exact, outputs_of, run
from kit import data_of, same

# x, and the residual with its sum
TYPES = [(torch.bfloat16, torch.float32), (torch.float16, torch.float32), (torch.float32, torch.bfloat16)]
NAMES = ["rms_norm_residual", "adaptive_layer_norm_zero"]
REFUSED = RuntimeError, ValueError


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


def inputs_of(case, data=torch.bfloat16, stream=torch.float32):
    inputs = case.inputs(data)
    return {**inputs, "residual": data_of(case.around["residual"], stream, seed=6)}


@pytest.mark.parametrize("data, stream", TYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_is_its_formula(name, data, stream):
    case = CASES[name]
    module, inputs = case.module(), inputs_of(case, data, stream)
    made, gradients = run(module, module, inputs)
    assert [y.dtype for y in made] == [data, stream]
    assert [g.dtype for g in gradients[: len(inputs)]] == [value.dtype for value in inputs.values()]
    wanted, of = exact(case, inputs)
    close(made, wanted, 2e-2)
    close(gradients, of, 2e-2)
    if name == "rms_norm_residual" and stream == torch.float32:  # nothing of the stream is rounded to 16 bits
        assert torch.equal(made[1], inputs["x"].float() + inputs["residual"])
        assert torch.equal(gradients[0], gradients[1].to(data)) and not torch.equal(gradients[0].float(), gradients[1])


@pytest.mark.parametrize("wanted", ["x", "residual"])
@pytest.mark.parametrize("use", [(0,), (1,), (0, 1)], ids=str)
def test_only_the_wanted_gradient(use, wanted):
    case = CASES["rms_norm_residual"]
    module, inputs = case.module(), inputs_of(case)
    full = dict(zip(inputs, run(module, module, inputs, use)[1]))
    module.requires_grad_(False)
    given = {key: value.clone().requires_grad_(key == wanted) for key, value in inputs.items()}
    made = module(**given)
    sum((y * data_of(y.shape, y.dtype, 20 + at)).sum() for at, y in enumerate(made) if at in use).backward()
    assert torch.equal(given[wanted].grad, full[wanted])


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.inductor)])
def test_compiled_is_eager_bit_by_bit(backend):
    case = CASES["rms_norm_residual"]
    module, inputs = case.module(), inputs_of(case)
    compiled = torch.compile(module, backend=backend, fullgraph=True)
    for a, b in zip(run(compiled, module, inputs), run(module, module, inputs)):
        assert same(a, b)


def test_opcheck():
    case, seen = CASES["rms_norm_residual"], {}
    module, inputs = case.module(), inputs_of(case)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("forward", "backward"):
            real = getattr(_around, name)
            patch.setattr(_around, name, lambda *a, name=name, real=real: (seen.update({name: a}), real(*a))[1])
        run(module, module, inputs)
    assert seen["forward"][-1] == "rms_norm_residual[*x24]{stream=f32} epsilon=1e-05"
    plain = lambda a: a.detach().clone() if isinstance(a, torch.Tensor) else (
        [plain(b) for b in a] if isinstance(a, (list, tuple)) else a)
    for name, arguments in seen.items():
        torch.library.opcheck(getattr(_around, name), tuple(plain(a) for a in arguments))


def test_func_grad_and_vmap():
    case = CASES["rms_norm_residual"]
    module, inputs = case.module(), inputs_of(case)
    of_y, of_h = data_of(case.shape, seed=20), data_of(case.shape, seed=21)

    def loss(inputs):
        y, h = module(**inputs)
        return (y.float() * of_y).sum() + (h * of_h).sum()

    many = {key: torch.stack([value, 2 * value]) for key, value in inputs.items()}
    ours = torch.vmap(torch.func.grad(loss))(many)
    for at in range(2):
        given = {key: value[at].clone().requires_grad_() for key, value in many.items()}
        loss(given).backward()
        for key, value in given.items():
            assert ours[key].dtype == value.dtype and torch.equal(ours[key][at], value.grad)


def test_a_chain_of_layers_keeps_its_sum_in_f32():
    norms = [CASES["rms_norm_residual"].module() for _ in range(8)]
    h = start = data_of((5, 24)).requires_grad_()
    layers = [data_of((5, 24), torch.bfloat16, seed=at) * 2.0**-9 for at in range(8)]
    for norm, layer in zip(norms, layers):
        y, h = norm(layer, residual=h)
        assert y.dtype == torch.bfloat16
    assert torch.equal(h, sum((layer.float() for layer in layers), start))
    h.sum().backward()
    assert torch.equal(start.grad, torch.ones_like(start))


def test_a_text_names_the_type():
    case = CASES["rms_norm_residual"]
    module, inputs = case.module(), inputs_of(case)
    named = nt.functional.norm("rms_norm_residual[*x24]{stream=f32} epsilon=1e-05", inputs["x"], module.weight,
                               residual=inputs["residual"])
    assert same(outputs_of(named), outputs_of(module(**inputs)))
    with pytest.raises(REFUSED, match="residual has dtype bf16; this plan takes f32"):
        nt.functional.norm("rms_norm_residual[*x24]{stream=f32}", inputs["x"], residual=inputs["x"])


@pytest.mark.parametrize("name, x, residual, said", [
    ("gemma_sandwich", torch.bfloat16, torch.float32,
     r"residual has the type f32 and x bf16, which gemma_sandwich does not take: stream=f32, but 'gemma_sandwich' has no "
     r"residual in front of it \[P15\]; cast residual to bf16"),
    ("rms_norm_residual", torch.float64, torch.bfloat16,
     r"which rms_norm_residual does not take: stream=bf16 does not go with data of f64 \[P15\]; cast residual to f64"),
    ("rms_norm_residual", torch.float32, torch.int64, "a norm takes torch.float32, .*, not torch.int64"),
    ("layer_norm", torch.bfloat16, torch.float32, "layer_norm takes nothing beside x; given is residual"),
])
def test_refuses_a_residual_of_a_wrong_type(name, x, residual, said):
    with pytest.raises(TypeError, match=said):
        nt.Norm(name, 24)(torch.ones(5, 24, dtype=x), residual=torch.ones(5, 24, dtype=residual))
