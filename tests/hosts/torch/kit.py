"""Modules of every kind for tests: how to make one, and a shape that it takes."""

import normc.torch as nt
import torch

ROWS = {
    "layer_norm": (lambda: nt.LayerNorm(24), (5, 24)),
    "rms_norm": (lambda: nt.RMSNorm(24), (2, 3, 24)),
    "batch_norm": (lambda: nt.BatchNorm1d(24), (7, 24)),
    "power_norm_v": (lambda: nt.PowerNormV(24), (7, 24)),
}
IMAGES = {
    "group_norm": (lambda: nt.GroupNorm(4, 8), (2, 8, 3, 2)),
    "instance_norm": (lambda: nt.InstanceNorm2d(8, affine=True), (2, 8, 3, 2)),
    "batch_norm of images": (lambda: nt.BatchNorm2d(8), (2, 8, 3, 2)),
}
EXACT = {**ROWS, **IMAGES}
CARRIED = {
    "power_norm": (lambda: nt.PowerNorm(24), (7, 24)),
    "power_norm_released": (lambda: nt.PowerNorm(24, heads=4, warmup_iters=2), (7, 24)),
}
STATES = {name: made for name, made in {**EXACT, **CARRIED}.items() if name.split("_")[0] in ("batch", "power")}


def module_of(name, dtype=torch.float32):
    """Returns a module with parameters that are no ones and zeros, and the shape of an input."""
    make, shape = {**EXACT, **CARRIED}[name]
    torch.manual_seed(3)
    module = make()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(1, 0.3)
    return module.to(dtype), shape


def data_of(shape, dtype=torch.float32, seed=5):
    generator = torch.Generator().manual_seed(seed)
    return (0.5 + torch.randn(shape, generator=generator, dtype=torch.float64)).to(dtype)


def run(module, x, dy):
    """Returns the output, the gradients of x and of the parameters, and the state after one step."""
    x = x.detach().clone().requires_grad_()
    y = module(x)
    y.backward(dy)
    gradients = [p.grad for p in module.parameters()]
    for parameter in module.parameters():
        parameter.grad = None
    return [y.detach(), x.grad, *gradients, *(b.clone() for b in module.buffers())]


def bits(tensor):
    """Returns the bytes of a tensor, with one NaN for all of them."""
    whole = tensor.detach().masked_fill(tensor.isnan(), float("nan")) if tensor.is_floating_point() else tensor
    return whole.contiguous().reshape(-1).view(torch.uint8)


def same(ours, theirs):
    """True if two lists of tensors have the same bits."""
    return len(ours) == len(theirs) and all(
        a.dtype == b.dtype and a.shape == b.shape and torch.equal(bits(a), bits(b)) for a, b in zip(ours, theirs)
    )
