"""Norms on a CUDA device: against f64 on the CPU, in streams, graphs and torch.compile, and what errors say.

References are modules of torch.nn in f64, formulas, and for PowerNorm its module in f64, which test_power_norm.py
compares with formulas. Kernels come from tests/hosts/compile-cuda."""

import concurrent.futures
import copy

import normc.torch as nt
import pytest
import torch
from normc.torch import _ops, _ranks
from torch.utils._pytree import tree_map_only
from torch.utils.checkpoint import checkpoint

import around
from kit import CARRIED, EXACT, STATES, data_of, module_of, run, same
from test_compile import Called
from test_operators import samples

DEVICE = "cuda"
pytestmark = [pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device"),
              pytest.mark.usefixtures("cuda_kernels")]
REFUSED = RuntimeError, ValueError

SMALL = {**EXACT, **CARRIED}  # of kit.py: kernels for any number of features
CASES = {
    "layer_norm": (lambda: nt.LayerNorm(1024), (37, 1024)),
    "layer_norm of any length": (lambda: nt.LayerNorm(1000), (3, 5, 1000)),
    "layer_norm of an odd length": (lambda: nt.LayerNorm(1001), (15, 1001)),
    "layer_norm of long rows": (lambda: nt.LayerNorm(16384), (5, 16384)),
    "layer_norm of two dimensions": (lambda: nt.LayerNorm((64, 64)), (3, 64, 64)),
    "layer_norm without bias": (lambda: nt.LayerNorm(1024, bias=False), (37, 1024)),
    "layer_norm without affine": (lambda: nt.LayerNorm(1024, elementwise_affine=False), (37, 1024)),
    "rms_norm": (lambda: nt.RMSNorm(4096, eps=1e-6), (2, 9, 4096)),
    "rms_norm of an odd length": (lambda: nt.RMSNorm(1001, eps=1e-6), (15, 1001)),
    "group_norm": (lambda: nt.GroupNorm(32, 64), (3, 64, 9, 7)),
    "instance_norm": (lambda: nt.InstanceNorm2d(32, affine=True), (3, 32, 9, 7)),
    "batch_norm of few rows": (lambda: nt.BatchNorm1d(1024), (65, 1024)),
    "batch_norm of many rows": (lambda: nt.BatchNorm1d(1024), (700, 1024)),
    "batch_norm of images": (lambda: nt.BatchNorm2d(64), (4, 64, 9, 7)),
    "power_norm": (lambda: nt.PowerNorm(1024), (257, 1024)),
    "power_norm_v": (lambda: nt.PowerNormV(1024), (257, 1024)),
    "power_norm_released": (lambda: nt.PowerNorm(256, heads=4, warmup_iters=2), (129, 256)),
}
WITH_STATE = [name for name in CASES if name.split("_")[0] in ("batch", "power")]
BOUNDS = {torch.float32: 5e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}


def made(name, dtype=torch.float32):
    """Returns a module on the device with parameters that are no ones and zeros, and the shape of an input."""
    if name in SMALL:
        module, shape = module_of(name)
    else:
        make, shape = CASES[name]
        torch.manual_seed(3)
        module = make()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.normal_(1, 0.3)
    return module.to(DEVICE, dtype), shape


def data(shape, dtype=torch.float32, seed=5):
    return data_of(shape, dtype, seed).to(DEVICE)


def reference_of(module):
    """Returns the module in f64 on the CPU: that of torch.nn where there is one."""
    twin = copy.deepcopy(module).cpu().double()
    twin.__class__ = getattr(torch.nn, type(module).__name__, type(module))
    return twin


def wanted_of(twin, x, dy):
    return run(twin, x.detach().cpu().double(), dy.cpu().double())


def close(ours, theirs, bound):
    for a, b in zip(ours, theirs, strict=True):
        a, b = a.detach().cpu().double(), b.detach().cpu().double()
        assert a.shape == b.shape and a.isfinite().all()
        if a.numel():
            assert (a - b).abs().max() <= bound * max(1, b.abs().max())


