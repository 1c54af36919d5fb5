"""Calls whose tensors have more than 2^31 elements: offsets of elements take 64 bits, and those of bytes too."""

import pathlib
import re

import normc.torch as nt
import pytest
import torch

pytestmark = pytest.mark.rest
FEATURES = 1024
ROWS = (1 << 31) // FEATURES + 5  # in bf16 a tensor has 4 GiB
TAIL = 9  # rows on both sides of element 2^31


@pytest.fixture(autouse=True)
def room():
    available = re.search(r"MemAvailable: *(\d+) kB", pathlib.Path("/proc/meminfo").read_text())
    if available is None or int(available[1]) < 18 << 20:
        pytest.skip("this machine has no 18 GiB of free memory")


def rows(seed):
    """Returns rows of zeros whose last ones are not."""
    x = torch.zeros((ROWS, FEATURES), dtype=torch.bfloat16)
    x[-TAIL:] = torch.randn(TAIL, FEATURES, generator=torch.Generator().manual_seed(seed)).bfloat16()
    return x


def close(value, expected):
    torch.testing.assert_close(value, expected, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("make", [nt.LayerNorm, nt.RMSNorm])
def test_rows_beyond_2_31_elements_are_those_of_a_small_call(make):
    module = make(FEATURES).bfloat16()
    x = rows(3)
    with torch.no_grad():
        y = module(x)
    small = x[-TAIL:].clone().requires_grad_()
    of_small = module(small)
    close(y[-TAIL:], of_small)
    assert not y[:TAIL].any()
    del y
    # The gradients of rows that come before are zero, so those of the parameters are of these rows alone.
    dy = rows(5)
    of_small.backward(dy[-TAIL:])
    expected = [p.grad.clone() for p in module.parameters()]
    module.zero_grad()
    x.requires_grad_()
    module(x).backward(dy)
    close(x.grad[-TAIL:], small.grad)
    assert not x.grad[:TAIL].any()
    for parameter, grad in zip(module.parameters(), expected):
        close(parameter.grad, grad)


def test_statistics_of_features_count_rows_beyond_2_31_elements():
    x = torch.zeros((ROWS, FEATURES), dtype=torch.bfloat16)
    x[-TAIL:] = 64
    module = nt.BatchNorm1d(FEATURES).bfloat16()
    with torch.no_grad():
        y = module(x)
    mean = TAIL * 64 / ROWS
    variance = TAIL * 64**2 / ROWS - mean**2
    expected = torch.tensor([-mean, 64 - mean], dtype=torch.float64) / (variance + module.eps) ** 0.5
    for row, value in ((0, expected[0]), (ROWS // 2, expected[0]), (ROWS - TAIL, expected[1]), (ROWS - 1, expected[1])):
        torch.testing.assert_close(y[row].double(), value.expand(FEATURES), rtol=0.01, atol=1e-5)


def test_channels_beyond_2_31_elements_have_their_own_statistics():
    length = (1 << 29) + 24
    x = torch.zeros((2, 2, length), dtype=torch.bfloat16)
    x[1, 1, -TAIL:] = 64
    module = nt.BatchNorm1d(2).bfloat16()
    with torch.no_grad():
        y = module(x)
    mean = TAIL * 64 / (2 * length)
    variance = TAIL * 64**2 / (2 * length) - mean**2
    peak = (64 - mean) / (variance + module.eps) ** 0.5
    torch.testing.assert_close(y[1, 1, -TAIL:].double(), torch.full((TAIL,), peak, dtype=torch.float64), rtol=0.01, atol=0)
    assert not y[:, 0].any()
