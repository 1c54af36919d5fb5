"""Tests run the kernels of the package, but those that ask for `compiler` or `compiled_once`."""

import os

import normc
import pytest


@pytest.fixture(autouse=True, scope="session")
def compiled_at_first_use():
    normc.compiler("")


def compiled(cache):
    normc.compiler(os.environ["NORMC_TEST_COMPILER"], str(cache))
    yield
    normc.compiler("")


@pytest.fixture
def compiler(tmp_path_factory):
    """Compiles what the package lacks at its first use."""
    yield from compiled(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def compiled_once(compiled_at_first_use, tmp_path_factory):
    """`compiler` for all tests of a file, which share its cache."""
    yield from compiled(tmp_path_factory.mktemp("cache"))
