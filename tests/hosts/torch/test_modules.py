"""Modules against those of torch.nn: outputs, gradients, state, and what a state_dict holds."""

import copy

import normc.torch as nt
import pytest
import torch

CASES = {
    "layer_norm": (nt.LayerNorm, torch.nn.LayerNorm, (96,), (5, 7, 96)),
    "layer_norm of two dimensions": (nt.LayerNorm, torch.nn.LayerNorm, ((6, 16),), (5, 6, 16)),
    "layer_norm without bias": (nt.LayerNorm, torch.nn.LayerNorm, (96, 1e-5, True, False), (5, 96)),
    "layer_norm without affine": (nt.LayerNorm, torch.nn.LayerNorm, (96, 1e-3, False), (96,)),
    "rms_norm": (nt.RMSNorm, torch.nn.RMSNorm, (96,), (3, 4, 96)),
    "rms_norm with eps": (nt.RMSNorm, torch.nn.RMSNorm, (96, 1e-3), (3, 4, 96)),
    "group_norm": (nt.GroupNorm, torch.nn.GroupNorm, (4, 32), (3, 32, 5, 6)),
    "group_norm of vectors": (nt.GroupNorm, torch.nn.GroupNorm, (4, 32), (3, 32)),
    "instance_norm": (nt.InstanceNorm2d, torch.nn.InstanceNorm2d, (32, 1e-5, 0.1, True), (3, 32, 5, 6)),
    "instance_norm without a batch": (nt.InstanceNorm1d, torch.nn.InstanceNorm1d, (32,), (32, 6)),
    "instance_norm, running": (nt.InstanceNorm1d, torch.nn.InstanceNorm1d, (32, 1e-5, 0.1, True, True), (4, 32, 6)),
    "batch_norm of rows": (nt.BatchNorm1d, torch.nn.BatchNorm1d, (96,), (33, 96)),
    "batch_norm of sequences": (nt.BatchNorm1d, torch.nn.BatchNorm1d, (16, 1e-3, 0.3), (9, 16, 5)),
    "batch_norm of images": (nt.BatchNorm2d, torch.nn.BatchNorm2d, (16,), (4, 16, 5, 6)),
    "batch_norm of volumes": (nt.BatchNorm3d, torch.nn.BatchNorm3d, (16,), (2, 16, 3, 4, 5)),
    "batch_norm without affine": (nt.BatchNorm2d, torch.nn.BatchNorm2d, (16, 1e-5, 0.1, False), (4, 16, 5, 6)),
    "batch_norm without running": (nt.BatchNorm2d, torch.nn.BatchNorm2d, (16, 1e-5, 0.1, True, False), (4, 16, 5, 6)),
    "batch_norm, momentum 0": (nt.BatchNorm2d, torch.nn.BatchNorm2d, (16, 1e-5, 0.0), (4, 16, 5, 6)),
    "batch_norm, momentum 1": (nt.BatchNorm1d, torch.nn.BatchNorm1d, (16, 1e-5, 1.0), (9, 16)),
    "batch_norm, momentum None, without running": (
        nt.BatchNorm1d, torch.nn.BatchNorm1d, (16, 1e-5, None, True, False), (9, 16)),
    "batch_norm, plain mean": (nt.BatchNorm1d, torch.nn.BatchNorm1d, (16, 1e-5, None), (9, 16)),
}
BOUNDS = {torch.float32: 3e-5, torch.float64: 1e-12, torch.bfloat16: 3e-2}


def pair(name, dtype):
    ours, theirs, arguments, shape = CASES[name]
    torch.manual_seed(1)
    a, b = ours(*arguments), theirs(*arguments)
    with torch.no_grad():
        for parameter in a.parameters():
            parameter.normal_(1, 0.3)
    b.load_state_dict(a.state_dict())
    return a.to(dtype), b.to(dtype), 3 + torch.randn(shape, dtype=dtype)


def run(module, x, dy):
    x = x.detach().clone().requires_grad_()
    y = module(x)
    y.backward(dy)
    return [y.detach(), x.grad, *(p.grad for p in module.parameters())]


