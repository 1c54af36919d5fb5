"""replace where a block adds in front of a norm: one kernel for both, in the code of the block as it was."""

import copy
import functools
import linecache
import pickle

import normc
import normc.torch as nt
import pytest
import torch
from normc.torch import _around, _replace, _residuals

from kit import data_of, same

WIDTH = 32


class PreNorm(torch.nn.Module):
    """As GPT-2 has it: two sums, of which the first has a norm behind it."""

    norm = torch.nn.LayerNorm

    def __init__(self, width=WIDTH):
        super().__init__()
        self.before, self.after = self.norm(width), self.norm(width)
        self.attention = torch.nn.MultiheadAttention(width, 4, batch_first=True)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(width, 64), torch.nn.GELU(), torch.nn.Linear(64, width))

    def attend(self, h):
        return self.attention(h, h, h, need_weights=False)[0]

    def forward(self, x):
        x = x + self.attend(self.before(x))
        x = x + self.mlp(self.after(x))
        return x


class RMS(PreNorm):
    norm = torch.nn.RMSNorm


class OtherNames(PreNorm):
    """As Llama's layers have it, with arguments that decide, and free variables."""

    def forward(self, hidden, scale: float = 1.0, *, skip=False, **unused):
        """Returns what
            the block computes."""
        residual = hidden
        hidden = self.before(hidden)
        hidden = self.attend(hidden)
        hidden = residual + hidden
        # a comment
        residual = hidden
        if skip:
            return residual
        hidden = residual + hidden * scale
        residual = hidden
        hidden = self.after(hidden)
        hidden = self.mlp(hidden)
        return residual + hidden if super().extra_repr() == "" and __class__ is OtherNames else None


class PostNorm(PreNorm):
    def forward(self, x):
        x = self.before(x + self.attend(x))
        return self.after(x + self.mlp(x))


BLOCKS = {"pre": (PreNorm, ["after"]), "rms": (RMS, ["after"]), "names": (OtherNames, ["after"]),
          "post": (PostNorm, ["before", "after"])}


def made(name, dtype=torch.float32):
    """Returns a model, the same with kernels of normc, and the report."""
    torch.manual_seed(0)
    theirs = torch.nn.Sequential(*(BLOCKS[name][0]() for _ in range(2))).to(dtype)
    with torch.no_grad():
        for block in theirs:
            for norm in (block.before, block.after):
                norm.weight.normal_(1, 0.3)
    ours = copy.deepcopy(theirs)
    return theirs, ours, nt.replace(ours)


def run(model, x):
    x = x.clone().requires_grad_()
    y = model(x)
    gradients = torch.autograd.grad(y, (x, *model.parameters()), data_of(y.shape, y.dtype, seed=8))
    return [y.detach(), *gradients]


def calls_of(model, x):
    """Returns the texts of the operators that a call runs."""
    seen, real = [], _around.apply
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_around, "apply", lambda text, *a, **b: (seen.append(text), real(text, *a, **b))[1])
        model(x)
    return [text.split("[")[0] for text in seen]


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-12), (torch.float32, 2e-5)], ids=str)
@pytest.mark.parametrize("name", BLOCKS)
def test_outputs_and_gradients_are_those_of_the_model_before(name, dtype, tolerance):
    theirs, ours, report = made(name, dtype)
    assert sorted(report.fused) == sorted(f"{at}.{norm}" for at in range(2) for norm in BLOCKS[name][1])
    x = data_of((3, 5, WIDTH), dtype)
    kind = "rms_norm_residual" if name == "rms" else "layer_norm_residual"
    assert calls_of(ours, x) == [kind] * len(report.fused)
    for a, b in zip(run(ours, x), run(theirs, x), strict=True):
        assert (a - b).abs().max() <= tolerance * b.abs().max().clamp(min=1)


