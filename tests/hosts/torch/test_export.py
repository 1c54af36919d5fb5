"""Graphs that leave the process: torch.export, AOTInductor, and a process that has no package normc."""

import os
import subprocess
import sys

import normc.torch as nt
import pytest
import torch
from normc.torch import _ops

from kit import CARRIED, EXACT, data_of, module_of

DYNAMIC = ({0: torch.export.Dim("rows", min=2, max=4096)},)


def trained(name):
    module, shape = module_of(name)
    for seed in range(2):
        module(data_of(shape, seed=seed).requires_grad_()).square().sum().backward()
    return module.eval(), shape


@pytest.mark.parametrize("name", {**EXACT, **CARRIED})
def test_export_save_load_run(name, tmp_path):
    module, shape = trained(name)
    with torch.no_grad():
        program = torch.export.export(module, (data_of(shape),), dynamic_shapes=DYNAMIC)
    torch.export.save(program, tmp_path / "model.pt2")
    loaded = torch.export.load(tmp_path / "model.pt2").module()
    for rows in (3, 11):
        x = data_of((rows, *shape[1:]))
        with torch.no_grad():
            assert torch.equal(loaded(x), module(x))


@pytest.mark.parametrize("name", ["layer_norm", "batch_norm", "power_norm_v"])
def test_export_for_training(name, tmp_path):
    module, shape = module_of(name)
    program = torch.export.export(module, (data_of(shape),), dynamic_shapes=DYNAMIC)
    torch.export.save(program, tmp_path / "model.pt2")
    ours, x = torch.export.load(tmp_path / "model.pt2").module(), data_of((11, *shape[1:]))
    assert torch.equal(ours(x), module(x))
    assert all(torch.equal(a, b) for a, b in zip(ours.buffers(), module.buffers(), strict=True))


ALONE = """
import sys, torch, torch._inductor.codecache
library, package, data = sys.argv[1:]
torch.ops.load_library(library)
x, wanted = torch.load(data)
y = torch._inductor.aoti_load_package(package)(x)
assert (y - wanted).abs().max() < 1e-5  # no compiler is set there, so another kernel runs
assert "normc" not in sys.modules
"""


@pytest.mark.rest  # a C++ compiler takes most of 20 seconds
def test_aot_inductor(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(24, 24), *(trained(name)[0] for name in ("layer_norm", "power_norm"))).eval()
    package = str(tmp_path / "model.pt2")
    with torch.no_grad():
        program = torch.export.export(model, (data_of((7, 24)),), dynamic_shapes=DYNAMIC)
        torch._inductor.aoti_compile_and_package(program, package_path=package)
        loaded = torch._inductor.aoti_load_package(package)
        x = data_of((11, 24))
        assert torch.equal(loaded(x), model(x))
        torch.save((x, model(x)), tmp_path / "data.pt")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    subprocess.run([sys.executable, "-c", ALONE, _ops.library.path, package, str(tmp_path / "data.pt")], check=True,
                   env=environment, cwd=tmp_path)
