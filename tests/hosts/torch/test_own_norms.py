"""replace of RMS norms that a model defines itself: which are known, and that they stay the same function."""

import copy
import pickle
import types

import normc.torch as nt
import pytest
import torch
from torch import nn

from kit import data_of

WIDTH = 96


class LlamaRMSNorm(nn.Module):
    """As transformers writes it."""

    def __init__(self, hidden_size=WIDTH, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        input_dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * hidden_states.to(input_dtype)


class RMSNorm(nn.Module):
    """As the first code of Llama writes it."""

    def __init__(self, dim=WIDTH, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        output = self._norm(x.float()).type_as(x)
        return output * self.weight


class GemmaRMSNorm(RMSNorm):
    def forward(self, x):
        output = self._norm(x.float())
        output = output * (1.0 + self.weight.float())
        return output.type_as(x)


class OlmoRMSNorm(RMSNorm):
    def forward(self, x):
        dtype = x.dtype
        x = x.to(dtype=torch.float32)
        x = x * (x**2).mean(dim=-1, keepdim=True).add(self.eps).rsqrt()
        return (self.weight * x).to(dtype)


KNOWN = {LlamaRMSNorm: "rms_norm[*x96]{round=normalized} epsilon=1e-06",
         RMSNorm: "rms_norm[*x96]{round=normalized} epsilon=1e-06",
         GemmaRMSNorm: "gemma_rms_norm[*x96] epsilon=1e-06", OlmoRMSNorm: "rms_norm[*x96] epsilon=1e-06"}


def made(kind, dtype):
    theirs = kind()
    with torch.no_grad():
        theirs.weight.copy_(data_of((WIDTH,), seed=9))
    theirs = theirs.to(dtype)
    ours = copy.deepcopy(theirs)
    assert nt.replace(ours).replaced == [""]
    return theirs, ours


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("kind", KNOWN)
def test_is_the_same_function(kind, dtype):
    theirs, ours = made(kind, dtype)
    assert isinstance(ours, kind) and ours._normc_text() == KNOWN[kind]
    x, dy = data_of((64, WIDTH), dtype).requires_grad_(), data_of((64, WIDTH), dtype, seed=7)
    y, wanted = ours(x), theirs(x)
    assert y.dtype == wanted.dtype
    if dtype == torch.float32:
        assert (y - wanted).abs().max() < 2e-6 * wanted.abs().max()
    else:  # an error in f32 decides at a tie alone
        assert (y != wanted).double().mean() < 0.005
    for a, b in zip(*(torch.autograd.grad(each, (x, norm.weight), dy) for each, norm in ((y, ours), (wanted, theirs)))):
        assert a.dtype == b.dtype and (a - b).abs().max() <= 4 * torch.finfo(dtype).eps * b.abs().max().clamp(min=1)


@pytest.mark.parametrize("x", [torch.float64, torch.bfloat16], ids=str)
def test_runs_its_own_forward_where_that_is_another_function(x):
    theirs, ours = made(LlamaRMSNorm, torch.float32)  # a weight in f32 widens y of 16 bits
    given = data_of((5, WIDTH), x)
    assert ours(given).dtype == theirs(given).dtype and torch.equal(ours(given), theirs(given))
    theirs, ours = theirs.double(), ours.double()
    assert torch.equal(ours(data_of((5, WIDTH), torch.float64)), theirs(data_of((5, WIDTH), torch.float64)))
    assert torch.equal(ours(hidden_states=given), theirs(hidden_states=given))


def test_a_weight_in_f32_beside_x_of_16_bits():
    theirs, ours = made(OlmoRMSNorm, torch.float32)
    x = data_of((64, WIDTH), torch.bfloat16)
    assert ours._normc_takes(x) and (ours(x) != theirs(x)).double().mean() < 0.005


@pytest.mark.parametrize("eps", [0.5, torch.tensor(0.5), 1], ids=["float", "tensor", "int"])
def test_an_epsilon_that_changes_later(eps):
    theirs, ours = made(LlamaRMSNorm, torch.float32)
    for norm in (theirs, ours):
        norm.variance_epsilon = eps
    x = data_of((5, WIDTH))
    assert (ours(x) - theirs(x)).abs().max() < 2e-6 * theirs(x).abs().max()


class OtherAttributesRMSNorm(RMSNorm):
    def __init__(self):
        super().__init__()
        self._is = self._text = self._takes = self._residual_form = self._forward_of_form = None


def test_attributes_of_the_model_may_have_any_name():
    _, ours = made(OtherAttributesRMSNorm, torch.float32)
    x = data_of((5, WIDTH))
    assert (ours(x) - made(RMSNorm, torch.float32)[1](x)).abs().max() == 0
    model = nn.Sequential(Layer())
    model[0]._norms = None
    assert nt.replace(model).fused and copy.deepcopy(model)(x).shape == pickle.loads(pickle.dumps(model))(x).shape


def test_copies_pickles_and_state():
    theirs, ours = made(LlamaRMSNorm, torch.bfloat16)
    x = data_of((5, WIDTH), torch.bfloat16)
    for other in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert type(other) is type(ours) and torch.equal(other(x), ours(x))
    assert type(ours).__name__ == "LlamaRMSNorm" and ours.state_dict().keys() == theirs.state_dict().keys()
    assert nt.replace(ours).replaced == []
    ours.__class__ = LlamaRMSNorm
    assert torch.equal(ours(x), theirs(x))


def test_is_compiled_whole():
    _, ours = made(LlamaRMSNorm, torch.bfloat16)
    torch._dynamo.reset()
    x = data_of((5, WIDTH), torch.bfloat16)
    assert torch.equal(torch.compile(ours, backend="aot_eager", fullgraph=True)(x), ours(x))


class Layer(nn.Module):
    """A layer as transformers writes it."""

    def __init__(self):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = LlamaRMSNorm(), LlamaRMSNorm()
        self.self_attn, self.mlp = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, hidden_states, attention_mask=None, **kwargs):
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        hidden_states = self.self_attn(hidden_states)
        hidden_states = residual + hidden_states

        residual = hidden_states
        hidden_states = self.post_attention_layernorm(hidden_states)
        hidden_states = self.mlp(hidden_states)
        return residual + hidden_states


def test_takes_the_sum_in_front_of_it():
    torch.manual_seed(0)
    theirs = nn.Sequential(Layer(), Layer()).bfloat16()
    ours, x = copy.deepcopy(theirs), data_of((64, WIDTH), torch.bfloat16)
    report = nt.replace(ours)
    assert list(report.fused) == ["0.post_attention_layernorm", "1.post_attention_layernorm"]
    wanted = copy.deepcopy(theirs).float()(x.float())
    error = lambda y: (y.float() - wanted).norm() / wanted.norm()
    assert error(ours(x)) < 1.1 * error(theirs(x))


class Counts(RMSNorm):
    def forward(self, x):
        self.calls = getattr(self, "calls", 0) + 1
        return super().forward(x)


class InTraining(RMSNorm):
    def forward(self, x):
        return super().forward(x) if self.training else x * self.weight


class OtherAxis(RMSNorm):
    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-2, keepdim=True) + self.eps)