def copied(values):
    return [value.detach().clone() for value in values]


# Numbers


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("name", {**CASES, **SMALL})
def test_three_steps_are_as_in_f64(name, dtype):
    module, shape = made(name)
    twin = reference_of(module)
    for step in range(3):
        x, dy = data(shape, dtype, step), data(shape, dtype, 10 + step)
        ours = run(module, x, dy)
        assert ours[0].dtype == ours[1].dtype == dtype and ours[0].device == x.device
        close(ours, wanted_of(twin, x, dy), BOUNDS[dtype])


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm of an odd length", "batch_norm of many rows", "power_norm"])
def test_parameters_of_16_bits(name):
    module, shape = made(name, torch.bfloat16)
    x, dy = data(shape, torch.bfloat16), data(shape, torch.bfloat16, 6)
    twin = reference_of(module)
    ours = run(module, x, dy)
    assert all(each.dtype == torch.bfloat16 for each in ours[: 2 + len(list(module.parameters()))])
    close(ours, wanted_of(twin, x, dy), BOUNDS[torch.bfloat16])


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("name", WITH_STATE)
def test_evaluation_is_as_in_f64(name, dtype):
    module, shape = made(name)
    for seed in range(2):
        run(module, data(shape, seed=seed), data(shape, seed=9))
    twin = reference_of(module.eval())
    x, dy = data(shape, dtype), data(shape, dtype, 6)
    wanted = wanted_of(twin, x, dy)
    close(run(module, x, dy), wanted, BOUNDS[dtype])
    with torch.inference_mode():
        close([module(x)], wanted[:1], BOUNDS[dtype])


