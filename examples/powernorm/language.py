"""The task of predicting the next byte of a text."""

import copy
import math

import torch
from torch import nn

from model import Decoder

EVALUATED = 64  # sequences of a batch of evaluation


def loss_of(model, windows):
    """windows: bytes [batch, context + 1]. Returns the mean cross entropy in nats."""
    logits = model(windows[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


@torch.no_grad()
def bits_per_byte(model, data, context, limit, of_batch=False, sequences=EVALUATED):
    """Returns bits per byte over `limit` bytes of `data`: windows of `context`, drawn over all of it, always the same.

    of_batch: the norms use statistics of the batch of evaluation, `sequences` windows, as they do in training.
    """
    if of_batch:
        model = copy.deepcopy(model)  # a forward in training moves the state
    model.train(of_batch)
    windows = data.unfold(0, context + 1, context)
    drawn = torch.randperm(len(windows), generator=torch.Generator().manual_seed(0))[: max(1, limit // context)]
    full = [part for part in windows[drawn].split(sequences) if len(part) == min(sequences, len(drawn))]
    mean = sum(loss_of(model, part).item() for part in full) / len(full)
    return mean / math.log(2)


class Language:
    """The task as `training.train` takes it. splits: {name: bytes as int64}."""

    measured = ("valid", "test", "test_of_batch")  # the names of `results`

    def __init__(self, splits, config):
        self.splits, self.config = splits, config
        self.offsets = torch.arange(config.context + 1)

    def model(self, norm, placement, warmup):
        config = self.config
        return Decoder(norm, placement, config.width, config.layers, config.heads, config.context, warmup)

    def draw(self, size, generator):
        """Returns a batch of train."""
        at = torch.randint(len(self.splits["train"]) - self.config.context - 1, (size, 1), generator=generator)
        return self.splits["train"][at + self.offsets]

    loss = staticmethod(loss_of)

    def bits(self, model, split, **how):
        """Returns bits a byte of valid or test."""
        return bits_per_byte(model, self.splits[split], self.config.context, getattr(self.config, split), **how)

    def results(self, model, size):
        """size: sequences of a step, which statistics of a batch are taken over."""
        of_batch = self.bits(model, "test", of_batch=True, sequences=size)
        values = self.bits(model, "valid"), self.bits(model, "test"), of_batch
        return dict(zip(self.measured, values))
