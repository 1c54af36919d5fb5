"""A transformer of an encoder and a decoder over bytes, with the blocks of model.py."""

from torch import nn

import norms
from model import BYTES, Block, initialise, masked


class Translator(nn.Module):
    """source, target: bytes [batch, positions]; source_real, real: True where they are not padding. Returns logits
    [real bytes of all targets, 256]. Encoder and decoder share the embeddings of bytes and of positions."""

    def __init__(self, norm, placement, width, layers, heads, context, warmup):
        super().__init__()

        def make():
            return norms.make(norm, width, heads, warmup)

        self.token, self.position = nn.Embedding(BYTES, width), nn.Embedding(context, width)
        self.encoder = nn.ModuleList(Block(make, width, heads, placement) for _ in range(layers))
        self.decoder = nn.ModuleList(Block(make, width, heads, placement, reads=True) for _ in range(layers))
        self.last = nn.ModuleList(make() for _ in range(2 if placement == "pre" else 0))  # of encoder and decoder
        self.logits = nn.Linear(width, BYTES)
        initialise(self, width)

    def embedded(self, tokens):
        return self.token(tokens) + self.position.weight[: tokens.shape[1]]

    def encode(self, source, real):
        x = self.embedded(source)
        for block in self.encoder:
            x = block(x, real, causal=False)
        return masked(self.last[0], x, real) if self.last else x

    def forward(self, source, source_real, target, real):
        read, x = self.encode(source, source_real), self.embedded(target)
        for block in self.decoder:
            x = block(x, real, read=read, read_real=source_real)
        return self.logits((masked(self.last[1], x, real) if self.last else x)[real])
