"""Tests run the kernels of the package, but those that ask for `compiler`."""

import os

import normc
import pytest


@pytest.fixture(autouse=True, scope="session")
def compiled_at_first_use():
    normc.compiler("")


@pytest.fixture
def compiler(tmp_path_factory):
    """Compiles what the package lacks at its first use."""
    normc.compiler(os.environ["NORMC_TEST_COMPILER"], str(tmp_path_factory.mktemp("cache")))
    yield
    normc.compiler("")
