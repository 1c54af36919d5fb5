"""Which runs a task consists of: those that search the learning rates, and those behind them that are compared."""

from settings import NORMS, PLACEMENTS, WATCHED

# the CSV of each task's runs
FILES = {"language": "runs", "translation": "translation", "mixed": "mixed", "images": "images"}


def sizes(config, task):
    """Returns the settings of a task: batch, steps, search_steps; of text the context too."""
    return config if task == "language" else config.images if task == "images" else config.translation


def tokens_of(config, task, batch):
    """Returns the bytes of a step, at most; of images the images."""
    return batch if task == "images" else batch * sizes(config, task).context


def compared(config, task):
    """Returns the (experiment, norm, placement, batch) that are compared, each at a learning rate of its own."""
    if task == "images":
        return [("main", "bn", "images", config.images.batch)]
    if task == "mixed":
        return [("main", norm, "post", config.translation.batch) for norm in WATCHED]
    base = [("main", norm, placement, sizes(config, task).batch) for placement in PLACEMENTS for norm in NORMS]
    if task == "translation":
        return base
    return base + [("batch", norm, "post", batch) for batch in config.batches for norm in WATCHED]


def run_of(config, task, experiment, norm, placement, batch, rate, seed, steps):
    """steps: those with the form's own batch. Other batches take as many bytes in all."""
    size = sizes(config, task)
    steps = max(1, steps * size.batch // batch)
    run = dict(experiment=experiment, norm=norm, placement=placement, rate=rate, seed=seed, steps=steps, batch=batch)
    return {"task": task, **run, "tokens": tokens_of(config, task, batch)}


def searches(config, task):
    return [
        run_of(config, task, "search", *case, rate=rate, seed=99, steps=sizes(config, task).search_steps)
        for _, *case in compared(config, task)
        for rate in config.rates
    ]


def trials(config, task, rates):
    """Returns the runs behind the search: seeds outermost, so that a part of them is a complete comparison."""
    size = sizes(config, task)
    return [
        run_of(config, task, *case, rate=rates[norm, placement, tokens_of(config, task, batch)], seed=seed, steps=size.steps)
        for seed in range(config.seeds)
        for case in compared(config, task)
        for _, norm, placement, batch in [case]
    ]
