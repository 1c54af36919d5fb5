"""Data types, copies and checkpoints of modules."""

import copy
import io
import pickle

import normc.torch as nt
import pytest
import torch

from kit import CARRIED, EXACT, data_of, module_of

STATES = ["batch_norm", "power_norm_v", "power_norm", "power_norm_released"]


def stepped(name, dtype=torch.float32):
    module, shape = module_of(name, dtype)
    for seed in range(2):
        module(data_of(shape, dtype, seed).requires_grad_()).square().sum().backward()
    return module, shape


def fields(module):
    return {name: buffer.dtype for name, buffer in module.named_buffers() if buffer.is_floating_point()}


@pytest.mark.parametrize("name", {**EXACT, **CARRIED})
@pytest.mark.parametrize("cast, dtype", [
    (lambda m: m.to(torch.bfloat16), torch.bfloat16), (lambda m: m.bfloat16(), torch.bfloat16),
    (lambda m: m.half(), torch.float16), (lambda m: m.double(), torch.float64),
], ids=["to bfloat16", "bfloat16", "half", "double"])
def test_casts(name, cast, dtype):
    module, shape = stepped(name)
    before = {key: value.clone() for key, value in module.named_buffers()}
    module = cast(module)
    assert all(p.dtype == dtype for p in module.parameters())
    assert set(fields(module).values()) <= {torch.float64 if dtype == torch.float64 else torch.float32}
    assert all(torch.equal(before[key].to(value.dtype), value) for key, value in module.named_buffers())
    x = data_of(shape, dtype).requires_grad_()
    y = module(x)
    y.sum().backward()
    assert y.dtype == x.grad.dtype == dtype and all(p.grad.dtype == dtype for p in module.parameters())


@pytest.mark.parametrize("name", ["layer_norm", "power_norm", "batch_norm", "group_norm"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_data_in_16_bits_with_parameters_in_32(name, dtype):
    module, shape = module_of(name)
    x = data_of(shape, dtype).requires_grad_()
    y = module(x)
    y.sum().backward()
    assert y.dtype == x.grad.dtype == dtype and all(p.grad.dtype == torch.float32 for p in module.parameters())


@pytest.mark.parametrize("name", {**EXACT, **CARRIED})
def test_autocast_follows_x(name):
    module, shape = module_of(name)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for dtype in (torch.bfloat16, torch.float32):
            x = data_of(shape, dtype).requires_grad_()
            y = module(x)
            assert y.dtype == dtype
            y.sum().backward()
            assert x.grad.dtype == dtype
    assert set(fields(module).values()) <= {torch.float32}


def test_autocast_of_a_model():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(24, 24), nt.PowerNorm(24), torch.nn.Linear(24, 24), nt.LayerNorm(24))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = model(data_of((7, 24)))
    y.float().sum().backward()
    assert y.dtype == torch.bfloat16 and model[1].step == 1
    assert all(p.grad.dtype == torch.float32 for p in model.parameters())


def through_torch_save(module):
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def through_a_state_dict(module, **more):
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    fresh = copy.deepcopy(module)
    for tensor in fresh.state_dict().values():
        tensor.zero_()
    fresh.load_state_dict(torch.load(file, weights_only=True), **more)
    return fresh


COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda module: pickle.loads(pickle.dumps(module)),
    "torch.save": through_torch_save,
    "state_dict": through_a_state_dict,
    "assign": lambda module: through_a_state_dict(module, assign=True),
}


@pytest.mark.parametrize("name", STATES + ["layer_norm"])
@pytest.mark.parametrize("way", COPIES)
def test_a_copy_goes_on_as_the_original(way, name):
    module, shape = stepped(name)
    copied = COPIES[way](module)
    for seed in (7, 8):
        x = data_of(shape, seed=seed)
        a, b = (each(x.clone().requires_grad_()) for each in (module, copied))
        assert torch.equal(a, b)
        a.square().sum().backward(), b.square().sum().backward()
    for (key, a), (other, b) in zip(module.named_buffers(), copied.named_buffers(), strict=True):
        assert key == other and torch.equal(a, b)


@pytest.mark.parametrize("ours, theirs", [
    (lambda: nt.LayerNorm(24), lambda: torch.nn.LayerNorm(24)),
    (lambda: nt.BatchNorm1d(24), lambda: torch.nn.BatchNorm1d(24)),
    (lambda: nt.GroupNorm(4, 24), lambda: torch.nn.GroupNorm(4, 24)),
], ids=["layer_norm", "batch_norm", "group_norm"])
def test_weights_move_to_torch_and_back(ours, theirs):
    x = data_of((7, 24))
    for make, other in ((ours, theirs), (theirs, ours)):
        module, into = make(), other()
        for seed in range(3):
            module(data_of((7, 24), seed=seed))
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.normal_()
        into.load_state_dict(module.state_dict())
        assert (module.eval()(x) - into.eval()(x)).abs().max() < 1e-5


def test_a_state_in_16_bits_is_loaded_into_32():
    module, _ = stepped("power_norm")
    fresh, _ = module_of("power_norm")
    fresh.load_state_dict({key: value.bfloat16() if value.is_floating_point() else value
                           for key, value in module.state_dict().items()})
    assert fresh.psi2.dtype == torch.float32


def assigned(dtype):
    module = nt.BatchNorm1d(24)
    module.load_state_dict(torch.nn.BatchNorm1d(24, dtype=dtype).state_dict(), assign=True)
    return module


def replaced(dtype):
    module = torch.nn.BatchNorm1d(24).to(dtype)
    nt.replace(module, strict=True)
    return module


def of_the_default(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        return nt.BatchNorm1d(24)
    finally:
        torch.set_default_dtype(before)


MADE = {
    "constructor": lambda dtype: nt.BatchNorm1d(24, dtype=dtype),
    "default type": of_the_default,
    "replace": replaced,
    "sync": lambda dtype: nt.SyncBatchNorm.convert_sync_batchnorm(torch.nn.BatchNorm1d(24).to(dtype)),
    "sync of normc": lambda dtype: nt.SyncBatchNorm.convert_sync_batchnorm(nt.BatchNorm1d(24, dtype=dtype)),
    "assign": assigned,
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64], ids=str)
@pytest.mark.parametrize("way", MADE)
def test_running_statistics_of_a_module_in_16_bits_are_f32(way, dtype):
    module = MADE[way](dtype)
    x = data_of((7, 24), dtype).requires_grad_()
    module(x).sum().backward()
    assert module.weight.dtype == dtype and module.num_batches_tracked == 1
    assert set(fields(module).values()) == {torch.float64 if dtype == torch.float64 else torch.float32}
    assert module.eval()(x).dtype == dtype


def test_running_statistics_of_torch_s_own_code_keep_the_type_of_the_module():
    module = nt.BatchNorm1d(24, momentum=None, dtype=torch.bfloat16)
    module(data_of((7, 24), torch.bfloat16))
    assert module.running_mean.dtype == torch.bfloat16


def test_state_of_new_modules():
    norm = nt.PowerNorm(24)
    assert list(norm.state_dict()) == ["weight", "bias", "step", "psi2", "nu"]
    assert norm.step == 0 and torch.equal(norm.psi2, torch.ones(24)) and not norm.nu.any()
    assert nt.PowerNorm(24, dtype=torch.bfloat16).psi2.dtype == torch.float32
    assert nt.PowerNorm(24, dtype=torch.float64).psi2.dtype == torch.float64
    module, shape = stepped("power_norm")
    module.reset_state()
    assert all(torch.equal(a, b) for a, b in zip(module.buffers(), norm.buffers()))
