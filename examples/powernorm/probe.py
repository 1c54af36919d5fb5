"""Statistics of the batches that reach a norm, and of the gradients there, for Fig. 2 to 4 of the paper.

For x [rows, features], with running values of decay 0.9 from the steps before:

    mu_B = mean(x), var_B = mean((x - mu_B)^2), psi2_B = mean(x^2)                        over rows
    g_mu = mean(g), g_var = mean(g (x - mu_B) / sqrt(var_B)), g_psi = mean(g x / psi_B)    g = gamma dL/dy (Eq. 3, Def. 1)

The paper plots Euclidean distances divided by the number of features. A distance alone depends on the scale of x, so
each is also written relative to the norm of the running value: that of psi2, var, and for mu that of psi.
`gamma` is the largest psi2_B / (psi2 + epsilon) of all features: for PN, whose psi2 changes in backward, Gamma of the
update of nu; for others it is of the running value here.
"""

import torch

MOMENTS, GRADIENTS = ("mu", "var", "psi2"), ("g_mu", "g_var", "g_psi")
COLUMNS = [*(f"{kind}_{name}" for kind in ("distance", "relative") for name in MOMENTS), *GRADIENTS, "gamma"]
DECAY, EPSILON = 0.9, 1e-12


def rows_of(x):
    """Returns x as [rows, features]. The second of four dimensions is that of the features, else the last one."""
    return (x.movedim(1, -1) if x.dim() == 4 else x).flatten(0, -2)


class Probe:
    """Watches one norm. `row` is {column: value} of the last training step."""

    def __init__(self, norm):
        self.running, self.row = None, {}
        norm.register_forward_hook(self._forward)

    def _forward(self, norm, inputs, y):
        if not (norm.training and torch.is_grad_enabled()):
            return
        x = rows_of(inputs[0].detach())
        mean, square = x.mean(0), x.square().mean(0)
        variance = (square - mean.square()).clamp_min(0)
        batch = (mean, variance, square)
        divisor = norm.psi2 + 1e-5 if hasattr(norm, "nu") else self.running[2] + EPSILON if self.running else square
        self.row = {"gamma": (square / divisor).max().item()}
        if self.running is None:
            self.running = [value.clone() for value in batch]
        else:
            scales = (self.running[2].sqrt(), self.running[1], self.running[2])
            for name, value, old, scale in zip(MOMENTS, batch, self.running, scales):
                distance = (value - old).norm().item()
                self.row["distance_" + name] = distance / len(mean)
                self.row["relative_" + name] = distance / max(scale.norm().item(), EPSILON)
            for value, old in zip(batch, self.running):
                old.mul_(DECAY).add_(value, alpha=1 - DECAY)
        y.register_hook(lambda dy: self._backward(norm, x, rows_of(dy), mean, variance, square))

    def _backward(self, norm, x, dy, mean, variance, square):
        g = norm.weight.detach() * dy
        g_mu, gx = g.mean(0), (g * x).mean(0)
        terms = (g_mu, (gx - mean * g_mu) / (variance + EPSILON).sqrt(), gx / (square + EPSILON).sqrt())
        self.row.update({name: term.norm().item() / len(term) for name, term in zip(GRADIENTS, terms)})