def test_in_16_bits_it_is_as_near_to_f32_as_the_model_before():
    theirs, ours, _ = made("pre", torch.bfloat16)
    x = data_of((16, 9, WIDTH), torch.bfloat16)
    wanted = run(copy.deepcopy(theirs).float(), x.float())
    error = lambda made: torch.stack([(a.float() - b).norm() / b.norm() for a, b in zip(made, wanted)])
    of_ours, of_theirs = error(run(ours, x)), error(run(theirs, x))
    assert (of_ours < 1.25 * of_theirs + 1e-3).all() and of_theirs.max() > 1e-3


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64], ids=str)
def test_the_sum_has_the_bits_of_an_addition(dtype):
    a, b = data_of((5, WIDTH), dtype), data_of((5, WIDTH), dtype, seed=6)
    assert torch.equal(_residuals.add_norm(a, b, nt.LayerNorm(WIDTH, dtype=dtype))[1], a + b)


def test_the_encoder_layer_of_torch():
    for first in (True, False):
        torch.manual_seed(0)
        theirs = torch.nn.TransformerEncoderLayer(WIDTH, 4, 64, dropout=0, batch_first=True, norm_first=first)
        ours = copy.deepcopy(theirs)
        report = nt.replace(ours)
        assert sorted(report.fused) == ["norm1", "norm2"] and "TransformerEncoderLayer.forward, transformer.py:" in str(report)
        x = data_of((3, 5, WIDTH))
        assert len(calls_of(ours, x)) == (1 if first else 2)
        for a, b in zip(run(ours, x), run(theirs, x), strict=True):
            assert (a - b).abs().max() <= 2e-5 * b.abs().max().clamp(min=1)


def test_arguments_branches_and_the_docstring_are_those_of_the_source():
    theirs, ours, _ = made("names")
    x, block = data_of((2, 5, WIDTH)), ours[0]
    assert type(block).forward.__doc__ == OtherNames.forward.__doc__ and isinstance(block, OtherNames)
    for options in ({"scale": 0.5}, {"skip": True}, {"more": 1}):
        assert (block(x, **options) - theirs[0](x, **options)).abs().max() < 1e-5
    with pytest.raises(TypeError, match="positional argument"):
        block(x, 1.0, True)


def test_is_compiled_whole():
    _, ours, _ = made("pre")
    torch._dynamo.reset()
    compiled = torch.compile(ours, backend="aot_eager", fullgraph=True)
    x = data_of((3, 5, WIDTH))
    assert same(run(compiled, x)[:1], run(ours, x)[:1])
    for a, b in zip(run(compiled, x), run(ours, x)):
        assert (a - b).abs().max() <= 1e-5 * b.abs().max().clamp(min=1)


def test_copies_and_pickles():
    _, ours, _ = made("post")
    x = data_of((3, 5, WIDTH))
    for other in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert type(other[0]) is type(ours[0]) and torch.equal(other(x), ours(x)) and len(calls_of(other, x)) == 4
        other[0].mlp[0].weight.data.zero_()
        assert not torch.equal(other(x), ours(x))
    assert ours.state_dict().keys() == made("post")[0].state_dict().keys()


class More(nt.LayerNorm):
    def forward(self, x):
        return super().forward(x) + 1


class Calls(nt.LayerNorm):
    def __call__(self, x):
        return super().__call__(x) + 1


@pytest.mark.parametrize("kind", [More, Calls])
def test_a_class_that_does_more_is_called(kind):
    _, ours, _ = made("pre")
    x, norm = data_of((3, 5, WIDTH)), kind(WIDTH)
    ours[0].after = norm
    assert calls_of(ours[0], x) == []
    assert torch.equal(_residuals.add_norm(x, x, norm)[0], nt.LayerNorm(WIDTH)(2 * x) + 1)


@pytest.mark.parametrize("change", ["hook", "global hook", "forward", "class"])
def test_a_norm_that_does_more_is_called(change):
    _, ours, _ = made("pre")
    block, x, seen = ours[0], data_of((3, 5, WIDTH)), []
    wanted = block(x)
    record = lambda module, inputs, y: seen.append(inputs[0].shape)
    if change == "hook":
        block.after.register_forward_hook(record)
    elif change == "global hook":
        handle = torch.nn.modules.module.register_module_forward_hook(
            lambda module, inputs, y: record(module, inputs, y) if module is block.after else None)
    elif change == "forward":
        plain = block.after.forward
        block.after.forward = lambda x: (record(block.after, (x,), None), plain(x))[1]
    else:
        block.after.__class__ = torch.nn.LayerNorm
    try:
        assert calls_of(block, x) == [] and (block(x) - wanted).abs().max() < 1e-5
    finally:
        handle.remove() if change == "global hook" else None
    assert change == "class" or seen == [x.shape] * 2


