"""A decoder-only transformer over bytes, with any norm in front of its layers or behind their sums."""

from torch import nn

import norms

BYTES = 256


class Block(nn.Module):
    """Attention and a network of two layers. x, y: [batch, context, width].

    pre: x + f(norm(x)). post: norm(x + f(x)), as in the paper's transformers.
    """

    def __init__(self, make, width, heads, placement):
        super().__init__()
        self.heads, self.placement = heads, placement
        self.norms = nn.ModuleList(make() for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))

    def attention(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))

    def forward(self, x):
        for norm, layer in zip(self.norms, (self.attention, self.mlp)):
            x = x + layer(norm(x)) if self.placement == "pre" else norm(x + layer(x))
        return x


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
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02 if "token" in name or "position" in name else width**-0.5)
            elif "norms" not in name and "last" not in name:
                nn.init.zeros_(parameter)
        for block in self.blocks:  # the last product of a layer has four times as many terms
            nn.init.normal_(block.mlp[2].weight, std=(4 * width) ** -0.5)

    def forward(self, tokens):
        x = self.token(tokens) + self.position.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.logits(self.last(x))

    def sites(self):
        """Returns {name: norm} in the order of the forward."""
        found = {
            f"{at}.{part}": norm
            for at, block in enumerate(self.blocks)
            for part, norm in zip(("attention", "mlp"), block.norms)
        }
        return found if isinstance(self.last, nn.Identity) else {**found, "last": self.last}
