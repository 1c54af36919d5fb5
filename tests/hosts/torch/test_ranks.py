"""Statistics over ranks: three processes with unequal rows, one of them with none, against one process with all
rows. Forward, backward, state, several steps."""

import copy
import io
import os
import pickle

import normc
import normc.torch as nt
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.testing._internal.distributed.fake_pg import FakeStore

FEATURES, ROWS, STEPS = 24, (9, 0, 14), 3


def data(step, dtype):
    made = torch.Generator().manual_seed(step)
    x = 5 + 2 * torch.randn(sum(ROWS), FEATURES, generator=made, dtype=torch.float64)
    dy = torch.randn(sum(ROWS), FEATURES, generator=made, dtype=torch.float64)
    return x.to(dtype), dy.to(dtype)


def module_of(name, dtype):
    torch.manual_seed(0)
    module = {
        "batch": lambda: nt.BatchNorm1d(FEATURES),
        "power_v": lambda: nt.PowerNormV(FEATURES),
        "power": lambda: nt.PowerNorm(FEATURES, alpha_bwd=0.8),
    }[name]()
    with torch.no_grad():
        module.weight.normal_(1, 0.2), module.bias.normal_()
    return module.to(dtype)


def steps(module, rank, dtype, forward):
    """Runs some steps on the rows of a rank; all rows without one. Returns what they made."""
    begin = 0 if rank is None else sum(ROWS[:rank])
    end = sum(ROWS) if rank is None else begin + ROWS[rank]
    made = []
    for step in range(STEPS):
        x, dy = data(step, dtype)
        x = x[begin:end].clone().requires_grad_()
        y = forward(x)
        module.zero_grad()
        y.backward(dy[begin:end])
        nt.commit(module, exchange=nt.Exchange(module))
        made.append([y.detach(), x.grad, module.weight.grad.clone(), module.bias.grad.clone()])
    return made, {name: buffer.clone() for name, buffer in module.state_dict().items()}


def states_of_two_groups(rank):
    """Returns the states of two layers after a step: one of all ranks, one of this rank by itself."""
    own = [dist.new_group([each]) for each in range(len(ROWS))][rank]
    layers = [module_of("power", torch.float64) for _ in range(2)]
    model = torch.nn.Sequential(nt.synchronise(layers[0]), nt.synchronise(layers[1], own, deterministic=True))
    x, dy = data(0, torch.float64)
    begin = sum(ROWS[:rank])
    for layer in model:
        layer(x[begin : begin + ROWS[rank]]).backward(dy[begin : begin + ROWS[rank]])
    nt.commit(model)
    return [layer.state_dict() for layer in model]


