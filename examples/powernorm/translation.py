"""The task of translating English phrases to German, byte by byte.

A text ends with the byte 0, which the decoder also gets in front of its first byte. The loss counts it as a byte.
"""

import copy
import math

import torch
from torch import nn

from translator import Translator

END = b"\0"
EVALUATED = 64  # pairs of a batch of evaluation
NEAR = 1000  # the pairs of a batch are among so many neighbours in length, as about those of fairseq are


def padded(texts, front=b"", behind=b""):
    """Returns bytes [texts, positions] as int64, and True where they are not padding."""
    texts = [front + text + behind for text in texts]
    longest = max(map(len, texts))
    flat = bytearray(b"".join(text.ljust(longest, END) for text in texts))
    sizes = torch.tensor([len(text) for text in texts])
    return (
        torch.frombuffer(flat, dtype=torch.uint8).view(len(texts), longest).long(),
        torch.arange(longest) < sizes[:, None],
    )


def batch_of(pairs):
    """pairs: [(source, target)] as bytes. Returns what a model takes, and the bytes that it has to predict."""
    sources, targets = zip(*pairs)
    wanted, real = padded(targets, behind=END)
    return (*padded(sources, behind=END), *padded(targets, front=END)), wanted[real]


def loss_of(model, batch):
    """Returns the mean cross entropy in nats over the bytes of all targets."""
    given, wanted = batch
    return nn.functional.cross_entropy(model(*given), wanted)


def exchanged(pairs):
    """Returns the pairs with the sources moved on by one, so that no target has its own."""
    sources, targets = zip(*pairs)
    return list(zip(sources[1:] + sources[:1], targets))


@torch.no_grad()
def bits_per_byte(model, pairs, size=EVALUATED, of_batch=False, change=list):
    """Returns bits per byte of the targets, by batches of neighbours in the list.

    of_batch: as in language.py. change: what is done to the pairs of a batch.
    """
    if of_batch:
        model = copy.deepcopy(model)
    model.train(of_batch)
    nats = count = 0
    for at in range(0, len(pairs), size):
        batch = batch_of(change(pairs[at : at + size]))
        nats += loss_of(model, batch).item() * len(batch[1])
        count += len(batch[1])
    return nats / count / math.log(2)


def length(pair):
    return sum(map(len, pair))


class Translation:
    """The task as `training.train` takes it. splits: {name: [(source, target)] as bytes}, config: that of a form.

    mixed: the pairs of a batch have all lengths.
    """

    measured = ("valid", "test", "test_of_batch", "test_exchanged")  # the names of `results`

    def __init__(self, splits, config, mixed=False):
        self.config = config
        kept = {name: part[: None if name == "train" else config.translation.pairs] for name, part in splits.items()}
        self.splits = {name: sorted(part, key=length) for name, part in kept.items()}
        self.near = len(kept["train"]) if mixed else min(NEAR, len(kept["train"]))
        self.as_trained = kept["test"] if mixed else self.splits["test"]

    def model(self, norm, placement, warmup):
        config = self.config
        context = config.translation.context + 1
        return Translator(norm, placement, config.width, config.layers, config.heads, context, warmup)

    def draw(self, size, generator):
        """Returns a batch of train."""
        train = self.splits["train"]
        at = torch.randint(len(train) - self.near + 1, (1,), generator=generator)
        return batch_of([train[place] for place in at + torch.randint(self.near, (size,), generator=generator)])

    loss = staticmethod(loss_of)

    def bits(self, model, split):
        """Returns bits a byte of valid or test."""
        return bits_per_byte(model, self.splits[split])

    def results(self, model, size):
        """size: pairs of a step, which statistics of a batch are taken over."""
        values = (
            self.bits(model, "valid"),
            self.bits(model, "test"),
            bits_per_byte(model, self.as_trained, size, of_batch=True),
            bits_per_byte(model, self.splits["test"], change=exchanged),
        )
        return dict(zip(self.measured, values))