@pytest.mark.parametrize("wanted", ["x", "weight", "bias"])
@pytest.mark.parametrize("name", ["layer_norm", "batch_norm of images", "power_norm"])
def test_only_the_wanted_gradients(name, wanted):
    module, shape = made(name)
    x, dy = data(shape), data(shape, seed=6)
    fresh = copy.deepcopy(module)
    full = dict(zip(("x", "weight", "bias"), run(module, x, dy)[1:]))
    every = {"x": x.clone(), **dict(fresh.named_parameters())}
    for key, tensor in every.items():
        tensor.requires_grad_(key == wanted)
    fresh(every["x"]).backward(dy)
    close([every[wanted].grad], [full[wanted]], 1e-6)
    assert all(tensor.grad is None for key, tensor in every.items() if key != wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", around.CASES)
def test_tensors_around_a_norm_are_as_in_f64(name, dtype):
    case = around.CASES[name]
    inputs = case.inputs(dtype)
    module = case.module().to(DEVICE)
    ours = around.run(module, module, {key: value.to(DEVICE) for key, value in inputs.items()})
    for a, b in zip(ours, around.exact(case, inputs)):
        close(a, b, BOUNDS[dtype])


def test_a_stream_of_another_type():
    case = around.CASES["rms_norm_residual"]
    inputs = {"x": case.inputs(torch.bfloat16)["x"], "residual": case.inputs()["residual"]}
    module = case.module().to(DEVICE)
    ours = around.run(module, module, {key: value.to(DEVICE) for key, value in inputs.items()})
    assert ours[0][0].dtype == torch.bfloat16 and ours[0][1].dtype == torch.float32
    for a, b in zip(ours, around.exact(case, inputs)):
        close(a, b, BOUNDS[torch.bfloat16])


@pytest.mark.parametrize("name, largest", [("rms_norm_residual_int8", 127), ("rms_norm_residual_e4m3_block", 448)])
def test_codes(name, largest):
    module = nt.Norm(name, 256, device=DEVICE).requires_grad_(False)
    x, residual = data((6, 256)), data((6, 256), seed=6)
    codes, stream, scale = module(x, residual=residual)
    assert torch.equal(stream, x + residual)
    y = around.rms((x + residual).cpu().double(), module.weight.cpu().double()).unflatten(-1, (scale[0].numel(), -1))
    close([scale.reshape(6, -1)], [y.abs().amax(-1) / largest], 1e-5)
    size = scale.cpu().double().reshape(6, -1, 1)
    step = size if codes.dtype == torch.int8 else torch.maximum(y.abs() / 8, size / 512)
    assert ((codes.cpu().double().view_as(y) * size - y).abs() <= 0.501 * step).all()


@pytest.mark.parametrize("name", ["layer_norm", "power_norm"])
def test_rows_that_a_mask_leaves_out(name):
    norm, shape = nt.Norm(name, 24, device=DEVICE), (9, 24)
    x, mask = data(shape), torch.arange(9, device=DEVICE) % 3 != 1
    twin = reference_of(norm)
    x.requires_grad_()
    y = norm(x, mask)
    y.backward(data(shape, seed=6))
    other = x.detach().cpu().double()[mask.cpu()].requires_grad_()
    wanted = twin(other)
    wanted.backward(data_of(shape, seed=6).double()[mask.cpu()])
    close([y[mask], x.grad[mask], *norm.buffers()], [wanted, other.grad, *twin.buffers()], 5e-5)
    assert not y[~mask].any() and not x.grad[~mask].any()


@pytest.mark.parametrize("name", ["batch_norm_unbiased", "power_norm_v"])
def test_statistics_of_two_ranks_are_those_of_all_rows(name):
    norm = f"{name}[*x24] decay=0.9 epsilon=1e-05"
    x, dy, scale, bias = data((11, 24)), data((11, 24), seed=6), data((24,), seed=7), data((24,), seed=8)
    known = _ops.library.facts(norm, "forward", "f32")
    kinds = {"i64": torch.int64, "f32": torch.float32}
    state = [torch.full([24] if "features" in field["shape"] else [], field["init"], dtype=kinds[field["dtype"]], device=DEVICE)
             for field in known["state"]]
    whole = _ops.forward(x, scale, bias, None, state, norm)
    saved = whole[1 : -len(state)]
    dx, dscale, dbias = _ops.backward(x, dy, scale, bias, None, saved, None, norm, True, True, True)

    rows = (slice(0, 4), slice(4, 11))
    sums = torch.stack([_ranks.forward_reduce(x[r], scale, bias, None, None, norm)[-1] for r in rows])
    parts = [_ranks.forward_apply(x[r], scale, bias, None, sums, state, norm) for r in rows]
    for part, r in zip(parts, rows):
        close([part[0], *part[-len(state) :]], [whole[0][r], *whole[-len(state) :]], 1e-5)
    back = [_ranks.backward_reduce(x[r], dy[r], scale, bias, None, part[1 : -len(state)], None, norm, False, True, True)
            for part, r in zip(parts, rows)]
    close([back[0][0] + back[1][0], back[0][1] + back[1][1]], [dscale, dbias], 1e-5)
    sums = torch.stack([each[-1] for each in back])
    for part, r in zip(parts, rows):
        made = _ranks.backward_apply(x[r], dy[r], scale, bias, None, part[1 : -len(state)], sums, None, norm)
        close(made[:1], [dx[r]], 1e-5)


def test_the_bits_of_two_runs_are_the_same():
    for name in ("layer_norm", "batch_norm of many rows", "power_norm"):
        module, shape = made(name)
        x, dy = data((9 * shape[0], *shape[1:])), data((9 * shape[0], *shape[1:]), seed=6)
        assert same(run(copy.deepcopy(module), x, dy), run(module, x, dy))


def test_more_elements_than_32_bits_count():
    rows, features = 2**31 // 4096 + 5, 4096
    if torch.cuda.mem_get_info()[0] < 40e9:
        pytest.skip("the device has less than 40 GB of free memory")
    norm = nt.LayerNorm(features, device=DEVICE)
    x = torch.empty(rows, features, dtype=torch.bfloat16, device=DEVICE).normal_().requires_grad_()
    dy = x.detach()
    y = norm(x)
    y.backward(dy)
    dbias = sum(part.sum(0, dtype=torch.float64) for part in dy.split(65536))
    assert (norm.bias.grad - dbias).abs().max() <= 1e-3 * dbias.abs().max()
    end = x.detach()[-7:].clone().requires_grad_()
    z = norm(end)
    z.backward(dy[-7:])
    close([y[-7:], x.grad[-7:]], [z, end.grad], 1e-2)


# Tensors


def misaligned(x):
    """Returns a copy that begins one element behind a multiple of 16 bytes."""
    memory = torch.empty(x.numel() + 1, dtype=x.dtype, device=x.device)[1:]
    return memory.view(x.shape).copy_(x)


LAYOUTS = {
    "misaligned": misaligned,
    "rows of a wider tensor": lambda x: torch.cat([x, x], -1)[..., : x.shape[-1]],
    "rows of an odd stride": lambda x: torch.cat([x, x[..., :1]], -1)[..., : x.shape[-1]],
    "transposed": lambda x: x.transpose(0, -1).contiguous().transpose(0, -1),
    "every second row": lambda x: x.repeat_interleave(2, 0)[::2],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["layer_norm", "layer_norm of any length", "rms_norm", "batch_norm of many rows", "power_norm"])
def test_any_layout_of_rows(name, layout, dtype):
    module, shape = made(name)
    x, dy = (LAYOUTS[layout](data(shape, dtype, seed)) for seed in (5, 6))
    twin = reference_of(module)
    given = x.detach().requires_grad_()
    y = module(given)
    y.backward(dy)
    ours = [y, given.grad, *(p.grad for p in module.parameters()), *module.buffers()]
    close(ours, wanted_of(twin, x, dy), BOUNDS[dtype])


@pytest.mark.parametrize("layout", [
    lambda x: x.to(memory_format=torch.channels_last),
    lambda x: x.transpose(2, 3).contiguous().transpose(2, 3),
    lambda x: torch.cat([x, x], 1)[:, ::2],
    misaligned,
], ids=["channels_last", "transposed", "every second channel", "misaligned"])
@pytest.mark.parametrize("name", ["group_norm", "instance_norm", "batch_norm of images"])
def test_any_layout_of_images(name, layout):
    module, shape = made(name)
    x, dy = layout(data(shape)), layout(data(shape, seed=6))
    twin = reference_of(module)
    given = x.detach().requires_grad_()
    y = module(given)
    y.backward(dy)
    close([y, given.grad, *(p.grad for p in module.parameters()), *module.buffers()], wanted_of(twin, x, dy), 5e-5)
    if x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous():
        assert y.stride() == x.stride()


def test_misaligned_parameters_and_their_gradients():
    module, shape = made("layer_norm")
    x, dy = data(shape), data(shape, seed=6)
    wanted = run(module, x, dy)
    for key, parameter in list(module.named_parameters()):
        setattr(module, key, torch.nn.Parameter(misaligned(parameter.detach())))
    close(run(module, x, dy), wanted, 1e-5)


def test_rows_with_stride_zero():
    module, shape = made("layer_norm")
    x, dy = (data(shape, seed=seed)[:1].expand(shape).detach() for seed in (5, 6))
    twin = reference_of(module)
    x.requires_grad_()
    y = module(x)
    y.backward(dy)
    assert x.stride(0) == dy.stride(0) == 0
    close([y, x.grad, *(p.grad for p in module.parameters())], wanted_of(twin, x, dy), 5e-5)


@pytest.mark.parametrize("name", [name for name in SMALL if name not in ("batch_norm", "batch_norm of images")])
def test_zero_rows(name):
    module, shape = made(name)
    before = copied(module.buffers())
    x = torch.empty((0, *shape[1:]), device=DEVICE, requires_grad=True)
    y = module(x)
    y.sum().backward()
    assert y.shape == x.shape == x.grad.shape
    assert all(not p.grad.any() for p in module.parameters())
    assert same(list(module.buffers()), before)


# What torch does with operators


@pytest.mark.parametrize("name", ["layer_norm", "batch_norm", "batch_norm of images", "power_norm"])
def test_opcheck(name):
    for operator, arguments in samples(name).items():
        arguments = tree_map_only(torch.Tensor, lambda each: each.to(DEVICE), arguments)
        torch.library.opcheck(getattr(_ops, operator), arguments)


def test_opcheck_of_tensors_around_a_norm():
    norm = "rms_norm_residual[*x24]"
    torch.library.opcheck(torch.ops.normc.forward_around.default,
                          (data((5, 24)), data((24,)), None, None, [data((5, 24), seed=6)], None, norm))


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "group_norm"])
def test_gradients_of_each_sample(name):
    module, shape = made(name)
    x, dy = data((3, *shape)), data((3, *shape), seed=6)
    values = {key: value.detach() for key, value in module.named_parameters()}
    loss = lambda values, x, dy: (torch.func.functional_call(module, values, (x,)) * dy).sum()
    ours = torch.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(values, x, dy)
    for at in range(3):
        module.zero_grad()
        (module(x[at]) * dy[at]).sum().backward()
        close([each[at] for each in ours.values()], [value.grad for value in module.parameters()], 1e-5)


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "group_norm", "batch_norm", "power_norm", "power_norm_released"])
def test_a_compiled_module_is_eager_bit_by_bit(name):
    torch._dynamo.reset()
    module, shape = made(name)
    other = copy.deepcopy(module)
    compiled = Called(other, torch.compile(other, backend="aot_eager", fullgraph=True))
    for seed in range(2):
        x, dy = data(shape, seed=seed), data(shape, seed=9)
        assert same(run(compiled, x, dy), run(module, x, dy))