@pytest.mark.parametrize("a, b", [
    (torch.ones(5, WIDTH), torch.ones(WIDTH)),
    (torch.ones(5, WIDTH), 1.0),
    (torch.ones(5, WIDTH), torch.ones(5, WIDTH, dtype=torch.bfloat16)),
    (torch.ones(WIDTH, 5).t(), torch.ones(5, WIDTH)),
], ids=["broadcast", "number", "types", "transposed"])
def test_other_sums_are_made_apart(a, b):
    norm = nt.LayerNorm(WIDTH)
    y, h = _residuals.add_norm(a, b, norm)
    assert torch.equal(h, a + b) and torch.equal(y, norm(a + b)) and h.stride() == (a + b).stride()


@pytest.mark.parametrize("b", [torch.ones(3, 5, WIDTH), torch.ones(5, 3, WIDTH).transpose(0, 1)], ids=["plain", "transposed"])
def test_the_sum_has_the_strides_of_an_addition(b):
    a = torch.ones(3, 5, WIDTH)
    assert _residuals.add_norm(a, b, nt.LayerNorm(WIDTH))[1].stride() == (a + b).stride()


def test_residuals_false_leaves_the_path_from_the_sum_through_the_norm():
    class Asked(PreNorm):
        def forward(self, x):
            h = x + self.mlp(x)
            y = self.after(h)
            return torch.autograd.grad(y[..., 0].sum(), h, allow_unused=True)[0]

    torch.manual_seed(0)
    theirs, x = Asked(), data_of((3, 5, WIDTH))
    ours, apart = copy.deepcopy(theirs), copy.deepcopy(theirs)
    assert list(nt.replace(ours).fused) == ["after"] and not nt.replace(apart, residuals=False).fused
    assert ours(x) is None and (apart(x) - theirs(x)).abs().max() < 1e-5


def in_place(self, x):
    x = x.clone()
    x += self.attend(self.before(x))
    return x + self.mlp(self.after(x))


def between(self, x):
    x = x + self.attend(self.before(x))
    x.mul_(2)
    return x + self.mlp(self.after(x))


def another_call_first(self, x):
    h = x + self.attend(self.before(x))
    return self.mlp(h) + self.after(h)


def a_target_first(self, x):
    h, made = x + self.attend(self.before(x)), [0]
    h = h + h
    made[len(made) - 1] += self.after(h)
    return h + self.mlp(made[0])


def inside(self, x):
    h = x + self.attend(self.before(x))
    return (lambda: h + self.mlp(self.after(h)))()


def conditional(self, x):
    h = x + self.attend(self.before(x))
    return h + self.mlp(self.after(h) if self.training else h)


def another_self(self, x):
    self = self if self.training else self.other
    x = x + self.attend(self.before(x))
    return x + self.mlp(self.after(x))


@functools.wraps(PreNorm.forward)
def wrapped(self, x):
    return PreNorm.forward(self, x)


WITHOUT_SOURCE = eval("lambda self, x: self.after(x + self.mlp(x))")


@pytest.mark.parametrize("forward, reason", [
    (in_place, "Left.forward adds nothing in front of it"),
    (between, "Left.forward adds nothing in front of it"),
    (another_call_first, "Left.forward adds nothing in front of it"),
    (a_target_first, "Left.forward adds nothing in front of it"),
    (inside, "Left.forward adds nothing in front of it"),
    (conditional, "Left.forward adds nothing in front of it"),
    (another_self, "Left.forward cannot be rewritten: it assigns to self"),
    (wrapped, "Left.forward adds nothing in front of it"),
    (WITHOUT_SOURCE, "Left.forward cannot be rewritten: its source is not there"),
], ids=["in place", "between", "another call", "a target", "inside", "conditional", "self", "wrapped", "source"])
def test_what_is_left(forward, reason):
    own = type("Left", (PreNorm,), {"forward": forward, "__qualname__": "Left"})
    torch.manual_seed(0)
    theirs = own()
    ours, x = copy.deepcopy(theirs), data_of((3, 5, WIDTH))
    report = nt.replace(ours)
    assert report.apart["after"] == reason and not report.fused and type(ours) is own
    assert f"without a sum: before, after: {reason}" in str(report)
    assert (ours(x) - theirs(x)).abs().max() < 1e-5


