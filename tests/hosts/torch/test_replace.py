"""replace: what it changes, what it leaves, and that a model trains as before."""

import copy
import pathlib

import normc
import normc.torch as nt
import pytest
import torch

from kit import data_of


class Block(torch.nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.before, self.after = torch.nn.LayerNorm(width), torch.nn.RMSNorm(width)
        self.attention = torch.nn.MultiheadAttention(width, 4, batch_first=True)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(width, 64), torch.nn.GELU(), torch.nn.Linear(64, width))

    def forward(self, x):
        h = self.before(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.after(x))


def transformer():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 32), Block(), Block(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4))


def images():
    torch.manual_seed(0)
    n = torch.nn
    return n.Sequential(n.Conv2d(3, 16, 3), n.BatchNorm2d(16), n.ReLU(), n.Conv2d(16, 16, 3), n.GroupNorm(4, 16), n.ReLU(),
                        n.Conv2d(16, 16, 3), n.InstanceNorm2d(16, affine=True), n.AdaptiveAvgPool2d(1), n.Flatten(),
                        n.BatchNorm1d(16), n.Linear(16, 4))


MODELS = {"transformer": (transformer, (6, 10, 8), 5), "images": (images, (6, 3, 12, 12), 4)}


def curve(model, shape, steps=50):
    """Returns the losses of a training."""
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    losses = []
    for step in range(steps):
        x = data_of(shape, seed=step % 3)
        loss = (model(x).flatten(1)[:, :4] - x.flatten(1)[:, :4].sin()).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return torch.tensor(losses)


@pytest.mark.parametrize("name", MODELS)
def test_the_curve_of_the_loss_is_that_of_torch(name):
    make, shape, norms = MODELS[name]
    model = make()
    report = nt.replace(model, strict=True)
    assert len(report.replaced) == norms
    ours, theirs = curve(model, shape), curve(make(), shape)
    assert theirs[-5:].mean() < 0.95 * theirs[:5].mean()
    assert ((ours - theirs).abs() / theirs).max() < 2e-2


@pytest.mark.parametrize("name", MODELS)
def test_evaluation_is_that_of_torch(name):
    make, shape, _ = MODELS[name]
    theirs = make()
    curve(theirs, shape, steps=3)
    ours = copy.deepcopy(theirs)
    nt.replace(ours)
    with torch.no_grad():
        assert (ours.eval()(data_of(shape)) - theirs.eval()(data_of(shape))).abs().max() < 1e-4


def test_a_report():
    model = torch.nn.Sequential(
        torch.nn.LayerNorm(8), torch.nn.BatchNorm1d(8, momentum=None), torch.nn.InstanceNorm1d(8, track_running_stats=True),
        torch.nn.Linear(8, 8), nt.LayerNorm(8))
    report = nt.replace(model)
    assert report.replaced == ["0"] and list(report.left) == ["1", "2"]
    assert str(report).splitlines()[0] == "1 norm runs on normc"
    assert "left 1: momentum=None" in str(report) and "left 2: running statistics" in str(report)
    with pytest.raises(RuntimeError, match="left 1: momentum=None"):
        nt.replace(model, strict=True)
    assert nt.replace(model).replaced == []
    assert str(nt.replace(model)).splitlines()[0] == "0 norms run on normc"


def test_a_report_of_a_model_that_is_a_norm():
    report = nt.replace(torch.nn.LayerNorm(64, eps=0))
    assert str(report) == "0 norms run on normc\n  left the model itself: its epsilon is 0, and normc takes one above 0"


def test_parameters_of_8_bits_are_left():
    model = torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.LayerNorm(8).to(torch.float8_e4m3fn))
    report = nt.replace(model)
    assert report.replaced == ["0"] and report.left == {"1": "its parameters are torch.float8_e4m3fn"}


def test_a_group_norm_without_kernels_is_left(no_compiler):
    model = torch.nn.Sequential(torch.nn.GroupNorm(4, 64), torch.nn.GroupNorm(32, 64),
                                torch.nn.GroupNorm(8, 64, affine=False))
    report = nt.replace(model)
    reason = 'no package has its kernels; compiling is off: normc.compiler("") was called'
    assert report.replaced == ["1"] and report.left == {"0": reason, "2": reason}
    assert model(data_of((2, 64, 5))).shape == (2, 64, 5)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device")