@pytest.mark.inductor
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_inductor_is_eager_bit_by_bit(mode):
    """With reduce-overhead torch captures what leaves no buffer changed: the first two norms alone."""
    torch._dynamo.reset()
    names = ["layer_norm", "rms_norm of an odd length"] + (["power_norm"] if mode == "default" else [])
    for name in names:
        module, shape = made(name)
        other = copy.deepcopy(module)
        compiled = Called(other, torch.compile(other, mode=mode, fullgraph=True))
        for seed in range(4):
            x, dy = data(shape, seed=seed), data(shape, seed=9)
            torch.compiler.cudagraph_mark_step_begin()
            assert same(run(compiled, x, dy), run(module, x, dy))


def test_autocast():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(24, 24), nt.PowerNorm(24), torch.nn.Linear(24, 24), nt.LayerNorm(24)).to(DEVICE)
    twin = copy.deepcopy(model).cpu()
    x, dy = data((7, 24)), data((7, 24), torch.bfloat16, 6)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        y = model(x)
    y.backward(dy)
    z = twin(x.cpu())
    z.backward(dy.cpu().float())
    assert y.dtype == torch.bfloat16 and model[1].step == 1 and model[1].psi2.dtype == torch.float32
    assert all(p.grad.dtype == torch.float32 for p in model.parameters())
    close([y, *(p.grad for p in model.parameters())], [z, *(p.grad for p in twin.parameters())], 5e-2)


