"""A decoder-only transformer over bytes, with any norm in front of its layers or behind their sums.

Its blocks are also those of translator.py, where texts of a batch differ in length. A mask `real` is then True for the
bytes of a text and False for the padding behind them, which norms leave out of their statistics. The released PN does
so in forward alone, as its code: padding counts in the mean of nu, and has a gradient of -nu z / psi_B.
"""

from torch import nn

import norms

BYTES = 256


class Attention(nn.Module):
    """Attention of several heads. x: [batch, positions, width]."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, read=None, real=None, causal=False):
        """read: [batch, others, width] that positions of x attend to, where that is not x. real: its bytes."""
        width = x.shape[-1]
        if read is None:
            parts = self.qkv(x).chunk(3, -1)
        else:
            weight, bias = self.qkv.weight.split((width, 2 * width)), self.qkv.bias.split((width, 2 * width))
            parts = (
                nn.functional.linear(x, weight[0], bias[0]),
                *nn.functional.linear(read, weight[1], bias[1]).chunk(2, -1),
            )
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        seen = None if real is None else real[:, None, None]
        y = nn.functional.scaled_dot_product_attention(q, k, v, seen, is_causal=causal)
        return self.out(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention, attention to an encoder's output if `reads`, and a network of two layers. x, y: [batch, context, width].

    pre: x + f(norm(x)). post: norm(x + f(x)), as in the paper's transformers.
    """

    def __init__(self, make, width, heads, placement, reads=False):
        super().__init__()
        self.placement = placement
        self.norms = nn.ModuleList(make() for _ in range(3 if reads else 2))
        self.attention = Attention(width, heads)
        self.reading = Attention(width, heads) if reads else None
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))

    def layers(self):
        """Returns {name: layer} in the order of the forward; `norms` has as many."""
        named = {"attention": self.attention, "reading": self.reading, "mlp": self.mlp}
        return {name: layer for name, layer in named.items() if layer is not None}

    def forward(self, x, real=None, causal=True, read=None, read_real=None):
        given = {"attention": {"causal": causal, "real": None if causal else real}, "mlp": {}}
        given["reading"] = {"read": read, "real": read_real}
        for norm, (name, layer) in zip(self.norms, self.layers().items()):
            if self.placement == "pre":
                x = x + layer(masked(norm, x, real), **given[name])
            else:
                x = masked(norm, x + layer(x, **given[name]), real)
        return x


def masked(norm, x, real):
    return norm(x) if real is None else norm(x, real)


def initialise(model, width):
    """Draws weights by their place: those of torch are not those of transformers."""
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            nn.init.normal_(parameter, std=0.02 if "token" in name or "position" in name else width**-0.5)
        elif "norms" not in name and "last" not in name:
            nn.init.zeros_(parameter)
    for block in model.modules():
        if isinstance(block, Block):  # the last product of a layer has four times as many terms
            nn.init.normal_(block.mlp[2].weight, std=(4 * width) ** -0.5)


class Decoder(nn.Module):
    """tokens [batch, context] of bytes to logits [batch, context, 256]."""

    def __init__(self, norm, placement, width, layers, heads, context, warmup):
        super().__init__()

        def make():
            return norms.make(norm, width, heads, warmup)

        self.token, self.position = nn.Embedding(BYTES, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(make, width, heads, placement) for _ in range(layers))
        self.last = make() if placement == "pre" else nn.Identity()
        self.logits = nn.Linear(width, BYTES)
        initialise(self, width)

    def forward(self, tokens):
        x = self.token(tokens) + self.position.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.logits(self.last(x))

    def sites(self):
        """Returns {name: norm} in the order of the forward."""
        found = {
            f"{at}.{name}": norm
            for at, block in enumerate(self.blocks)
            for name, norm in zip(block.layers(), block.norms)
        }
        return found if isinstance(self.last, nn.Identity) else {**found, "last": self.last}
