"""The operators as torch sees them: schemas, fake kernels, tracing with symbolic sizes, names."""

import normc.torch as nt
import pytest
import torch
from normc.torch import _ops

from kit import CARRIED, EXACT, data_of, module_of

CASES = {**EXACT, **CARRIED}


def samples(name, dtype=torch.float32):
    """Returns arguments of the operators forward, backward and infer, as the module would give them."""
    module, shape = module_of(name, dtype)
    x, dy = data_of(shape, dtype), data_of(shape, dtype, seed=6)
    seen = {}
    for operator in ("forward", "backward", "infer"):
        def record(*arguments, operator=operator, real=getattr(_ops, operator)):
            seen[operator] = tuple(list(a) if isinstance(a, tuple) else a for a in arguments)
            return real(*arguments)
        seen[operator + " of torch"] = record
    real = {operator: getattr(_ops, operator) for operator in ("forward", "backward", "infer")}
    try:
        for operator in real:
            setattr(_ops, operator, seen.pop(operator + " of torch"))
        module(x.requires_grad_()).backward(dy)
        with torch.no_grad():
            module.eval()(x)
    finally:
        for operator, before in real.items():
            setattr(_ops, operator, before)
    detached = lambda a: a.detach().clone() if isinstance(a, torch.Tensor) else a
    return {
        operator: tuple([detached(b) for b in a] if isinstance(a, list) else detached(a) for a in arguments)
        for operator, arguments in seen.items()
    }


@pytest.mark.parametrize("name", CASES)
def test_opcheck(name):
    for operator, arguments in samples(name).items():
        torch.library.opcheck(getattr(_ops, operator), arguments)


@pytest.mark.parametrize("name", ["layer_norm", "batch_norm of images", "power_norm"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=str)
def test_fake_kernels_of_other_types(name, dtype):
    for operator, arguments in samples(name, dtype).items():
        torch.library.opcheck(getattr(_ops, operator), arguments, test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize("name", ["batch_norm", "batch_norm of images", "power_norm"])
def test_opcheck_of_the_gradient_of_evaluation(name):
    x, scale, bias, mask, state, norm = samples(name)["infer"]
    for wanted in ((True, True, True), (True, False, False), (False, True, True)):
        torch.library.opcheck(_ops.infer_backward, (x, x.flip(0).contiguous(), scale, bias, mask, state, norm, *wanted))


def test_a_bias_alone_has_the_type_of_the_parameters(tmp_path, monkeypatch):
    path = tmp_path / "shifted.norm"
    path.write_text("norm shifted {\n  reduce features\n  affine bias\n}\n")
    module = nt.norm(path, 24).to(torch.bfloat16)
    x, dy = data_of((4, 24), torch.bfloat16).requires_grad_(), data_of((4, 24), torch.bfloat16)
    asked, real = [], _ops.library.facts
    monkeypatch.setattr(_ops.library, "facts", lambda *of: asked.append(of[2:4]) or real(*of))
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    compiled(x).backward(dy)
    assert set(asked) == {_ops.types_of(x, module.bias)} == {("bf16", "bf16")}


def test_opcheck_with_a_mask():
    mask = torch.arange(7) < 5
    norm = "power_norm_released[*x24]{heads=4}"
    state = [torch.zeros((), dtype=torch.int64), torch.ones(24), torch.zeros(24)]
    torch.library.opcheck(_ops.forward, (data_of((7, 24)), None, None, mask, state, norm))


def test_opcheck_of_channels_last():
    x = data_of((2, 8, 3, 2)).to(memory_format=torch.channels_last)
    torch.library.opcheck(_ops.infer, (x, None, None, None, None, "instance_norm[*x8x*]"))
    torch.library.opcheck(_ops.forward, (x, None, None, None, None, "instance_norm[*x8x*]"))


@pytest.mark.parametrize("name", CASES)
def test_meta_tensors(name):
    module, shape = module_of(name)
    with torch.device("meta"):
        empty = type(module)(*((24,) if len(shape) < 4 else (4, 8) if isinstance(module, nt.GroupNorm) else (8,)))
        x = torch.empty(shape, requires_grad=True)
    for mode in (True, False):
        y = empty.train(mode)(x)
        assert y.is_meta and y.shape == x.shape
    empty.train()(x).sum().backward()
    assert x.grad.is_meta and x.grad.shape == x.shape
    real = empty.to_empty(device="cpu")
    real.load_state_dict(type(module).state_dict(module), strict=False)
    assert real(data_of(shape)).shape == shape


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("batch_norm", "batch_norm of images")])
def test_zero_rows(name):
    module, shape = module_of(name)
    before = [buffer.clone() for buffer in module.buffers()]
    x = torch.empty((0, *shape[1:]), requires_grad=True)
    y = module(x)
    y.sum().backward()
    assert y.shape == x.shape == x.grad.shape
    assert all(not p.grad.any() for p in module.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before, module.buffers()))
    with torch.no_grad():
        assert module.eval()(x).shape == x.shape


@pytest.mark.parametrize("name", ["layer_norm", "group_norm", "instance_norm"])
def test_zero_rows_of_meta_tensors_have_the_sizes_of_real_ones(name):
    module, shape = module_of(name)
    x, norm = torch.empty((0, *shape[1:])), samples(name)["forward"][-1]
    arguments = x, module.weight.detach(), None if module.bias is None else module.bias.detach(), None, None, norm
    real = _ops.forward(*arguments)
    traced = _ops.forward(*(a.to("meta") if isinstance(a, torch.Tensor) else a for a in arguments))
    assert [a.shape for a in traced] == [a.shape for a in real]


def test_the_profiler_names_the_operators():
    module, shape = module_of("layer_norm")
    with torch.profiler.profile() as profile:
        module(data_of(shape)).sum().backward()
    names = {event.key for event in profile.key_averages()}
    assert {"normc::forward", "normc::backward"} <= names


def test_inference_tensors():
    module, shape = module_of("power_norm")
    with torch.inference_mode():
        y = module.eval()(data_of(shape))
    assert y.is_inference()


def test_the_entry_of_a_graph_is_its_text():
    module, shape = module_of("layer_norm")
    assert module(data_of(shape)).equal(
        torch.ops.normc.infer(data_of(shape), module.weight, module.bias, None, None, "layer_norm[*x24] epsilon=1e-05")
    )