def test_a_step_that_the_scaler_skips_leaves_the_state():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(24, 24), nt.PowerNorm(24, commit="step")).to(DEVICE)
    scaler = torch.amp.GradScaler(DEVICE, init_scale=8.0, growth_interval=100)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for factor, steps in ((float("inf"), 0), (1.0, 1), (float("nan"), 1), (1.0, 2)):
        scaler.scale(model(data((9, 24))).square().sum() * factor).backward()
        scaler.step(optimizer)
        scaler.update()
        nt.commit(model, scaler)
        optimizer.zero_grad()
        assert model[1].step == steps and model[1].nu.isfinite().all()


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_change_no_bit(reentrant):
    torch.manual_seed(0)
    model = torch.nn.Sequential(nt.LayerNorm(24), nt.PowerNorm(24), torch.nn.GELU(), nt.PowerNorm(24, heads=4)).to(DEVICE)
    other = copy.deepcopy(model)
    again = Called(other, lambda x: checkpoint(other, x, use_reentrant=reentrant))
    for seed in range(3):
        x, dy = data((9, 24), seed=seed), data((9, 24), seed=9)
        assert same(run(again, x, dy), run(model, x, dy))


def test_the_norms_of_a_model_are_replaced():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 3), torch.nn.BatchNorm2d(64), torch.nn.GroupNorm(32, 64),
                                torch.nn.Flatten(2), torch.nn.LayerNorm(36)).to(DEVICE)
    before = copy.deepcopy(model)
    assert len(nt.replace(model, strict=True).replaced) == 3
    x, dy = data((4, 3, 8, 8)), data((4, 64, 36), seed=6)
    close(run(model, x, dy), run(before, x, dy), 5e-3)  # convolutions in TF32


