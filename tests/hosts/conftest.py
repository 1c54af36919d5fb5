"""What the package lacks is compiled at its first use. All files of tests share a cache of the compiler that is
tested: it is named by the program's size and time, and caches of other builds are removed."""

import os
import pathlib
import shutil
import subprocess

import pytest

import normc


def pytest_configure(config):
    config.addinivalue_line("markers", "inductor: takes a C++ compiler long; of the oldest torch a part of the rest")
    config.addinivalue_line("markers", "rest: what a sample leaves out; scripts/test --all runs it")


@pytest.fixture(autouse=True, scope="session")
def compiled_at_first_use():
    program = pathlib.Path(os.environ["NORMC_TEST_COMPILER"])
    facts = program.stat()
    caches = program.parents[1] / "host-tests"
    cache = caches / f"{facts.st_size}-{facts.st_mtime_ns}"
    cache.mkdir(parents=True, exist_ok=True)
    for other in caches.iterdir():
        if other != cache:
            shutil.rmtree(other, ignore_errors=True)
    os.environ["NORMC_TEST_CACHE"] = str(cache)
    normc.compiler(str(program), str(cache))


@pytest.fixture(scope="session")
def cuda_kernels(compiled_at_first_use, tmp_path_factory):
    """Adds packages for the CUDA device, whose norms are not compiled at first use: those of the folder
    NORMC_TEST_CUDA_PACKAGES, or else of the compiler that is tested."""
    folder = os.environ.get("NORMC_TEST_CUDA_PACKAGES")
    if folder is None:
        cache = os.environ.get("NORMC_TEST_CACHE") or tmp_path_factory.mktemp("cache")
        capability = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], check=True, text=True,
                                    capture_output=True).stdout.split()[0]
        folder = f"{cache}/cuda"
        if not os.path.exists(f"{folder}/complete"):
            program = pathlib.Path(__file__).parent / "compile-cuda"
            subprocess.run([program, os.environ["NORMC_TEST_COMPILER"], folder, "sm_" + capability.replace(".", "")], check=True)
            pathlib.Path(folder, "complete").touch()
    for package in sorted(pathlib.Path(folder).glob("*.npk")):
        normc._library._set("add_package", "", str(package))  # an empty source: norms that are built in


@pytest.fixture
def empty_cache(tmp_path):
    """For tests that count compilations: an earlier run may have filled the shared cache."""
    program = os.environ["NORMC_TEST_COMPILER"]
    normc.compiler(program, str(tmp_path / "cache"))
    yield
    normc.compiler(program, os.environ["NORMC_TEST_CACHE"])


@pytest.fixture
def no_compiler():
    """For tests of what the packages alone serve."""
    normc.compiler("")
    yield
    normc.compiler(os.environ["NORMC_TEST_COMPILER"], os.environ["NORMC_TEST_CACHE"])