class Decides(RMSNorm):
    def forward(self, x):
        return super().forward(x) if x.sum() > 0 else x


class TwoInputs(RMSNorm):
    def forward(self, x, y=None):
        return super().forward(x)


class EpsilonOutside(RMSNorm):
    def _norm(self, x):
        return x / (x.pow(2).mean(-1, keepdim=True).sqrt() + self.eps)


class WithBuffer(RMSNorm):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))


class WithoutCast(RMSNorm):
    def forward(self, x):
        return self._norm(x) * self.weight


class ConstantStatistic(RMSNorm):
    def _norm(self, x):
        with torch.no_grad():
            factor = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return x * factor


class DetachedStatistic(RMSNorm):
    def _norm(self, x):
        return x * torch.rsqrt(x.detach().pow(2).mean(-1, keepdim=True) + self.eps)


class InferenceStatistic(RMSNorm):
    def _norm(self, x):
        with torch.inference_mode():
            factor = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return x * factor


class WithoutGradient(RMSNorm):
    forward = torch.no_grad()(RMSNorm.forward)


class WithGradient(RMSNorm):
    forward = torch.enable_grad()(RMSNorm.forward)


class InGradMode(RMSNorm):
    def forward(self, x):
        return super().forward(x) if torch.is_grad_enabled() else x * self.weight