def run_rank(rank, port, folder, cases):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    normc.compiler(os.environ["NORMC_TEST_COMPILER"], os.environ["NORMC_TEST_CACHE"])
    dist.init_process_group("gloo", rank=rank, world_size=len(ROWS))
    results = {}
    for case in cases:
        name, dtype, deterministic, compiled = case
        module = nt.synchronise(module_of(name, dtype), deterministic=deterministic)
        forward = torch.compile(module, fullgraph=True, dynamic=True) if compiled else module
        results[case] = steps(module, rank, dtype, forward)
    results["groups"] = states_of_two_groups(rank)
    torch.save(results, f"{folder}/rank{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()


EAGER = [
    (name, dtype, deterministic, False)
    for name in ("batch", "power_v", "power")
    for dtype in (torch.float32, torch.float64)
    for deterministic in (False, True)
]
COMPILED = [(name, torch.float32, False, True) for name in ("batch", "power")]


def spawned(cases, folder):
    port = 29500 + os.getpid() % 2000
    mp.spawn(run_rank, (port, folder, cases), len(ROWS))
    return [torch.load(f"{folder}/rank{rank}.pt") for rank in range(len(ROWS))]


@pytest.fixture(scope="module")
def eager(tmp_path_factory):
    return spawned(EAGER, str(tmp_path_factory.mktemp("eager")))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return spawned(COMPILED, str(tmp_path_factory.mktemp("compiled")))


@pytest.mark.parametrize("case", EAGER, ids=str)
def test_ranks_agree_with_one(eager, case):
    expect_agreement(eager, case)


def test_each_layer_takes_the_sums_of_its_group(eager):
    x, dy = data(0, torch.float64)
    for rank in (0, 2):
        begin = sum(ROWS[:rank])
        for state, rows in zip(eager[rank]["groups"], (slice(None), slice(begin, begin + ROWS[rank]))):
            alone = module_of("power", torch.float64)
            alone.commit_at = "backward"
            alone(x[rows]).backward(dy[rows])
            torch.testing.assert_close(state, dict(alone.state_dict()), rtol=1e-11, atol=1e-11)


@pytest.mark.rest  # three processes compile
@pytest.mark.parametrize("case", COMPILED, ids=str)
def test_compiled_ranks_agree_with_one(compiled, case):
    expect_agreement(compiled, case)


def expect_agreement(ranks, case):
    name, dtype, deterministic, _ = case
    bound = 1e-11 if dtype == torch.float64 else 2e-5
    alone = module_of(name, dtype)
    if name == "power":
        alone.commit_at = "backward"
    made, state = steps(alone, None, dtype, alone)
    shares = [rank[case] for rank in ranks]
    for step in range(STEPS):
        y, dx, dscale, dbias = made[step]
        for index, whole in ((0, y), (1, dx)):
            torch.testing.assert_close(torch.cat([s[0][step][index] for s in shares]), whole, rtol=bound, atol=bound)
        for index, whole in ((2, dscale), (3, dbias)):
            torch.testing.assert_close(
                sum(s[0][step][index] for s in shares), whole, rtol=10 * bound, atol=10 * bound
            )
    for share in shares:
        for field, value in state.items():
            torch.testing.assert_close(share[1][field], value, rtol=bound, atol=bound)
            if deterministic:
                assert torch.equal(share[1][field], shares[0][1][field])


def test_convert_makes_normc_s_modules_of_torch_s():
    model = torch.nn.Sequential(torch.nn.Conv1d(3, 8, 1), torch.nn.BatchNorm1d(8), nt.BatchNorm1d(8), nt.PowerNorm(8))
    nt.synchronise(model)
    assert [type(m) for m in model[1:3]] == [nt.SyncBatchNorm] * 2
    assert type(model[3]).__name__ == "SynchronisedPowerNorm" and isinstance(model[3], nt.PowerNorm)
    assert "_sums" not in model.state_dict()


@pytest.fixture
def one_of_two():
    """This process is one of two ranks, and the other one has no rows."""
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    yield
    dist.destroy_process_group()


def test_a_synchronised_model_trains_in_ddp(one_of_two):
    model = nt.synchronise(torch.nn.Sequential(torch.nn.Linear(FEATURES, FEATURES), nt.BatchNorm1d(FEATURES)))
    torch.nn.parallel.DistributedDataParallel(model)(rows(0)).square().sum().backward()
    assert model[1].num_batches_tracked == 1 and model[1].weight.grad.any()


def test_a_sync_batch_norm_is_made_as_torch_s():
    ours, theirs = (kind(FEATURES, 1e-3, 0.3, True, True, None) for kind in (nt.SyncBatchNorm, torch.nn.SyncBatchNorm))
    assert repr(ours) == repr(theirs) and list(ours.state_dict()) == list(theirs.state_dict())
    torch.testing.assert_close(ours(rows(0)), theirs(rows(0)), rtol=2e-5, atol=2e-5)
    with pytest.raises(ValueError, match="expected at least 2D input"):
        ours(torch.ones(FEATURES))


def test_a_plain_mean_over_ranks_is_torch_s(one_of_two):
    with pytest.raises(ValueError, match="SyncBatchNorm expected input tensor to be on GPU"):
        nt.synchronise(nt.BatchNorm1d(FEATURES, momentum=None))(rows(0))


def rows(step):
    return data(step, torch.float32)[0]


def one_step(module, step, scaler=None, factor=1.0):
    """Runs forward and backward, and commits the state. A step whose factor is infinite is skipped."""
    loss = module(rows(step).requires_grad_()).square().sum() * factor
    if scaler is None:
        loss.backward()
        return nt.commit(module)
    optimizer = torch.optim.SGD(module.parameters(), 0.0)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    nt.commit(module, scaler)
    module.zero_grad()


def expect_same_state(ours, theirs):
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], value, rtol=2e-5, atol=2e-5, msg=name)


@pytest.mark.parametrize("commit", ["backward", "forward", "step"])
def test_each_step_moves_the_state_once(one_of_two, commit):
    ours, theirs = nt.synchronise(nt.PowerNorm(FEATURES, commit=commit)), nt.PowerNorm(FEATURES)
    for step in range(4):
        one_step(ours, step), one_step(theirs, step)
        assert ours.step == step + 1
    expect_same_state(ours, theirs)


@pytest.mark.parametrize("commit", ["backward", "step"])
def test_a_step_that_the_scaler_skips_leaves_the_state(one_of_two, commit):
    module = nt.synchronise(nt.PowerNorm(FEATURES, commit=commit))
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=100)
    for step, (factor, count) in enumerate(((float("inf"), 0), (1.0, 1), (float("nan"), 1), (1.0, 2))):
        one_step(module, step, scaler, factor)
        assert module.step == count and module.nu.isfinite().all() and module.psi2.isfinite().all()


def test_a_rank_alone_commits_what_backward_made():
    ours, theirs = nt.synchronise(nt.PowerNorm(FEATURES, commit="step")), nt.PowerNorm(FEATURES)
    for step in range(3):
        one_step(ours, step), one_step(theirs, step)
    expect_same_state(ours, theirs)


