"""When the state of PowerNorm moves: checkpoints, compiled ones, skipped steps, layers that run twice."""

import copy
import warnings

import normc.torch as nt
import pytest
import torch
from torch.utils.checkpoint import checkpoint

from kit import data_of


def model_of(commit="backward", seed=0):
    torch.manual_seed(seed)
    norm = lambda **more: nt.PowerNorm(16, commit=commit, **more)
    return torch.nn.Sequential(torch.nn.Linear(16, 16), norm(), torch.nn.GELU(), torch.nn.Linear(16, 16),
                               norm(heads=2, warmup_iters=2))


def train(model, call, steps=3):
    """Returns outputs and gradients of all steps, and the state after them."""
    seen = []
    for step in range(steps):
        x = data_of((9, 16), seed=step).requires_grad_()
        y = call(model, x)
        y.square().sum().backward()
        seen += [y.detach(), x.grad, *(p.grad for p in model.parameters())]
        model.zero_grad()
    return seen, [b.clone() for b in model.buffers()]


PLAIN = lambda model, x: model(x)
WAYS = {
    "reentrant": lambda model, x: checkpoint(model, x, use_reentrant=True),
    "not reentrant": lambda model, x: checkpoint(model, x, use_reentrant=False),
    "nested": lambda model, x: checkpoint(lambda x: checkpoint(model, x, use_reentrant=False), x, use_reentrant=False),
}


@pytest.mark.parametrize("commit", ["backward", "step"])
@pytest.mark.parametrize("way", WAYS)
def test_checkpoints_change_no_bit(way, commit):
    call = WAYS[way]
    after = lambda call: lambda model, x: (nt.commit(model), call(model, x))[1]
    ours, state = train(model_of(commit), after(call))
    theirs, wanted = train(model_of(commit), after(PLAIN))
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(state, wanted, strict=True))
    assert model_of()[1].step == 0 and state[0] == (3 if commit == "backward" else 2)


def test_a_compiled_checkpoint_changes_no_bit():
    torch._dynamo.reset()
    model = model_of()
    compiled = torch.compile(lambda x: checkpoint(model, x, use_reentrant=False), backend="aot_eager", fullgraph=True)
    ours, state = train(model, lambda _, x: compiled(x))
    theirs, wanted = train(model_of(), PLAIN)
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(state, wanted, strict=True))


def test_a_forward_without_gradients_changes_nothing():
    model = model_of()
    before = copy.deepcopy(model.state_dict())
    with torch.no_grad():
        model(data_of((9, 16)))
    model(data_of((9, 16)))
    assert all(torch.equal(value, model.state_dict()[key]) for key, value in before.items())


def test_a_frozen_layer_still_follows_its_data():
    norm = nt.PowerNorm(16).requires_grad_(False)
    norm(data_of((9, 16)))
    assert norm.step == 1 and not torch.equal(norm.psi2, torch.ones(16))


def test_a_layer_that_runs_twice_is_refused():
    norm = nt.PowerNorm(16)
    with pytest.raises(RuntimeError, match="commit='forward'"):
        norm(norm(data_of((9, 16)).requires_grad_())).sum().backward()
    norm = nt.PowerNorm(16)
    y = norm(data_of((9, 16))).sum()
    y.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="more than once"):
        y.backward()


def test_a_layer_that_runs_twice_may_commit_in_forward():
    norm = nt.PowerNorm(16, commit="forward")
    norm(norm(data_of((9, 16)).requires_grad_())).square().sum().backward()
    assert norm.step == 2 and norm.nu.abs().max() > 0
    with torch.no_grad():
        norm(data_of((9, 16)))
    assert norm.step == 3


def test_all_commits_are_the_same_training():
    wanted = train(model_of(), PLAIN)
    forward = train(model_of("forward"), PLAIN)
    after = lambda model, x: (nt.commit(model), model(x))[1]
    model = model_of("step")
    step = train(model, after)[0], None
    nt.commit(model)
    step = step[0], [value for norm in (model[1], model[4]) for value in norm.state]
    for ours in (forward, step):
        assert all(torch.equal(a, b) for a, b in zip(ours[0], wanted[0], strict=True))
        assert all(torch.equal(a, b) for a, b in zip(ours[1], wanted[1], strict=True))


