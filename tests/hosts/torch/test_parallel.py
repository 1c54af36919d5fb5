"""Data parallel training on gloo: DDP, eager and compiled, and FSDP2, with ranks of unequal rows."""

import normc.torch as nt
import pytest
import torch
import torch.distributed as dist

from kit import data_of


def model_of():
    torch.manual_seed(0)
    n = torch.nn
    return n.Sequential(n.Linear(24, 24), nt.LayerNorm(24), n.Linear(24, 24), nt.PowerNorm(24), n.Linear(24, 24),
                        nt.BatchNorm1d(24), nt.RMSNorm(24))


def step(call, model, rank, seed):
    x = data_of((5 + 3 * rank, 24), seed=100 * seed + rank)
    call(x).square().mean().backward()
    gradients = [p.grad.full_tensor() if hasattr(p.grad, "full_tensor") else p.grad for p in model.parameters()]
    gradients = [gradient.clone() for gradient in gradients]
    model.zero_grad()
    return gradients


def mean_over_ranks(tensors, world):
    for tensor in tensors:
        dist.all_reduce(tensor)
        tensor /= world
    return tensors


def ddp(rank, world, compiled):
    from torch.nn.parallel import DistributedDataParallel

    ours, local = model_of(), model_of()
    call = DistributedDataParallel(ours, broadcast_buffers=False)
    if compiled:
        call = torch.compile(call, backend="aot_eager")
    for seed in range(3):
        wanted = mean_over_ranks(step(local, local, rank, seed), world)
        for a, b in zip(step(call, ours, rank, seed), wanted, strict=True):
            assert (a - b).abs().max() < 1e-6
    for a, b in zip(ours.buffers(), local.buffers(), strict=True):
        assert torch.equal(a, b)  # each rank has the statistics of its own rows


def ddp_that_broadcasts(rank, world):
    from torch.nn.parallel import DistributedDataParallel

    model = model_of()
    call = DistributedDataParallel(model)
    for seed in range(3):
        step(call, model, rank, seed)
    with torch.no_grad():
        call(data_of((4, 24)))
    psi2 = [torch.empty(24) for _ in range(world)]
    dist.all_gather(psi2, model[3].psi2)
    assert model[3].step == 3 and all(torch.equal(each, psi2[0]) for each in psi2)


def fsdp(rank, world):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    ours, local = model_of(), model_of()
    mesh = init_device_mesh("cpu", (world,))
    for layer in (ours[3], ours[5]):
        fully_shard(layer, mesh=mesh)
    fully_shard(ours, mesh=mesh)
    for seed in range(3):
        wanted = mean_over_ranks(step(local, local, rank, seed), world)
        for a, b in zip(step(ours, ours, rank, seed), wanted, strict=True):
            assert (a - b).abs().max() < 1e-6
    assert not hasattr(ours[3].psi2, "full_tensor") and torch.equal(ours[3].psi2, local[3].psi2)
    assert torch.equal(ours[5].running_var, local[5].running_var) and ours[3].step == 3


def work(rank, world, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    ddp(rank, world, compiled=False)
    ddp_that_broadcasts(rank, world)
    fsdp(rank, world)
    if world == 2:
        ddp(rank, world, compiled=True)
    dist.barrier()
    dist.destroy_process_group()


@pytest.mark.parametrize("world", [2, pytest.param(3, marks=pytest.mark.rest)])
def test_ranks_with_unequal_rows(world, tmp_path):
    torch.multiprocessing.spawn(work, (world, str(tmp_path / "store")), nprocs=world)