def test_kernels_are_asked_for_on_the_device_of_a_model():
    types, cuda = ("f32", ""), torch.device("cuda", 1)
    assert nt._ops.refusal("layer_norm[*x64]", types) is None
    refused = nt._ops.refusal("layer_norm[*x64]", types, cuda)
    assert "CUDA" in refused and "install normc-compiler" not in refused
    assert nt._replace._refusal("layer_norm[*x64]", types, cuda) == (
        "no package has its kernels for CUDA, and none are made at the first use there")


def norms_of(width):
    n = torch.nn
    return n.Sequential(n.LayerNorm(width), n.RMSNorm(width), n.BatchNorm1d(width), n.BatchNorm2d(width),
                        n.InstanceNorm1d(width, affine=True), n.LayerNorm(width, elementwise_affine=False))


def test_norms_without_kernels_of_parameters_of_16_bits_are_left(no_compiler):
    assert nt.replace(norms_of(38), strict=True).replaced == list("012345")
    is_wheel = (pathlib.Path(normc.__file__).parent / "packages" / "rows-bf16.npk").exists()
    reason = 'no package has its kernels; compiling is off: normc.compiler("") was called'
    assert nt.replace(norms_of(38).bfloat16()).left == ({} if is_wheel else dict.fromkeys("01234", reason))


def test_norms_with_parameters_of_16_bits_are_replaced_with_the_compiler():
    assert nt.replace(norms_of(38)[:2].bfloat16(), strict=True).replaced == ["0", "1"]


def test_a_group_norm_of_any_groups_is_replaced_with_the_compiler():
    assert nt.replace(torch.nn.Sequential(torch.nn.GroupNorm(4, 64)), strict=True).replaced == ["0"]


def test_a_batch_norm_without_running_statistics_is_replaced():
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(8, momentum=None, track_running_stats=False))
    assert nt.replace(model, strict=True).replaced == ["0"] and type(model[0]) is nt.BatchNorm1d


def test_only_some_types():
    model = transformer()
    report = nt.replace(model, norms=[torch.nn.RMSNorm])
    assert report.replaced == ["1.after", "2.after"] and type(model[3]) is torch.nn.LayerNorm


def test_one_type_is_as_a_tuple_of_it():
    model = transformer()
    assert nt.replace(model, norms=torch.nn.RMSNorm).replaced == ["1.after", "2.after"]


class ModelRMSNorm(torch.nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = torch.nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x) * self.weight


EPSILON = "its epsilon is 0.0, and normc takes one above 0"
MOMENTUM = "its momentum is {}, and normc takes one from 0 to 1"
NO_FEATURES = "it has 0 features, and a norm of normc has at least 1"
REFUSED = {
    "layer_norm": (lambda: torch.nn.LayerNorm(8, eps=0.0), EPSILON),
    "rms_norm": (lambda: torch.nn.RMSNorm(8, eps=0.0), EPSILON),
    "group_norm": (lambda: torch.nn.GroupNorm(4, 8, eps=0.0), EPSILON),
    "batch_norm": (lambda: torch.nn.BatchNorm1d(8, eps=0.0), EPSILON),
    "instance_norm": (lambda: torch.nn.InstanceNorm1d(8, eps=0.0), EPSILON),
    "a norm of the model": (lambda: ModelRMSNorm(8, 0.0), EPSILON),
    "large momentum": (lambda: torch.nn.BatchNorm2d(8, momentum=1.5), MOMENTUM.format(1.5)),
    "negative momentum": (lambda: torch.nn.BatchNorm2d(8, momentum=-0.5), MOMENTUM.format(-0.5)),
    "no features": (lambda: torch.nn.BatchNorm1d(0), NO_FEATURES),
    "no channels": (lambda: torch.nn.GroupNorm(1, 0), NO_FEATURES),
    "no elements": (lambda: torch.nn.LayerNorm((4, 0)), NO_FEATURES),
}


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize("name", REFUSED)
def test_a_norm_that_breaks_a_rule_is_left_with_it(name):
    make, reason = REFUSED[name]
    norm = make()
    kind = type(norm)
    assert nt.replace(torch.nn.Sequential(norm)).left == {"0": reason} and type(norm) is kind


def test_what_a_compiler_says_is_the_reason(tmp_path, empty_cache):
    program = tmp_path / "failing"
    program.write_text("#!/bin/sh\necho no space; exit 1\n")
    program.chmod(0o755)
    normc.compiler(str(program), str(tmp_path / "cache"))
    reason = nt.replace(torch.nn.GroupNorm(4, 72)).left[""]
    assert "no kernel serves group_norm_segment:forward@f32[*x72x*]" in reason and "no space" in reason


