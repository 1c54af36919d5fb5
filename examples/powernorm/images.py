"""The task of telling which of ten kinds an image is, for what the paper says of networks for images (Fig. 2 and 3)."""

import copy
import math

import torch
from torch import nn

from digits import KINDS
from resnet import ResNet


class Images:
    """The task as `training.train` takes it. splits: {name: (images, labels)}."""

    measured = ("valid", "test", "test_of_batch", "accuracy")  # the names of `results`

    def __init__(self, splits, config):
        self.config = config.images
        self.splits = {name: (x[:, None], labels) for name, (x, labels) in splits.items()}

    def model(self, norm, placement, warmup):
        assert norm == "bn", "the paper's networks for images have BN"
        return ResNet(self.config.width, self.config.units, KINDS)

    def draw(self, size, generator):
        """Returns a batch of train."""
        images, labels = self.splits["train"]
        at = torch.randint(len(labels), (size,), generator=generator)
        return images[at], labels[at]

    def loss(self, model, drawn):
        images, labels = drawn
        return nn.functional.cross_entropy(model(images), labels)

    @torch.no_grad()
    def bits(self, model, split, of_batch=False):
        """Returns bits an image of valid or test. of_batch: with statistics of all its images."""
        if of_batch:
            model = copy.deepcopy(model)  # a forward in training moves the state
        model.train(of_batch)
        return self.loss(model, self.splits[split]).item() / math.log(2)

    def results(self, model, size):
        values = self.bits(model, "valid"), self.bits(model, "test"), self.bits(model, "test", of_batch=True)
        images, labels = self.splits["test"]
        with torch.no_grad():
            accuracy = (model.eval()(images).argmax(1) == labels).double().mean().item()
        return dict(zip(self.measured, (*values, accuracy)))
