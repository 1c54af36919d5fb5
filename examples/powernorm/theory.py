"""What the paper proves, tried on the kernels: Lemma 2, the bound of PN's gradients, and a checkpoint's buffers.

Each function returns rows {"check", "case", "step", "quantity", "value"}.
"""

import math

import normc.torch as nt
import torch

import norms

DECAY = 0.9
UNSTABLE = 2 / (1 - DECAY)  # nu is multiplied by 1 - (1 - decay) Gamma: above this Gamma it grows


def _rows(check, case, step, **values):
    return [
        {"check": check, "case": case, "step": step, "quantity": name, "value": float(value)}
        for name, value in values.items()
    ]


def lemma_2(cases=20):
    """The norm of PN-V's gradient: |dx_i|^2 = gamma_i^2 / psi_i^2 (|G_i|^2 - <G_i, xh_i / sqrt(B)>^2), for each feature i.

    x, G = dL/dy: [B, features]. Epsilon is 1e-30 in f64, where the lemma has none, and 1e-12 in f32. Returns the largest
    relative error of both sides over the features, and the least share of |G|^2 that the second term takes away.
    """
    rows = []
    for dtype, epsilon in ((torch.float64, 1e-30), (torch.float32, 1e-12)):
        for case in range(cases):
            torch.manual_seed(case)
            count, features = (17, 24) if case % 2 else (256, 64)
            norm = nt.PowerNormV(features, eps=epsilon, dtype=dtype)
            with torch.no_grad():
                norm.weight.normal_(1, 0.5)
            x = (
                torch.randn(count, features, dtype=dtype) * torch.rand(features, dtype=dtype).add(0.1)
                + torch.randn(features, dtype=dtype)
            ).requires_grad_()
            dy = torch.randn(count, features, dtype=dtype) + 0.5 * x.detach()
            norm(x).backward(dy)
            wide, g, dx = x.detach().double(), dy.double(), x.grad.double()
            psi = wide.square().mean(0).sqrt()
            taken = (g * wide / psi).sum(0).square() / count
            wanted = norm.weight.detach().double().square() / psi.square() * (g.square().sum(0) - taken)
            error = ((dx.square().sum(0) - wanted) / wanted).abs().max()
            rows += _rows(
                "lemma_2",
                f"{str(dtype)[6:]} {count}x{features} seed {case}",
                0,
                error=error,
                taken=(taken / g.square().sum(0)).min(),
            )
    return rows


def stream(norm, scale_of, steps, every, seed=0, rows=64, features=32):
    """Runs training steps of one layer on x = scale_of(step) N(0, 1) and unit dy that lie along x. Yields rows of quantities
    over steps: the largest |dx|, |nu| and Gamma since the last row. Gamma = psi2_B / psi2 follows from the state before and
    after a step, since psi2' = decay psi2 + (1 - decay) psi2_B. Ends where a gradient is not finite."""
    torch.manual_seed(seed)
    largest = {}
    for step in range(steps):
        x = (scale_of(step) * torch.randn(rows, features)).requires_grad_()
        dy = torch.randn(rows, features) + torch.sign(x.detach())
        psi2 = norm.psi2.clone()
        norm(x).backward(dy)
        seen = {
            "dx": x.grad.norm(dim=0).max().item(),
            "nu": norm.nu.abs().max().item(),
            "gamma": ((norm.psi2 - DECAY * psi2) / (1 - DECAY) / (psi2 + 1e-5)).max().item(),
        }
        finite = all(map(math.isfinite, seen.values()))
        largest = {
            name: max(value, largest.get(name, 0.0)) if math.isfinite(value) else math.inf
            for name, value in seen.items()
        }
        if (step + 1) % every == 0 or not finite:
            yield step + 1, largest
            largest = {}
        if not finite:
            return


def bounded(steps=2000, every=20):
    """Gradients of PN over long runs: quiet data, rare outliers, outliers so often that nu grows, and those with Gamma
    limited by `clamp_gamma`, an option of this project."""

    def bursts(period):
        return lambda step: 30.0 if step % period == period - 1 else 1.0

    clamped = nt.norm(str(norms.CLAMPED), 32)
    cases = {
        "quiet": (nt.PowerNorm(32), lambda step: 1.0),
        "outliers each 200": (nt.PowerNorm(32), bursts(200)),
        "outliers each 40": (nt.PowerNorm(32), bursts(40)),
        "outliers each 40, clamped": (clamped, bursts(40)),
        "outliers each 40, released": (nt.PowerNorm(32, heads=4, warmup_iters=0), bursts(40)),
    }
    rows = []
    for case, (norm, scale_of) in cases.items():
        for step, values in stream(norm, scale_of, steps, every):
            rows += _rows("bounded", case, step, **values)
    return rows


def checkpoint(steps=60, loaded_at=30, warmup=20):
    """Buffers of a checkpoint of the released code (running_phi, ema_gz, iters) are loaded into our layer, which then runs
    beside the released formulas (norms.Composed). Rows: relative errors of y, dx, dgamma, dbeta and of the buffers at each
    step behind the load, in f64, and the same for a layer that runs from step 0 through the warmup."""
    rows = []
    for case, start in (("from the start", 0), (f"loaded at step {loaded_at}", loaded_at)):
        torch.manual_seed(7)
        theirs = norms.Composed(24, 4, warmup).double()
        ours = nt.PowerNorm(24, heads=4, warmup_iters=warmup, dtype=torch.float64)
        for step in range(steps):
            x = torch.randn(32, 24, dtype=torch.float64) * (1 + step % 5) + 0.3
            dy = torch.randn(32, 24, dtype=torch.float64) + 0.3 * x
            if step == start:
                ours.load_state_dict(theirs.state_dict())
            outs = []
            for module in (theirs, ours) if step >= start else (theirs,):
                own = x.clone().requires_grad_()
                y = module(own)
                module.weight.grad = module.bias.grad = None
                y.backward(dy)
                outs.append([y.detach(), own.grad, module.weight.grad, module.bias.grad])
            if step < start:
                continue
            outs[0] += [theirs.running_phi.view(-1), (1 - theirs.alpha_bkw) * theirs.ema_gz.view(-1)]
            outs[1] += [ours.psi2, ours.nu]
            errors = {
                name: (a - b).abs().max() / a.abs().max()
                for name, a, b in zip(("y", "dx", "dgamma", "dbeta", "psi2", "nu"), *outs)
            }
            rows += _rows("checkpoint", case, step + 1, **errors)
    return rows


def all_rows(quick=False):
    return lemma_2(4 if quick else 20) + bounded(*((400, 20) if quick else (2000, 20))) + checkpoint()