def test_a_forward_of_one_module_stays():
    model = torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.LayerNorm(8), ModelRMSNorm(8, 1e-6))
    for norm in model[1:]:
        norm.forward = lambda x: x + 1
    report = nt.replace(model)
    assert report.replaced == ["0"]
    assert report.left == dict.fromkeys("12", "its forward was replaced, in this module alone")
    assert torch.equal(model[1](data_of((3, 8))), data_of((3, 8)) + 1)


def test_norms_over_ranks_are_left():
    report = nt.replace(torch.nn.Sequential(torch.nn.SyncBatchNorm(8), nt.SyncBatchNorm(8)))
    assert report.replaced == []
    assert report.left == {"0": "its statistics are those of all ranks; normc.torch.synchronise replaces it"}


def test_classes_that_take_none_below_them_are_left():
    def refuse(cls):
        raise TypeError("this class is final")

    final = {"__init_subclass__": refuse}
    norm, block = type("FinalRMSNorm", (ModelRMSNorm,), final), type("FinalBlock", (Block,), final)
    model = torch.nn.Sequential(torch.nn.LayerNorm(32), norm(32, 1e-6), block(), torch.nn.LayerNorm(32))
    report = nt.replace(model)
    assert report.left == {"1": "FinalRMSNorm takes no class below it: this class is final"}
    assert report.replaced == ["0", "2.before", "2.after", "3"] and report.fused == {}
    assert report.apart["2.after"].endswith("rewritten: FinalBlock takes no class below it: this class is final")
    assert type(model[1]) is norm and type(model[2]) is block and model(data_of((2, 3, 32))).shape == (2, 3, 32)


def test_a_class_of_the_user_is_left():
    class Mine(torch.nn.LayerNorm):
        def forward(self, x):
            return super().forward(x) + 1

    model = torch.nn.Sequential(Mine(8))
    assert "has a forward of its own" in nt.replace(model).left["0"] and type(model[0]) is Mine


def test_a_class_of_the_user_without_a_forward_is_left():
    class Mine(torch.nn.LayerNorm):
        def __init__(self, width):
            super().__init__(width, eps=1e-6)

    model = torch.nn.Sequential(Mine(8))
    assert nt.replace(model).left["0"].endswith("Mine is a class below LayerNorm, and LayerNorm alone is replaced")
    assert type(model[0]) is Mine


def test_a_batch_norm_with_a_part_of_its_statistics_is_left():
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(8))
    model[0].num_batches_tracked = None
    assert nt.replace(model).left == {"0": "a part of its running statistics is None"}


def test_tied_and_hooked_modules_stay():
    norm, seen = torch.nn.LayerNorm(8), []
    norm.register_forward_hook(lambda module, inputs, output: seen.append(type(module)))
    model = torch.nn.ModuleDict({"a": norm, "b": norm})
    weight = norm.weight
    report = nt.replace(model)
    assert report.replaced == ["a"] and model["a"] is model["b"] is norm and norm.weight is weight
    norm(data_of((3, 8)))
    assert seen == [nt.LayerNorm]
    norm.__class__ = torch.nn.LayerNorm
    assert torch.equal(norm(data_of((3, 8))), torch.nn.functional.layer_norm(data_of((3, 8)), (8,), norm.weight, norm.bias))


def test_a_single_norm_is_replaced():
    norm = torch.nn.GroupNorm(4, 8)
    assert nt.replace(norm).replaced == [""] and isinstance(norm, nt.GroupNorm)


def test_channels_last():
    theirs = images().to(memory_format=torch.channels_last)
    ours = copy.deepcopy(theirs)
    nt.replace(ours)
    x = data_of((4, 3, 12, 12)).to(memory_format=torch.channels_last)
    seen = []
    ours[1].register_forward_hook(lambda module, inputs, y: seen.append((inputs[0].stride(), y.stride())))
    a, b = ours(x), theirs(x)
    a.square().sum().backward(), b.square().sum().backward()
    assert (a - b).abs().max() < 1e-4 and seen[0][0] == seen[0][1] and seen[0][0][1] == 1
    for p, q in zip(ours.parameters(), theirs.parameters()):
        assert (p.grad - q.grad).abs().max() <= 2e-4 * max(1, q.grad.abs().max())


def test_a_replaced_model_is_compiled():
    model = transformer()
    nt.replace(model)
    x = data_of((6, 10, 8))
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    assert (compiled(x) - model(x)).abs().max() < 1e-5
