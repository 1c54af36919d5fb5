"""pip install of what was built, and a stranger's first program: five lines, in a process that sees nothing else."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import normc
import pytest

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
    assert str(target) in ran.stdout and "1 norm runs on normc" in ran.stdout
    assert "compiled mine:forward@f32[*x40]" in ran.stderr
    files = [f for f in (tmp_path / "cache").rglob("*") if f.is_file()]
    assert {f.suffix for f in files} == {".npk", ".norm"}
    for package, linked in ("normc", "nlohmann-json3-dev"), ("normc_compiler", "llvm-22-dev"):
        texts = {f.name: f.read_text() for f in (target / package / "licenses").iterdir()}
        assert texts["LICENSE"] == (ROOT / "LICENSE").read_text() and texts["NOTICE"] == (ROOT / "NOTICE").read_text()
        assert "license" in texts[f"{linked}.txt"].lower()


def wheel_script():
    spec = importlib.util.spec_from_file_location("wheel", ROOT / "runtime/hosts/wheel.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_build_takes_the_headers_of_a_python_that_has_a_host(tmp_path, monkeypatch):
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\nexit 1\n")
    bare.chmod(0o755)
    # What pip puts before the packages that are installed, so that a build does not see them.
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.path.clear()\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    wheel = wheel_script()
    assert wheel.host_python([str(tmp_path / "absent"), str(bare), sys.executable]) == sys.executable
    with pytest.raises(RuntimeError, match=r"none of \S*python has torch or jax; install one first \(pip install torch"):
        wheel.host_python([str(bare)])


def test_a_missing_library_says_how_to_get_it(tmp_path):
    shutil.copytree(pathlib.Path(normc.__file__).parent, tmp_path / "normc", ignore=shutil.ignore_patterns("*.so*", "*.npk"))
    ran = subprocess.run([sys.executable, "-c", "import normc.torch"], env={**os.environ, "PYTHONPATH": str(tmp_path)},
                         capture_output=True, text=True)
    assert "has no libnormc_torch.so: the host was not there, or was too old, when normc was built; install it, then normc again" in ran.stderr
