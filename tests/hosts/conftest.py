"""Every test file compiles what the package lacks into a cache of its own."""

import os

import pytest

import normc


@pytest.fixture(autouse=True, scope="session")
def compiled_at_first_use(tmp_path_factory):
    normc.compiler(os.environ["NORMC_TEST_COMPILER"], str(tmp_path_factory.mktemp("cache")))