def test_a_skipped_step_leaves_the_state():
    model = model_of("step")
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=100)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)

    def step(factor):
        scaler.scale(model(data_of((9, 16))).square().sum() * factor).backward()
        scaler.step(optimizer)
        scaler.update()
        nt.commit(model, scaler)
        optimizer.zero_grad()

    before = copy.deepcopy(model.state_dict())
    step(float("inf"))  # the very first
    assert scaler.get_scale() == 4.0
    assert all(torch.equal(value, model.state_dict()[key]) for key, value in before.items())
    step(1)
    assert model[1].step == 1 and model[1].nu.isfinite().all()
    before = copy.deepcopy(model.state_dict())
    nu = model[1].nu.clone()
    step(float("nan"))
    assert scaler.get_scale() == 2.0 and torch.equal(model[1].nu, nu / 2)
    assert all(torch.equal(value, model.state_dict()[key]) for key, value in before.items() if not key.endswith("nu"))
    step(1)
    assert model[1].step == 2 and model[1].nu.isfinite().all()


def test_nu_of_a_scaled_loss_is_nu_times_the_scale():
    models = [model_of("step") for _ in range(2)]
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    for seed in range(5):
        models[0](data_of((9, 16), seed=seed)).square().sum().backward()
        nt.commit(models[0])
        scaler.scale(models[1](data_of((9, 16), seed=seed)).square().sum()).backward()
        optimizer = torch.optim.SGD(models[1].parameters(), 0.0)
        scaler.step(optimizer)
        scaler.update()
        nt.commit(models[1], scaler)
    assert scaler.get_scale() == 16.0
    for a, b in zip(models[0].modules(), models[1].modules()):
        if isinstance(a, nt.PowerNorm):
            assert torch.equal(16 * a.nu, b.nu) and torch.equal(a.psi2, b.psi2)


@pytest.mark.parametrize("name", ["mabn", "unified_norm"])
def test_a_ring_of_gradient_means_follows_the_scale(name):
    models = [nt.Norm(name, 16, numbers={"warmup_steps": 0.0}, commit="step") for _ in range(2)]
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    for seed in range(5):
        models[0](data_of((9, 16), seed=seed)).square().sum().backward()
        nt.commit(models[0])
        scaler.scale(models[1](data_of((9, 16), seed=seed)).square().sum()).backward()
        scaler.step(torch.optim.SGD(models[1].parameters(), 0.0))
        scaler.update()
        nt.commit(models[1], scaler)
    assert scaler.get_scale() == 16.0 and models[0].window_nu.any()
    assert torch.equal(16 * models[0].window_nu, models[1].window_nu)


def test_a_commit_before_the_update_of_the_scaler_is_refused():
    model = model_of("step")
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    scaler.scale(model(data_of((9, 16))).square().sum() * float("inf")).backward()
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"commit was called before scaler.update\(\); call it after that"):
        nt.commit(model, scaler)
    scaler.update()
    nt.commit(model, scaler)
    assert model[1].step == 0 and model[1].nu.isfinite().all()


@pytest.mark.parametrize("drop", [lambda model, kept: model.load_state_dict(kept), lambda model, _: model[1].reset_state()],
                         ids=["load", "reset"])
def test_a_new_state_forgets_the_scale_of_the_one_before(drop):
    model = model_of("step")
    kept = copy.deepcopy(model.state_dict())
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    for each in (scaler, None):
        (each or torch.amp.GradScaler("cpu", enabled=False)).scale(model(data_of((9, 16))).square().sum()).backward()
        nt.commit(model, each)
        if each is scaler:
            drop(model, kept)
    assert model[1].step == 1 and model[1].nu.any()


def test_loading_drops_what_was_not_committed():
    model = model_of("step")
    kept = copy.deepcopy(model.state_dict())
    train(model, PLAIN, steps=1)
    model.load_state_dict(kept)
    nt.commit(model)
    assert all(torch.equal(value, model.state_dict()[key]) for key, value in kept.items())
    assert list(model.state_dict()) == list(model_of().state_dict())
