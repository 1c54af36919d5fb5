"""PowerNorm against its formulas in double precision, and against the released code, whose checkpoints it loads."""

import normc.torch as nt
import pytest
import torch

from kit import data_of


class Oracle:
    """Algorithm 2 of the paper in f64, with real rows `mask`."""

    def __init__(self, features, decay=0.9, backward_decay=0.9, epsilon=1e-5):
        self.psi2, self.nu = torch.ones(features).double(), torch.zeros(features).double()
        self.decay, self.backward_decay, self.epsilon = decay, backward_decay, epsilon

    def step(self, x, dy, weight, bias, mask):
        """Returns y, dx, dscale and dbias of rows, of which those that are not real are zero."""
        x, dy, weight, bias = (t.detach().double() for t in (x, dy, weight, bias))
        count, s = mask.sum(), (self.psi2 + self.epsilon).rsqrt()
        real = mask[:, None].double()
        normalized = x * s
        y = (weight * normalized + bias) * real
        gradient = weight * dy
        dx = s * (gradient - self.nu * normalized) * real
        moment = lambda a: (a * real).sum(0) / count
        grown, power = moment(gradient * normalized), moment(normalized.square())
        self.nu = self.nu * (1 - (1 - self.backward_decay) * power) + (1 - self.backward_decay) * grown
        self.psi2 = self.decay * self.psi2 + (1 - self.decay) * moment(x.square())
        return y, dx, (dy * normalized * real).sum(0), (dy * real).sum(0)


def close(ours, theirs, bound):
    assert (ours.double() - theirs).abs().max() <= bound * max(1.0, theirs.abs().max().item())


@pytest.mark.parametrize("dtype, bound", [(torch.float64, 1e-11), (torch.float32, 2e-4)], ids=["f64", "f32"])
@pytest.mark.parametrize("masked", [False, True], ids=["all rows", "mask"])
def test_many_steps_of_the_paper(masked, dtype, bound):
    torch.manual_seed(0)
    norm = nt.PowerNorm(40, alpha_fwd=0.8, alpha_bwd=0.95, dtype=dtype)
    with torch.no_grad():
        norm.weight.normal_(1, 0.2), norm.bias.normal_()
    oracle = Oracle(40, 0.8, 0.95)
    for step in range(60):
        rows = 5 + step % 7
        x, dy = data_of((rows, 40), dtype, step).requires_grad_(), data_of((rows, 40), dtype, 1000 + step)
        mask = torch.arange(rows) % 3 != 1 if masked else torch.ones(rows, dtype=torch.bool)
        y = norm(x, mask if masked else None)
        y.backward(dy)
        wanted = oracle.step(x, dy, norm.weight, norm.bias, mask)
        for ours, theirs in zip((y, x.grad, norm.weight.grad, norm.bias.grad), wanted):
            close(ours, theirs, bound)
        norm.zero_grad()
    close(norm.psi2, oracle.psi2, bound)
    close(norm.nu, oracle.nu, bound)
    assert norm.step == 60