@pytest.mark.parametrize("drop", [lambda module: module.load_state_dict(nt.PowerNorm(FEATURES).state_dict()),
                                  lambda module: module.reset_state()], ids=["load", "reset"])
def test_a_new_state_drops_the_sums_of_the_old_one(one_of_two, drop):
    module = nt.synchronise(nt.PowerNorm(FEATURES))
    module(rows(0).requires_grad_()).sum().backward()
    drop(module)
    nt.commit(module)
    assert module.step == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_a_cast_leaves_sums_in_f64(one_of_two, dtype):
    module = nt.synchronise(nt.PowerNorm(FEATURES)).double().to(dtype)
    kept = torch.float64 if dtype == torch.float64 else torch.float32
    assert module._sums.dtype == torch.float64 and module.psi2.dtype == kept and module.weight.dtype == dtype
    module(rows(0).to(dtype).requires_grad_()).sum().backward()
    before = module._sums.clone()
    module.to(dtype).to(torch.bfloat16)
    assert torch.equal(module._sums, before) and before.any()
    nt.commit(module)
    assert module.step == 1 and module.nu.any()


@pytest.mark.parametrize("arguments", [{"momentum": 0.0}, {"momentum": None, "track_running_stats": False}], ids=str)
def test_running_statistics_that_stay_as_they_are(one_of_two, arguments):
    ours = nt.synchronise(nt.BatchNorm1d(FEATURES, **arguments))
    theirs = torch.nn.BatchNorm1d(FEATURES, **arguments)
    for step in range(2):
        a, b = (rows(step).requires_grad_() for _ in range(2))
        y, wanted = ours(a), theirs(b)
        assert y.grad_fn.name() == "_WaitedBackward"
        y.backward(rows(7)), wanted.backward(rows(7))
        torch.testing.assert_close(y, wanted, rtol=2e-5, atol=2e-5)
        torch.testing.assert_close(a.grad, b.grad, rtol=2e-5, atol=2e-5)
    expect_same_state(ours.eval(), theirs.eval())
    torch.testing.assert_close(ours(rows(3)), theirs(rows(3)), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("commit", ["backward", "forward", "step"])
def test_a_call_that_needs_no_gradient_moves_the_state(one_of_two, commit):
    ours, theirs = (nt.PowerNorm(FEATURES, affine=False, commit=commit) for _ in range(2))
    nt.synchronise(ours)
    for step, gradient in enumerate((False, True, False)):
        for module in (ours, theirs):
            y = module(rows(step).requires_grad_(gradient))
            if gradient:
                y.square().sum().backward()
            nt.commit(module)
        assert ours.step == step + 1
        expect_same_state(ours, theirs)


@pytest.mark.parametrize("commit, steps", [("backward", 0), ("forward", 1), ("step", 0)])
def test_a_call_under_no_grad_moves_the_state_where_forward_commits(one_of_two, commit, steps):
    ours, theirs = (nt.PowerNorm(FEATURES, commit=commit) for _ in range(2))
    nt.synchronise(ours)
    for module in (ours, theirs):
        with torch.no_grad():
            module(rows(0))
        nt.commit(module)
        assert module.step == steps
    expect_same_state(ours, theirs)


def test_a_transform_is_refused(one_of_two):
    with pytest.raises(RuntimeError, match="the backward of power_norm changes its state"):
        torch.func.grad(lambda x: nt.synchronise(nt.PowerNorm(FEATURES))(x).sum())(rows(0))


@pytest.mark.parametrize("make, said", [(nt.BatchNorm1d, rf"SyncBatchNorm takes \[batch, {FEATURES}\]"),
                                        (nt.PowerNorm, rf"power_norm takes \[..., {FEATURES}\]")])
def test_another_number_of_features_is_refused(one_of_two, make, said):
    x = torch.ones((2, FEATURES // 2, 2) if make is nt.PowerNorm else (4, FEATURES // 2))
    with pytest.raises(RuntimeError, match=said):
        nt.synchronise(make(FEATURES))(x)


def loaded(module):
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module)), loaded],
                         ids=["deepcopy", "pickle", "save"])
@pytest.mark.parametrize("name", ["batch", "power_v", "power"])
def test_a_synchronised_module_is_copied(one_of_two, name, copied):
    ours = nt.synchronise(module_of(name, torch.float32))
    ours(rows(0).requires_grad_()).square().sum().backward()
    other = copied(ours)  # with the sums of a step that is not committed
    assert type(other) is type(ours)
    for module in (ours, other):
        nt.commit(module)
        one_step(module, 1)
    assert ours.state_dict().keys() == other.state_dict().keys()
    assert all(torch.equal(value, other.state_dict()[key]) for key, value in ours.state_dict().items())
    assert name == "batch" or ours.step == 2
