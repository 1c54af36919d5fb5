"""The norms that are compared, and how much each form of the experiment runs. Sizes are in bytes of text: tokens."""

import dataclasses

TITLES = {
    "ln": "LN",
    "rms": "RMS",
    "bn": "BN",
    "pnv": "PN-V",
    "pn": "PN",
    "pn_released": "PN released",
    "ln_torch": "LN of torch",
    "pn_composed": "PN released, composed",
}
NORMS = ("ln", "rms", "bn", "pnv", "pn", "pn_released")
PLACEMENTS = ("pre", "post")
WATCHED = ("ln", "bn", "pnv", "pn")  # those whose statistics are written, and that meet other batches


@dataclasses.dataclass(frozen=True)
class Translation:
    """Widths, layers, heads, learning rates and seeds are those of the form."""

    context: int  # bytes of a source or target, at most
    batch: int  # pairs of a step
    steps: int
    search_steps: int
    pairs: int  # that are evaluated, of valid and of test


@dataclasses.dataclass(frozen=True)
class Images:
    """Learning rates and seeds are those of the form."""

    width: int  # channels of the first stage
    units: int  # of each of three stages
    batch: int  # images of a step
    steps: int
    search_steps: int


@dataclasses.dataclass(frozen=True)
class Config:
    width: int  # features of a token
    layers: int
    heads: int
    context: int  # bytes that a prediction may see
    batch: int  # sequences of a step
    steps: int  # of a run
    search_steps: int  # of a run that only chooses the learning rate
    rates: tuple  # learning rates of the search
    seeds: int
    batches: tuple  # other numbers of sequences, with as many bytes in all (Fig. 5)
    valid: int  # bytes that are evaluated
    test: int
    every: int  # steps between rows of statistics and of the loss on valid
    shapes: tuple  # [rows, features] of norms that are timed alone; heads divide the features
    rounds: int  # of timing
    seconds: float  # of one timing
    translation: Translation
    images: Images


def config_from(values):
    """Returns the Config of a machine.json."""
    parts = {"translation": Translation(**values["translation"]), "images": Images(**values["images"])}
    return Config(**{**values, **parts})


FORMS = {
    # about 20 minutes on one core
    "quick": Config(
        width=64, layers=2, heads=4, context=64, batch=16, steps=300, search_steps=120, rates=(1.5e-3, 3.5e-3, 8e-3, 1.8e-2),
        seeds=3, batches=(4,), valid=32768, test=131072, every=10,
        shapes=((1024, 64), (4096, 512)), rounds=15, seconds=0.02,
        translation=Translation(context=64, batch=16, steps=200, search_steps=80, pairs=512),
        images=Images(width=16, units=3, batch=128, steps=300, search_steps=60),
    ),
    # half a day on two cores: 2.8 million parameters
    "full": Config(
        width=192, layers=6, heads=6, context=128, batch=16, steps=1200, search_steps=300, rates=(5e-4, 1e-3, 2e-3, 4e-3),
        seeds=3, batches=(4, 64), valid=65536, test=262144, every=20,
        shapes=((2048, 192), (4096, 768), (16384, 1536)), rounds=31, seconds=0.1,
        translation=Translation(context=96, batch=16, steps=1200, search_steps=300, pairs=1024),
        images=Images(width=16, units=3, batch=128, steps=1200, search_steps=300),
    ),
    # seconds: what the test of this example runs
    "smoke": Config(
        width=16, layers=1, heads=2, context=16, batch=8, steps=12, search_steps=6, rates=(3e-3, 1e-2),
        seeds=2, batches=(4,), valid=2048, test=2048, every=4,
        shapes=((64, 16),), rounds=3, seconds=0.001,
        translation=Translation(context=64, batch=4, steps=6, search_steps=3, pairs=16),
        images=Images(width=4, units=1, batch=8, steps=12, search_steps=3),
    ),
}  # fmt: skip