def compare(ours, theirs, bound):
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        if a.numel():
            assert (a.double() - b.double()).abs().max() <= bound * max(1, b.double().abs().max())


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_is_as_torch_in_training(name, dtype):
    ours, theirs, x = pair(name, dtype)
    dy = torch.randn_like(x)
    for _ in range(3):
        compare(run(ours, x, dy), run(theirs, x, dy), BOUNDS[dtype])
        ours.zero_grad(), theirs.zero_grad()
    for name, value in theirs.state_dict().items():
        compare([ours.state_dict()[name].to(value.dtype)], [value], BOUNDS[dtype])


@pytest.mark.parametrize("name", CASES)
def test_is_as_torch_in_evaluation(name):
    ours, theirs, x = pair(name, torch.float32)
    for _ in range(2):
        ours(x), theirs(x)
    ours.eval(), theirs.eval()
    compare([ours(x)], [theirs(x)], 3e-5)
    with torch.inference_mode():
        compare([ours(x)], [theirs(x)], 3e-5)


@pytest.mark.parametrize("name", CASES)
def test_has_the_signature_and_the_state_dict_of_torch(name):
    import inspect

    ours, theirs, _, _ = CASES[name]
    assert inspect.signature(ours) == inspect.signature(theirs)
    assert list(inspect.signature(ours.forward).parameters) == list(inspect.signature(theirs.forward).parameters)
    assert issubclass(ours, theirs)
    a, b, _ = pair(name, torch.float32)
    assert list(a.state_dict()) == list(b.state_dict())
    copy.deepcopy(a).load_state_dict(b.state_dict(), assign=True)


@pytest.mark.parametrize("make", [
    lambda x: x.to(memory_format=torch.channels_last),
    lambda x: x.transpose(2, 3).contiguous().transpose(2, 3),
    lambda x: torch.cat([x, x], 1)[:, ::2],
    lambda x: x.expand(4, *x.shape[1:]),
    lambda x: x[:0],
], ids=["channels_last", "transposed", "every second channel", "expanded", "empty"])
def test_takes_any_strides(make):
    ours, theirs = nt.GroupNorm(4, 16), torch.nn.GroupNorm(4, 16)
    x = make(torch.randn(1, 16, 5, 6))
    dy = torch.randn(x.shape)
    compare(run(ours, x, dy), run(theirs, x, dy), 3e-5)
    if x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous():
        assert ours(x).stride() == x.stride()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
def test_the_epsilon_of_an_rms_norm_without_one_is_that_of_torch(dtype):
    x = (1e-3 * torch.rand(4, 96, generator=torch.Generator().manual_seed(0))).to(dtype)  # its squares are about 1e-7
    theirs = torch.nn.RMSNorm(96, dtype=dtype)(x)
    compare([nt.RMSNorm(96, dtype=dtype)(x), nt.functional.rms_norm(x, (96,))], [theirs] * 2, 2e-2)


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
def test_takes_running_statistics_of_any_strides(training):
    theirs, whole = torch.nn.BatchNorm1d(8).train(training), 0.5 + torch.rand(8, 3)
    theirs.running_mean, theirs.running_var = whole[:, 0], whole[:, 1]
    ours = nt.BatchNorm1d(8).train(training)
    whole = whole.clone()
    ours.running_mean, ours.running_var = whole[:, 0], whole[:, 1]
    x = torch.randn(5, 8)
    assert (ours(x) - theirs(x)).abs().max() < 1e-5
    assert (ours.running_var - theirs.running_var).abs().max() < 1e-5


@pytest.mark.parametrize("missing", ["num_batches_tracked", "running_mean"])
def test_running_statistics_that_are_not_all_there_are_those_of_torch(missing):
    modules, x = [of.BatchNorm1d(8) for of in (nt, torch.nn)], torch.randn(5, 8)
    for training in (True, False):
        for module in modules:
            setattr(module.train(training), missing, None)
            if missing == "running_mean":
                module.running_var = None
        assert torch.equal(*(module(x) for module in modules))


