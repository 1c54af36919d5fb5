"""Threads and processes: workers that fork or spawn, torch's number of threads, several Python threads at once."""

import os
import subprocess
import sys
import threading

import normc.torch as nt
import pytest
import torch

from kit import data_of


class Normalized(torch.utils.data.Dataset):
    """Data that a worker normalizes."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        with torch.no_grad():
            return nt.LayerNorm(64)(data_of((300, 64), seed=index))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_run_a_norm(method):
    wanted = [Normalized()[index] for index in range(8)]  # the parent has used its threads before
    loader = torch.utils.data.DataLoader(Normalized(), batch_size=None, num_workers=2, multiprocessing_context=method)
    for a, b in zip(loader, wanted, strict=True):  # a spawned worker has no compiler here, so another kernel
        assert torch.equal(a, b) if method == "fork" else (a - b).abs().max() < 1e-5


def test_a_process_that_ignores_its_children_gets_what_was_compiled_or_the_reason(tmp_path):
    program = """
import signal, sys, normc, torch, normc.torch as nt
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
normc.compiler(sys.argv[1], sys.argv[2])
print(nt.GroupNorm(3, 24)(torch.ones(2, 24, 5)).shape)
try:
    nt.functional.norm("layer_nrm[*x8]", torch.ones(2, 8))
except RuntimeError as error:
    print(error)
normc.compiler("/bin/true", sys.argv[2] + "/empty")
try:
    nt.GroupNorm(5, 40)(torch.ones(2, 40, 5))
except RuntimeError as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", program, os.environ["NORMC_TEST_COMPILER"], tmp_path],
                         capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "torch.Size([2, 24, 5])" in ran.stdout and "did you mean 'layer_norm'" in ran.stdout
    assert "/bin/true ended with an exit code that this process did not get, and said nothing" in ran.stdout


def result(norm, x):
    x = x.clone().requires_grad_()
    y = norm(x)
    y.square().sum().backward()
    found = [y.detach(), x.grad, norm.weight.grad.clone()]
    norm.zero_grad()
    return found


def test_any_number_of_threads_gives_the_same_bits():
    norm, x = nt.LayerNorm(64), data_of((3000, 64))
    before = torch.get_num_threads()
    try:
        found = []
        for count in (1, 2, 3, before):
            torch.set_num_threads(count)
            found.append(result(norm, x))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for other in found[1:] for a, b in zip(found[0], other))


def test_python_threads_at_once():
    wanted = {width: result(nt.LayerNorm(width), data_of((500, width))) for width in (24, 40, 56)}
    wrong = []

    def work(width):
        for _ in range(20):
            if not all(torch.equal(a, b) for a, b in zip(result(nt.LayerNorm(width), data_of((500, width))), wanted[width])):
                wrong.append(width)

    threads = [threading.Thread(target=work, args=(width,)) for width in wanted for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong


def test_python_threads_compile_one_problem_once(caplog, empty_cache):
    import logging

    x = data_of((5, 88))
    with caplog.at_level(logging.INFO, logger="normc"), torch.no_grad():
        threads = [threading.Thread(target=lambda: nt.RMSNorm(88)(x)) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    assert len([line for line in caplog.messages if "rms_norm:forward@f32[*x88]" in line]) == 1
