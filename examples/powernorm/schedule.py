"""Which runs a task consists of: those that search the learning rates, and those behind them that are compared."""

from settings import NORMS, PLACEMENTS, WATCHED

FILES = {"language": "runs", "translation": "translation", "mixed": "mixed"}  # the CSV of each task's runs


def sizes(config, task):
    """Returns the settings of a task: batch, context, steps, search_steps."""
    return config if task == "language" else config.translation


def compared(config, task):
    """Returns the (experiment, norm, placement, batch) that are compared, each at a learning rate of its own."""
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
    return {"task": task, **run, "tokens": batch * size.context}


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
        run_of(config, task, *case, rate=rates[norm, placement, batch * size.context], seed=seed, steps=size.steps)
        for seed in range(config.seeds)
        for case in compared(config, task)
        for _, norm, placement, batch in [case]
    ]