def test_a_source_that_has_changed_is_left(tmp_path):
    source = "\nclass Block({name}):\n    def forward(self, x):\n        return self.after(x + self.attend({x}))\n"
    path, space = tmp_path / "block.py", {"PreNorm": PreNorm, "__name__": "block"}
    exec(compile(source.format(name="PreNorm", x="x"), str(path), "exec"), space)
    for written, reason in ((source.format(name="PreNorm", x="x * 2"), "its source has changed"),
                            ("class Block(", "its source has changed"), ("", "its source is not there")):
        path.write_text(written)
        linecache.clearcache()
        block = space["Block"]()
        _residuals.rewritten.cache_clear(), _replace._class_with.cache_clear()
        assert nt.replace(block).apart["after"] == "Block.forward cannot be rewritten: " + reason
        assert type(_replace._rewritten(space["Block"], frozenset(["after"]))) is space["Block"]  # what pickle calls
    path.write_text(source.format(name="PreNorm", x="x"))
    linecache.clearcache()
    assert nt.replace(space["Block"]()).fused["after"] == "Block.forward, block.py:4"


def test_some_types_after_others():
    block = PreNorm()
    block.before = torch.nn.RMSNorm(WIDTH)
    assert list(nt.replace(block, norms=[torch.nn.LayerNorm]).fused) == ["after"]
    report = nt.replace(block)
    assert report.replaced == ["before"] and list(report.apart) == ["before"]
    assert calls_of(block, data_of((3, 5, WIDTH))) == ["layer_norm_residual"] and type(block).__mro__[2] is PreNorm


def test_a_forward_of_the_module_is_left():
    block = PreNorm()
    block.forward = lambda x: x
    assert nt.replace(block).apart["after"] == "PreNorm.forward was replaced"
    with pytest.raises(_residuals.Refused, match="it is no function of Python"):
        _residuals.rewritten(len, frozenset())


def test_other_devices_are_left():
    block = PreNorm()
    block.after = torch.nn.LayerNorm(WIDTH, elementwise_affine=False)
    assert list(nt.replace(block).fused) == ["after"]  # a norm without parameters is on every device
    reason = _replace._reason_apart(nt.LayerNorm(WIDTH, device="meta"))
    assert reason == "it is on device meta, and kernels with a residual are for CPUs"


def test_without_residuals():
    _, ours, _ = made("pre")
    plain = torch.nn.Sequential(PreNorm())
    report = nt.replace(plain, residuals=False)
    assert report.replaced == ["0.before", "0.after"] and not report.fused and not report.apart
    assert type(plain[0]) is PreNorm


def test_the_package_has_kernels_with_a_residual(no_compiler):
    theirs, x = PreNorm(44), data_of((3, 5, 44))
    ours = copy.deepcopy(theirs)
    assert list(nt.replace(ours).fused) == ["after"]
    assert (ours(x) - theirs(x)).abs().max() < 1e-5


def test_without_kernels(request):
    nt.replace(PreNorm(52).bfloat16(), residuals=False)  # parameters of 16 bits are in wheels alone; these are compiled
    request.getfixturevalue("no_compiler")
    report = nt.replace(PreNorm(52).bfloat16())
    assert report.replaced == ["before", "after"]
    assert report.apart["after"] == 'no package has its kernels; compiling is off: normc.compiler("") was called'
    assert not report.fused


def test_with_the_compiler():
    assert list(nt.replace(PreNorm(44).bfloat16()).fused) == ["after"]
