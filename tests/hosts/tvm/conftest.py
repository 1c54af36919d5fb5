"""Tests run the kernels of the package alone."""

import normc
import pytest


@pytest.fixture(autouse=True, scope="session")
def compiled_at_first_use():
    normc.compiler("")
