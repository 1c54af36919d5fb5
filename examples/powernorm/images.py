"""The task of telling which of ten kinds a picture is, for what the paper says of networks for images (Fig. 2 and 3)."""

import copy
import math

import torch
from torch import nn

from pictures import KINDS
from resnet import ResNet


class Images:
    """The task as `training.train` takes it. splits: {name: (pictures, labels)}."""

    measured = ("valid", "test", "test_of_batch", "accuracy")  # the names of `results`

    def __init__(self, splits, config):
        self.config = config.images
        self.splits = {name: (x[:, None], labels) for name, (x, labels) in splits.items()}

    def model(self, norm, placement, warmup):
        assert norm == "bn", "the paper's networks for images have BN"
        return ResNet(self.config.width, self.config.units, KINDS)

    def draw(self, size, generator):
        """Returns a batch of train."""
        pictures, labels = self.splits["train"]
        at = torch.randint(len(labels), (size,), generator=generator)
        return pictures[at], labels[at]

    def loss(self, model, drawn):
        pictures, labels = drawn
        return nn.functional.cross_entropy(model(pictures), labels)

    @torch.no_grad()
    def bits(self, model, split, of_batch=False):
        """Returns bits a picture of valid or test. of_batch: with statistics of all its pictures."""
        if of_batch:
            model = copy.deepcopy(model)  # a forward in training moves the state
        model.train(of_batch)
        return self.loss(model, self.splits[split]).item() / math.log(2)

    def results(self, model, size):
        values = self.bits(model, "valid"), self.bits(model, "test"), self.bits(model, "test", of_batch=True)
        pictures, labels = self.splits["test"]
        with torch.no_grad():
            accuracy = (model.eval()(pictures).argmax(1) == labels).double().mean().item()
        return dict(zip(self.measured, (*values, accuracy)))