@pytest.mark.parametrize("kind", [nt.BatchNorm1d, nt.PowerNorm])
def test_an_evaluation_and_a_step_of_training_have_one_backward(kind):
    torch.manual_seed(3)
    x = torch.randn(8, 4)

    def gradient(evaluates, trains):
        norm, of = kind(4), x.clone().requires_grad_()
        norm(x * 2).sum().backward()  # a state that is not the first
        loss = norm.eval()(of).square().sum() if evaluates else 0
        if trains:
            loss = loss + (norm.train()(of) ** 3).sum()
        loss.backward()
        return of.grad

    torch.testing.assert_close(gradient(True, True), gradient(True, False) + gradient(False, True))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16], ids=str)
def test_a_step_stays_a_number_when_the_module_changes_its_type(dtype):
    norm = nt.BatchNorm1d(4).type(dtype)
    norm(torch.randn(8, 4, dtype=dtype))
    assert norm.num_batches_tracked.dtype == torch.int64 and norm.num_batches_tracked == 1


def test_takes_a_gradient_with_stride_zero():
    x = torch.randn(4, 96, requires_grad=True)
    nt.LayerNorm(96)(x).sum().backward()
    assert x.grad.abs().max() < 1e-5


@pytest.mark.parametrize("call, said", [
    (lambda: nt.LayerNorm(96)(torch.randn(4, 95)), r"expected input with shape \[\*, 96\], but got input of size \[4, 95\]"),
    (lambda: nt.LayerNorm(32)(torch.randn(2, 4, 8)), r"expected input with shape \[\*, 32\], but got input of size \[2, 4, 8\]"),
    (lambda: nt.LayerNorm((4, 8))(torch.randn(2, 8, 4)), r"expected input with shape \[\*, 4, 8\]"),
    (lambda: nt.LayerNorm((4, 8))(torch.randn(2, 32)), r"expected input with shape \[\*, 4, 8\]"),
    (lambda: nt.RMSNorm(32)(torch.randn(2, 4, 8)), r"expected input with shape \[\*, 32\]"),
    (lambda: nt.functional.layer_norm(torch.randn(2, 4, 8), [32]), r"expected input with shape \[\*, 32\]"),
    (lambda: nt.LayerNorm(96, elementwise_affine=False)(torch.randn(4, 95)), r"expected input with shape \[\*, 96\]"),
    (lambda: nt.LayerNorm(96)(torch.zeros(4, 96, dtype=torch.int32)), "float32, float64, bfloat16 or float16"),
    (lambda: nt.LayerNorm(96)(torch.zeros(4, 96, dtype=torch.int64)), "float32, float64, bfloat16 or float16"),
    (lambda: nt.LayerNorm(96)(torch.zeros(4, 96, dtype=torch.bool)), "float32, float64, bfloat16 or float16"),
    (lambda: nt.BatchNorm1d(8, affine=False)(torch.randn(4, 8).double()),
     "state of batch_norm_unbiased is of another type than x; it is of float64 for x of float64"),
    (lambda: nt.BatchNorm2d(16)(torch.randn(4, 16)), "expected 4D input"),
    (lambda: nt.BatchNorm2d(16)(torch.randn(4, 15, 3, 3)), r"takes \[batch, 16, positions...\]"),
    (lambda: nt.BatchNorm1d(6)(torch.randn(2, 3)), r"the input has the shape \[2, 3\]; BatchNorm1d takes \[batch, 6\]"),
    (lambda: nt.BatchNorm1d(6)(torch.randn(3, 2)), r"the input has the shape \[3, 2\]; BatchNorm1d takes \[batch, 6\]"),
    (lambda: nt.BatchNorm1d(512).eval()(torch.randn(2, 256)), r"BatchNorm1d takes \[batch, 512\]"),
    (lambda: nt.BatchNorm1d(16)(torch.randn(1, 16)), "Expected more than 1 value per channel"),
    (lambda: nt.InstanceNorm1d(3, affine=True)(torch.randn(2, 4, 5)), r"to match num_features \(3\), but got 4"),
    (lambda: nt.InstanceNorm1d(3, affine=True)(torch.randn(4, 5)), r"to match num_features \(3\), but got 4"),
    (lambda: nt.InstanceNorm1d(4)(torch.randn(2, 4, 1)), r"Expected more than 1 spatial element when training"),
    (lambda: nt.functional.instance_norm(torch.randn(2, 4, 1)), "Expected more than 1 spatial element when training"),
    (lambda: nt.functional.instance_norm(torch.randn(2, 4, 5), torch.zeros(4), torch.ones(4)),
     "running_mean and running_var are given, and normc keeps no running statistics of instances; leave them out"),
    (lambda: nt.functional.instance_norm(torch.randn(2, 4, 5), torch.zeros(4), torch.ones(4), use_input_stats=False),
     "use_input_stats is False, which normalizes with running statistics; use a BatchNorm of normc.torch in"),
    (lambda: nt.functional.layer_norm(torch.randn(2, 4, 8), (4, 8), torch.ones(32)),
     r"weight has the shape \[32\]; this norm takes \[4, 8\]"),
    (lambda: nt.functional.layer_norm(torch.randn(2, 8), (8,), None, torch.ones(1)), r"bias has the shape \[1\]; this"),
    (lambda: nt.functional.rms_norm(torch.randn(2, 8), (8,), torch.ones(4)), r"weight has the shape \[4\]; this"),
    (lambda: nt.functional.group_norm(torch.randn(2, 8, 3), 2, torch.ones(2, 4)), r"weight has the shape \[2, 4\]"),
    (lambda: nt.functional.instance_norm(torch.randn(2, 8, 3), bias=torch.ones(4)), r"bias has the shape \[4\]; this"),
    (lambda: nt.GroupNorm(4, 32)(torch.randn(32)), "Expected at least 2 dimensions for input tensor but received 1"),
    (lambda: nt.GroupNorm(4, 32)(torch.randn(2, 31, 3)), "31 channels are not divisible by 4 groups"),
    (lambda: nt.functional.group_norm(torch.randn(2, 8, 3), 0), "8 channels are not divisible by 0 groups"),
    (lambda: nt.functional.group_norm(torch.randn(2, 8, 3), torch.ones(8), torch.ones(8)),
     "group_norm takes the number of groups as its second argument, an integer, not Tensor"),
    (lambda: nt.functional.group_norm(torch.randn(2, 8, 3), 4.0), "second argument, an integer, not float"),
    (lambda: nt.LayerNorm(96, dtype=torch.bfloat16)(torch.randn(4, 96)), "params"),
])
def test_refuses_inputs_that_do_not_fit_the_module(call, said):
    with pytest.raises(Exception, match=said):
        call()


