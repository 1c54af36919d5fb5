"""The norms that are compared, each over [..., features] with its state in buffers, and their peers in PyTorch.

`Composed` is the released code's PowerNorm written with operators of PyTorch, from its formulas alone: group scaling,
the quadratic mean of the batch during a warmup, two updates of the running one, and a backward with the root of the
batch. It is what our kernel is timed and checked against.
"""

import pathlib

import normc.torch as nt
import torch

CLAMPED = pathlib.Path(__file__).parent / "power_norm_clamped.norm"


def make(norm, features, heads, warmup):
    """Returns a module of the norm. warmup: steps in which the released PN divides by the batch."""
    if norm == "pn_released":
        return nt.PowerNorm(features, heads=heads, warmup_iters=warmup)
    if norm == "pn_composed":
        return Composed(features, heads, warmup)
    if norm == "ln_torch":
        return torch.nn.LayerNorm(features)
    names = {"ln": "layer_norm", "rms": "rms_norm", "bn": "batch_norm", "pnv": "power_norm_v", "pn": "power_norm"}
    return nt.Norm(names[norm], features)


class _Divided(torch.autograd.Function):
    """z = u s, whose gradient is s_B (g - (1 - a) n z), with n' = n + mean(a z): the released code's Eq. 11 to 13.

    u, z, g: [rows, features]; s, s_B, n: [features]. n is nu / (1 - a) of the paper.
    """

    @staticmethod
    def forward(ctx, u, s, s_batch, n, decay):
        z = u * s
        ctx.save_for_backward(z, s_batch)
        ctx.n, ctx.decay = n, decay
        return z

    @staticmethod
    def backward(ctx, g):
        z, s_batch = ctx.saved_tensors
        a = g - (1 - ctx.decay) * ctx.n * z
        ctx.n += (a * z).mean(0)
        return s_batch * a, None, None, None, None


class Composed(torch.nn.Module):
    """The released PowerNorm, with the buffers of its checkpoints: running_phi, ema_gz, iters."""

    def __init__(self, features, heads, warmup, alpha_fwd=0.9, alpha_bkw=0.9, epsilon=1e-5):
        super().__init__()
        self.heads, self.warmup, self.epsilon = heads, warmup, epsilon
        self.alpha_fwd, self.alpha_bkw = alpha_fwd, alpha_bkw
        self.weight, self.bias = torch.nn.Parameter(torch.ones(features)), torch.nn.Parameter(torch.zeros(features))
        self.register_buffer("running_phi", torch.ones(1, 1, features, 1))
        self.register_buffer("ema_gz", torch.zeros(1, 1, features, 1))
        self.register_buffer("iters", torch.zeros(1, dtype=torch.int64))

    def scaled(self, x):
        """Returns x with each group of features of a row divided by its root mean square."""
        groups = x.reshape(-1, self.heads, x.shape[-1] // self.heads)
        return (groups * (groups.square().mean(-1, keepdim=True) + self.epsilon).rsqrt()).reshape(-1, x.shape[-1])

    def forward(self, x):
        u, phi = self.scaled(x), self.running_phi.view(-1)
        if not self.training:
            z = u * (phi + self.epsilon).rsqrt()
            return (self.weight * z + self.bias).view_as(x)
        with torch.no_grad():
            self.iters += 1
            step = int(self.iters)
            q = u.square().mean(0)
            s_batch = (q + self.epsilon).rsqrt()
            s = s_batch if step <= self.warmup else (phi + self.epsilon).rsqrt()
        z = _Divided.apply(u, s, s_batch, self.ema_gz.view(-1), self.alpha_bkw)
        with torch.no_grad():
            if step < self.warmup:
                phi.mul_((step - 1) / step).add_(q, alpha=1 / step)
            phi.mul_(self.alpha_fwd).add_(q, alpha=1 - self.alpha_fwd)
        return (self.weight * z + self.bias).view_as(x)
