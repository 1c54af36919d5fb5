"""The norms that are compared, and how much each form of the experiment runs. Sizes are in bytes of text, which are tokens."""

import dataclasses

TITLES = {
    "ln": "LN", "rms": "RMS", "bn": "BN", "pnv": "PN-V", "pn": "PN", "pn_released": "PN released", "ln_torch": "LN of torch",
    "pn_composed": "PN released, composed",
}
NORMS = ("ln", "rms", "bn", "pnv", "pn", "pn_released")
PLACEMENTS = ("pre", "post")
WATCHED = ("ln", "bn", "pnv", "pn")  # those whose statistics are written, and that meet other batches


@dataclasses.dataclass(frozen=True)
class Config:
    width: int              # features of a token
    layers: int
    heads: int
    context: int            # bytes that a prediction may see
    batch: int              # sequences of a step
    steps: int              # of a run
    search_steps: int       # of a run that only chooses the learning rate
    rates: tuple            # learning rates of the search
    seeds: int
    batches: tuple          # other numbers of sequences, with as many bytes in all (Fig. 5)
    valid: int              # bytes that are evaluated
    test: int
    every: int              # steps between rows of statistics and of the loss on valid
    shapes: tuple           # [rows, features] of norms that are timed alone
    rounds: int             # of timing
    seconds: float          # of one timing


FORMS = {
    # about 10 minutes on one core
    "quick": Config(64, 2, 4, 64, 16, 300, 120, (1e-3, 3e-3, 1e-2, 3e-2), 3, (4,), 32768, 131072, 10,
                    ((1024, 64), (4096, 512)), 15, 0.02),
    # a night on two cores: 2.8 million parameters
    "full": Config(192, 6, 6, 128, 16, 1200, 300, (5e-4, 1e-3, 2e-3, 4e-3), 3, (4, 64), 65536, 262144, 20,
                   ((2048, 192), (4096, 512), (16384, 1024)), 31, 0.1),
    # seconds: what the test of this example runs
    "smoke": Config(16, 1, 2, 16, 8, 12, 6, (3e-3, 1e-2), 2, (4,), 2048, 2048, 4, ((64, 16),), 3, 0.001),
}