FUNCTIONS = {
    "layer_norm": lambda of, x, w, b: of(x, x.shape[1:], w, b, 1e-3),
    "rms_norm": lambda of, x, w, b: of(x, x.shape[1:], w, 1e-3),
    "group_norm": lambda of, x, w, b: of(x, 2, w[:, 0], b[:, 0], 1e-3),
    "instance_norm": lambda of, x, w, b: of(x, None, None, w[:, 0], b[:, 0], True, 0.1, 1e-3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_take_the_arguments_of_torch(name):
    import inspect

    ours, theirs = getattr(nt.functional, name), getattr(torch.nn.functional, name)
    arguments = lambda of: [(each.name, each.default) for each in inspect.signature(of).parameters.values()]
    assert [each for each in arguments(ours) if each[0] != "round"] == arguments(theirs)
    x, w, b = torch.randn(3, 4, 6), torch.randn(4, 6), torch.randn(4, 6)
    compare([FUNCTIONS[name](ours, x, w, b)], [FUNCTIONS[name](theirs, x, w, b)], 3e-5)


@pytest.mark.parametrize("shape", [(2, 4, 5), (4, 5)], ids=str)
def test_instance_norm_without_an_affine_takes_any_number_of_channels(shape):
    x, dy = torch.randn(shape), torch.randn(shape)
    with pytest.warns(UserWarning, match="the input has 4 channels and num_features is 3, which a module with affine=False"):
        ours = run(nt.InstanceNorm1d(3), x, dy)
    with pytest.warns(UserWarning):
        theirs = run(torch.nn.InstanceNorm1d(3), x, dy)
    compare(ours, theirs, 3e-5)


def test_instance_norm_of_any_number_of_channels_is_compiled_whole():
    module, x = nt.InstanceNorm1d(3), torch.randn(2, 4, 5)
    with pytest.warns(UserWarning):
        wanted = module(x)
    assert torch.equal(torch.compile(module, backend="aot_eager", fullgraph=True)(x), wanted)