class Released(torch.nn.Module):
    """What the released code computes: scaling of groups, a warmup on the batch, two updates of the running moment,
    and a backward whose nu is kept divided by 1 - alpha and whose scale is always that of the batch."""

    def __init__(self, features, heads, warmup, alpha=0.9, epsilon=1e-5):
        super().__init__()
        self.heads, self.warmup, self.alpha, self.epsilon = heads, warmup, alpha, epsilon
        self.weight = torch.nn.Parameter(torch.ones(features))
        self.bias = torch.nn.Parameter(torch.zeros(features))
        self.register_buffer("running_phi", torch.ones(1, features, 1, 1))
        self.register_buffer("ema_gz", torch.zeros(1, features, 1, 1))
        self.register_buffer("iters", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        grouped = x.unflatten(-1, (self.heads, -1))
        u = (grouped * (grouped.square().mean(-1, keepdim=True) + self.epsilon).rsqrt()).flatten(-2)
        if not self.training:
            return self.weight * u * (self.running_phi.flatten() + self.epsilon).rsqrt() + self.bias
        module = self

        class Core(torch.autograd.Function):
            @staticmethod
            def forward(ctx, u):
                t, phi = int(module.iters) + 1, module.running_phi.flatten()
                power = u.square().mean(0)
                of_batch = (power + module.epsilon).rsqrt()
                z = u * (of_batch if t <= module.warmup else (phi + module.epsilon).rsqrt())
                if t < module.warmup:
                    phi = phi * (t - 1) / t + power / t
                phi = module.alpha * phi + (1 - module.alpha) * power
                module.running_phi.copy_(phi.view_as(module.running_phi))
                module.iters += 1
                ctx.save_for_backward(z, of_batch)
                return z

            @staticmethod
            def backward(ctx, g):
                z, of_batch = ctx.saved_tensors
                a = g - (1 - module.alpha) * module.ema_gz.flatten() * z
                module.ema_gz += (a * z).mean(0).view_as(module.ema_gz)
                return a * of_batch

        return self.weight * Core.apply(u) + self.bias


@pytest.mark.parametrize("loaded_at", [0, 3, 12])
def test_goes_on_from_a_checkpoint_of_the_released_code(loaded_at):
    theirs = Released(24, 4, warmup=6).double()
    ours = nt.PowerNorm(24, heads=4, warmup_iters=6, dtype=torch.float64)
    with torch.no_grad():
        theirs.weight.normal_(1, 0.3), theirs.bias.normal_()

    def run(module, step):
        x = data_of((11, 24), torch.float64, step).requires_grad_()
        y = module(x)
        module.zero_grad()
        y.backward(data_of((11, 24), torch.float64, 100 + step))
        return y, x.grad, module.weight.grad, module.bias.grad

    for step in range(loaded_at):
        run(theirs, step)
    ours.load_state_dict(theirs.state_dict())
    for step in range(loaded_at, loaded_at + 15):
        for a, b in zip(run(ours, step), run(theirs, step)):
            close(a, b, 1e-10)
    close(ours.psi2, theirs.running_phi.flatten(), 1e-12)
    close(ours.nu, 0.1 * theirs.ema_gz.flatten(), 1e-12)
    assert ours.step == theirs.iters
    x = data_of((5, 24), torch.float64)
    close(ours.eval()(x), theirs.eval()(x), 1e-12)


def test_a_checkpoint_of_a_whole_model():
    theirs = torch.nn.Sequential(torch.nn.Linear(24, 24), Released(24, 4, warmup=2))
    ours = torch.nn.Sequential(torch.nn.Linear(24, 24), nt.PowerNorm(24, heads=4, warmup_iters=2))
    theirs(data_of((11, 24))).sum().backward()
    given = theirs.state_dict()
    ours.load_state_dict(given)
    assert "1.running_phi" in given and ours[1].psi2.dtype == torch.float32
    assert (ours.eval()(data_of((5, 24))) - theirs.eval()(data_of((5, 24)))).abs().max() < 1e-5


def test_a_checkpoint_of_the_released_code_needs_groups():
    theirs = Released(24, 4, warmup=2)
    with pytest.warns(UserWarning, match="which scales groups of features first, and this PowerNorm does not; give it heads="):
        nt.PowerNorm(24).load_state_dict(theirs.state_dict())


def test_a_checkpoint_with_a_part_of_the_released_state():
    theirs = {"1." + name: value for name, value in Released(24, 4, warmup=2).state_dict().items()}
    ours = torch.nn.Sequential(torch.nn.Linear(24, 24), nt.PowerNorm(24, heads=4))
    del theirs["1.ema_gz"], theirs["1.iters"]
    with pytest.raises(RuntimeError, match="has 1.running_phi of the released MaskPowerNorm, but not its 1.ema_gz and 1.iters"):
        ours.load_state_dict(theirs, strict=False)


def test_power_norm_v_is_its_formula():
    norm = nt.PowerNormV(24, alpha_fwd=0.7).double()
    x = data_of((9, 24), torch.float64).requires_grad_()
    y = norm(x)
    power = x.square().mean(0)
    close(y, x * (power + 1e-5).rsqrt(), 1e-12)
    close(norm.psi2, 0.7 + 0.3 * power, 1e-6)
    close(norm.eval()(x), x / (norm.psi2 + 1e-5).sqrt(), 1e-12)