class OwnGradient(RMSNorm):
    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, eps):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)

        @staticmethod
        def backward(ctx, dy):
            return dy, None

    def _norm(self, x):
        return self.Function.apply(x, self.eps)


class InPlaceAtTheEnd(RMSNorm):
    def forward(self, x):
        y = super().forward(x)
        y.clamp_(-1, 1)
        return y


class Watches(RMSNorm):
    def forward(self, x):
        y = super().forward(x)
        y.register_hook(lambda gradient: 2 * gradient)
        return y


class AsksAnObject(RMSNorm):
    def __init__(self):
        super().__init__()
        self.config = types.SimpleNamespace(enabled=True)

    def forward(self, x):
        return super().forward(x) if self.config.enabled else x


@pytest.mark.parametrize("kind", [
    Counts, InTraining, OtherAxis, Decides, TwoInputs, EpsilonOutside, WithBuffer, WithoutCast, ConstantStatistic,
    DetachedStatistic, InferenceStatistic, WithoutGradient, WithGradient, InGradMode, OwnGradient, InPlaceAtTheEnd,
    Watches, AsksAnObject])
def test_others_are_left(kind):
    kind = type(kind.__name__ + "RMSNorm", (kind,), {})
    module = kind()
    before = dict(vars(module))
    report = nt.replace(nn.Sequential(module))
    assert report.left["0"].endswith(f"{kind.__name__} has a forward of its own, which is no RMS norm that normc has")
    assert type(module) is kind and vars(module) == before


class Switched(RMSNorm):
    shared = 1

    def __init__(self):
        super().__init__()
        self.enabled, self.kind, self.index = True, "rms", 3

    def forward(self, x):
        if not self.enabled or self.kind != "rms" or self.shared != 1 or getattr(self, "skipped", False):
            return x
        return super().forward(x)


class SwitchedRMSNorm(Switched):
    pass


@pytest.mark.parametrize("name, value", [("enabled", False), ("kind", "none"), ("shared", 2), ("skipped", True)])
def test_an_attribute_that_changes_later(name, value):
    theirs, ours = made(SwitchedRMSNorm, torch.float32)
    x = data_of((5, WIDTH))
    assert ours._normc_takes(x) and torch.equal(copy.deepcopy(ours)(x), ours(x))
    for norm in (theirs, ours):
        setattr(norm, name, value)
    assert torch.equal(ours(x), theirs(x)) and torch.equal(ours(x), x)


def test_attributes_that_a_forward_does_not_read_make_no_classes():
    first, second = SwitchedRMSNorm(), SwitchedRMSNorm()
    second.index = 4
    nt.replace(nn.Sequential(first, second), strict=True)
    assert type(first) is type(second)
    first.index, first.note = 5, "new"
    assert first._normc_takes(data_of((5, WIDTH)))


def test_a_switch_is_compiled_whole():
    _, ours = made(SwitchedRMSNorm, torch.float32)
    torch._dynamo.reset()
    x, compiled = data_of((5, WIDTH)), torch.compile(ours, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x), ours(x))
    ours.enabled = False
    assert torch.equal(compiled(x), x)


def test_only_some_types():
    model = nn.Sequential(LlamaRMSNorm(), nn.LayerNorm(WIDTH))
    assert nt.replace(model, norms=[nn.LayerNorm]).replaced == ["1"]
    assert nt.replace(model, norms=[LlamaRMSNorm]).replaced == ["0"]