# Streams and graphs


def late(stream, *tensors):
    """Returns copies that the stream fills after a while: what runs on another stream finds NaN."""
    held = [torch.full_like(tensor, float("nan")) for tensor in tensors]
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        for to, tensor in zip(held, tensors):
            to.copy_(tensor)
    return held


@pytest.mark.parametrize("name", ["layer_norm", "layer_norm without affine", "batch_norm of many rows", "power_norm"])
def test_a_call_runs_on_the_current_stream(name):
    module, shape = made(name)
    x, dy = data(shape), data(shape, seed=6)
    wanted = run(copy.deepcopy(module), x, dy)
    stream = torch.cuda.Stream()
    held = late(stream, x, dy)
    with torch.cuda.stream(stream):
        ours = run(module, *held)
    stream.synchronize()
    assert same(ours, wanted)


def test_the_constants_of_a_norm_without_parameters_serve_every_stream():
    """The first stream is busy when it makes them."""
    x, norm = data((37, 1003)), nt.LayerNorm(1003, elementwise_affine=False)
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    held = late(first, x)
    with torch.cuda.stream(first):
        norm(*held)
    with torch.cuda.stream(second):
        y = norm(x)
    torch.cuda.synchronize()
    close([y], [torch.nn.functional.layer_norm(x.cpu().double(), (1003,))], 5e-5)


def test_threads_have_streams_of_their_own():
    module, shape = made("layer_norm")
    given = [(data(shape, seed=seed), data(shape, seed=50 + seed)) for seed in range(4)]
    wanted = [run(copy.deepcopy(module), *each) for each in given]
    torch.cuda.synchronize()

    def work(at):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            own = copy.deepcopy(module)
            results = [run(own, *given[at]) for _ in range(20)]
            stream.synchronize()
        return results

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for results, each in zip(pool.map(work, range(4)), wanted):
            assert all(same(ours, each) for ours in results)


@pytest.mark.parametrize("name", ["layer_norm", "layer_norm without affine", "rms_norm of an odd length", "group_norm",
                                  "batch_norm of few rows", "batch_norm of many rows", "power_norm", "power_norm_released"])
def test_a_captured_step_counts_on(name):
    module, shape = made(name)
    eager = copy.deepcopy(module)
    before = copied(module.buffers())
    x, dy = data(shape).requires_grad_(), data(shape, seed=6)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            run(module, x, dy)
    torch.cuda.current_stream().wait_stream(side)
    for buffer, value in zip(module.buffers(), before):
        buffer.copy_(value)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = module(x)
        y.backward(dy)
    for seed in range(3):
        with torch.no_grad():
            x.copy_(data(shape, seed=seed)), dy.copy_(data(shape, seed=20 + seed))
        graph.replay()
        ours = copied([y, x.grad, *(p.grad for p in module.parameters()), *module.buffers()])
        assert same(ours, run(eager, x, dy))


