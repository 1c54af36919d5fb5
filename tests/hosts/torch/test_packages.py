"""Packages: those that are built in hold all instruction sets in one file, and the cache of what is compiled."""

import logging
import os
import pathlib
import shutil
import subprocess
import sys

import normc
import normc.torch as nt
import pytest
import torch

from kit import data_of

COMPILE = pathlib.Path(__file__).parents[3] / "runtime" / "hosts" / "compile-packages"


def test_a_file_that_is_built_in_has_all_instruction_sets(tmp_path):
    """The runtime chooses the newest set among the kernels of one package."""
    said = tmp_path / "said"
    fake = tmp_path / "normc"
    fake.write_text(f'#!/bin/sh\necho "$@" >>{said}\n')
    fake.chmod(0o755)
    subprocess.run([COMPILE, fake, tmp_path / "packages", "--wide", "x86-64-v3", "x86-64-v4"], check=True)
    lines = [line.split() for line in said.read_text().splitlines()]
    targets = [line[line.index("--target") + 1] for line in lines]
    assert set(targets) == {"x86-64-v3,x86-64-v4", "sm_80,sm_90,sm_100"}
    files = [line[line.index("-o") + 1] for line in lines]
    assert len(set(files)) == len(files)
    channels_last = [line for line in lines if "batch_norm_unbiased" in line and "--segmented" in line]
    assert {entry for line in channels_last for entry in line[line.index("--entry") + 1].split(",")} == {
        "forward", "backward", "infer", "infer_backward", "forward_reduce", "forward_apply", "backward_reduce",
        "backward_apply"}


def test_batch_norm_of_channels_last_needs_no_compiler():
    x = data_of((2, 37, 3, 2)).to(memory_format=torch.channels_last).requires_grad_()
    normc.compiler("")
    try:
        module = nt.BatchNorm2d(37)
        module(x).sum().backward()
        module.eval()(x).sum().backward()
    finally:
        normc.compiler(os.environ["NORMC_TEST_COMPILER"], os.environ["NORMC_TEST_CACHE"])


def cached(tmp_path):
    return list((tmp_path / "cache").rglob("*.npk"))


def test_the_cache_names_the_instruction_set(empty_cache, tmp_path):
    nt.LayerNorm(41)(data_of((2, 41)))
    (file,) = cached(tmp_path)
    facts = subprocess.run([os.environ["NORMC_TEST_COMPILER"], "inspect", file], check=True, capture_output=True, text=True)
    assert file.parent.name in facts.stdout


@pytest.mark.parametrize("damage", [lambda whole: whole[: len(whole) // 2], lambda whole: whole[:-1] + bytes([whole[-1] ^ 1])])
def test_a_damaged_file_of_the_cache_is_compiled_again(tmp_path, damage):
    program = os.environ["NORMC_TEST_COMPILER"]
    norm = "import normc, torch, normc.torch as nt; normc.compiler(%r, %r); print(nt.LayerNorm(43)(torch.ones(2, 43)).sum())"
    words = [sys.executable, "-c", norm % (program, str(tmp_path / "cache"))]
    subprocess.run(words, check=True)
    (file,) = cached(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    subprocess.run(words, check=True)
    assert file.read_bytes() == whole


def test_built_in_packages_are_opened_again_after_an_error(tmp_path):
    """The first call finds one of them damaged; the second finds all whole."""
    shutil.copytree(pathlib.Path(normc.__file__).parent, tmp_path / "normc")
    last = max((tmp_path / "normc" / "packages").glob("*.npk"))
    whole = last.read_bytes()
    last.write_bytes(whole[: len(whole) // 2])
    program = """
import pathlib, sys, normc, torch, normc.torch as nt
layer = nt.LayerNorm(24)
try:
    layer(torch.ones(2, 24))
except RuntimeError as error:
    print(error)
pathlib.Path(sys.argv[1]).write_bytes(pathlib.Path(sys.argv[2]).read_bytes())
print(layer(torch.ones(2, 24)).shape)
"""
    (tmp_path / "whole").write_bytes(whole)
    ran = subprocess.run([sys.executable, "-c", program, last, tmp_path / "whole"], capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert ran.returncode == 0, ran.stderr
    assert last.name in ran.stdout and "torch.Size([2, 24])" in ran.stdout


def test_a_compiler_is_found_in_the_path(empty_cache, tmp_path, monkeypatch, caplog):
    program = pathlib.Path(os.environ["NORMC_TEST_COMPILER"])
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    normc.compiler(program.name, str(tmp_path / "cache"))
    with caplog.at_level(logging.INFO, logger="normc"):
        nt.LayerNorm(47)(data_of((2, 47)))
    assert "compiled layer_norm" in caplog.text


def test_a_failed_compilation_is_a_warning_once_for_each_reason(empty_cache, tmp_path, caplog):
    """A kernel for any number of features serves these calls."""
    with caplog.at_level(logging.INFO, logger="normc"):
        for program, sizes in (("none", (61, 67)), ("nothing", (71, 73))):
            normc.compiler(str(tmp_path / program), str(tmp_path / "cache"))
            for features in sizes:
                nt.LayerNorm(features)(data_of((2, features)))
    said = [f"could not compile layer_norm:forward@f32[*x{{}}]: cannot start {tmp_path / name}: No such file or directory"
            for name in ("none", "nothing")]
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", said[0].format(61)), ("INFO", said[0].format(67)),
        ("WARNING", said[1].format(71)), ("INFO", said[1].format(73))]


def test_a_log_may_call_a_norm(empty_cache):
    found = []

    class Handler(logging.Handler):
        def emit(self, record):
            found.append(nt.LayerNorm(53)(data_of((2, 53))))

    handler = Handler(logging.INFO)
    log = logging.getLogger("normc")
    log.addHandler(handler)
    before = log.level
    log.setLevel(logging.INFO)
    try:
        nt.LayerNorm(59)(data_of((2, 59)))
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
    assert found[0].shape == (2, 53)


def test_an_error_of_the_compiler_is_said_each_time():
    for _ in range(2):
        with pytest.raises(RuntimeError, match="did you mean 'layer_norm'"):
            nt.functional.norm("layer_nrm[*x8]", data_of((2, 8)))


def test_a_norm_whose_file_was_not_added_is_named():
    with pytest.raises(RuntimeError, match="this process was not given the file of the norm, 0123abcd; add it"):
        nt.functional.norm("mine#0123abcd[*x8]", data_of((2, 8)))


def test_a_norm_is_compiled_after_its_file_is_added(tmp_path):
    file = tmp_path / "late.norm"
    file.write_text("norm late {\n  reduce features\n}\n")
    program = os.environ["NORMC_TEST_COMPILER"]
    told = "import normc, normc.torch as nt; normc.compiler(%r, %r); print(nt.norm(%r, 8).text)"
    text = subprocess.run([sys.executable, "-c", told % (program, str(tmp_path), str(file))], check=True, text=True,
                          capture_output=True).stdout.strip()
    with pytest.raises(RuntimeError, match="add it before the call"):
        nt.functional.norm(text, data_of((2, 8)))
    nt.norm(file, 8)
    assert nt.functional.norm(text, data_of((2, 8))).shape == (2, 8)
