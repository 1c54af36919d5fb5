"""pip install of what was built, and a stranger's first program: five lines, in a process that sees nothing else."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

PROGRAM = """
import logging, torch
logging.basicConfig(level=logging.INFO)
import normc.torch as nt
model = torch.nn.Sequential(torch.nn.Linear(8, 40), torch.nn.LayerNorm(40), nt.norm("my.norm", 40))
print(nt.replace(model))
model(torch.randn(4, 8)).sum().backward()
print(nt.__file__)
"""
NORM = "norm mine {\n  reduce features\n  affine scale\n  activation silu\n}\n"


def test_a_stranger_installs_and_trains(tmp_path):
    target = tmp_path / "site"
    environment = {**os.environ, "PYTHONPATH": "", "NORMC_WHEEL_BUILT": "1"}
    packages = [str(ROOT), str(ROOT / "runtime/hosts/compiler")]
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target", target, *packages],
                   env=environment, check=True)
    (tmp_path / "my.norm").write_text(NORM)
    environment.update(PYTHONPATH=str(target), XDG_CACHE_HOME=str(tmp_path / "cache"))
    ran = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, cwd=tmp_path, check=True,
                         capture_output=True, text=True)
    assert str(target) in ran.stdout and "1 norms run on normc" in ran.stdout
    assert "compiled mine:forward@f32[*x40]" in ran.stderr
    files = [f for f in (tmp_path / "cache").rglob("*") if f.is_file()]
    assert {f.suffix for f in files} == {".npk", ".norm"}