def test_a_captured_evaluation_reads_the_state_afresh():
    module, shape = made("power_norm")
    x = data(shape)
    with torch.no_grad():
        module.eval()(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = module(x)
        module.psi2.add_(1.5)
        graph.replay()
        assert torch.equal(y, module(x))


def test_the_first_call_of_a_norm_may_be_captured():
    norm, x = nt.LayerNorm(4096, eps=0.25, device=DEVICE), data((3, 4096))
    with torch.no_grad():
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = norm(x)
        graph.replay()
        close([y], [torch.nn.functional.layer_norm(x.cpu().double(), (4096,), eps=0.25)], 5e-5)


def test_a_first_call_without_parameters_may_be_captured():
    """Eager calls that follow take constants that no capture recorded."""
    norm, x = nt.LayerNorm(4096, eps=0.5, elementwise_affine=False), data((3, 4096))
    wanted = torch.nn.functional.layer_norm(x.cpu().double(), (4096,), eps=0.5)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = norm(x)
    close([norm(x)], [wanted], 5e-5)
    graph.replay()
    close([y], [wanted], 5e-5)


def test_make_graphed_callables():
    module, shape = made("layer_norm")
    eager = copy.deepcopy(module)
    graphed = torch.cuda.make_graphed_callables(module, (data(shape).requires_grad_(),))
    for seed in range(3):
        x, dy = data(shape, seed=seed), data(shape, seed=9)
        assert same(run(Called(module, graphed), x, dy), run(eager, x, dy))


# Errors


@pytest.mark.parametrize("call, said", [
    (lambda: nt.LayerNorm(24)(data((5, 24))), r"scale.* is on device type 1; this plan runs on cuda:0 \(kDLCUDA, 2\)"),
    (lambda: nt.LayerNorm(24, device=DEVICE)(data_of((5, 24))),
     r"scale.* is on device type 2; this plan runs on the CPU \(kDLCPU, 1\)"),
    (lambda: nt.PowerNorm(24, affine=False)(data((5, 24))), r"is on device type 1; this plan runs on cuda:0"),
    (lambda: nt.Norm("layer_norm", 24, device=DEVICE)(data((5, 24)), torch.ones(5, dtype=torch.bool)),
     r"mask.* is on device type 1; this plan runs on cuda:0"),
    (lambda: nt.Norm("rms_norm_residual", 24, device=DEVICE)(data((5, 24)), residual=data_of((5, 24))),
     r"residual.* is on device type 1; this plan runs on cuda:0"),
    (lambda: nt.LayerNorm(24, device=DEVICE)(data((5, 23))), r"x has the shape \[5, 23\]; layer_norm takes \[..., 24\]"),
    (lambda: nt.LayerNorm(24, device=DEVICE, dtype=torch.float64)(data((5, 24), torch.float64)),
     r"no kernel serves layer_norm:forward@f64\[\*x24\]"),
    (lambda: nt.LayerNorm(24, device=DEVICE)(data((5, 24)).int()), "float32, float64, bfloat16 or float16"),
], ids=["a scale on the CPU", "x on the CPU", "a state on the CPU", "a mask on the CPU", "a residual on the CPU", "shape",
        "f64", "type"])
def test_refuses_tensors_of_another_device_shape_or_type(call, said):
    with pytest.raises(REFUSED, match=said):
        call()
    y = nt.LayerNorm(24, device=DEVICE)(data((5, 24)))
    close([y], [torch.nn.functional.layer_norm(data_of((5, 24)).double(), (24,))], 5e-5)
