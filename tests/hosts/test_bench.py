"""The programs of bench/ in Python: what peers compute and record, and where a grid of schedules goes."""

import argparse
import pathlib
import sys
import types

import torch

BENCH = pathlib.Path(__file__).parents[2] / "bench"
sys.path[:0] = [str(BENCH / "cpu"), str(BENCH / "gpu")]

import grid  # noqa: E402
import peers  # noqa: E402
import torch_peer  # noqa: E402


def test_backward_of_a_residual_stream_reads_two_gradients():
    command = {"norm": "rms_norm_residual", "entry": "backward", "compiled": False, "epsilon": 1e-6}
    command.update(segments=1, rows=5, features=8)
    x, dy, scale = torch.randn(5, 8), torch.randn(5, 8), torch.ones(8)
    with torch.no_grad():
        dx, dresidual, _ = torch_peer.around(command, x, dy, scale, torch.zeros(8))()
    residual, dstream = (torch_peer.tensor(name, x.shape, x.dtype) for name in ("residual", "dstream"))
    stream = (x + residual).requires_grad_()
    y = torch.nn.functional.rms_norm(stream, (8,), scale, 1e-6)
    wanted = torch.autograd.grad(y, stream, dy)[0] + dstream
    torch.testing.assert_close(dx, wanted)
    torch.testing.assert_close(dresidual, wanted)


def test_the_norms_of_a_race_share_their_tensors():
    own = {"scale", "bias", "mean", "var"}
    names = {"x", "dy", "dstream", *(name for _, names in torch_peer.AROUND.values() for name in names)} - own
    assert len(names) <= torch_peer.tensor.cache_info().maxsize


def torch_of(version):
    properties = types.SimpleNamespace(L2_cache_size=1)
    cuda = types.SimpleNamespace(
        is_available=lambda: True, Stream=lambda: None, get_device_properties=lambda _: properties
    )
    backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: 91900))
    nn = types.SimpleNamespace(functional=None)
    return types.SimpleNamespace(__version__=version, cuda=cuda, backends=backends, nn=nn)


def test_peers_record_the_pytorch_that_a_later_run_finds(monkeypatch, tmp_path):
    shapes, out = tmp_path / "shapes.txt", tmp_path / "peers.jsonl"
    shapes.touch()
    for name in ("signal", "setitimer"):
        monkeypatch.setattr(peers.signal, name, lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["peers.py", str(shapes), str(out)])

    def versions(found):
        monkeypatch.setitem(sys.modules, "torch", found)
        assert peers.main() == 0
        return [record.get("version") for record in peers.records_of(out.read_text())]

    assert versions(None) == [None]
    with out.open("a") as file:
        file.write('{"kind": "ben')  # a run that was killed
    assert versions(torch_of("2.11")) == [None, "2.11"]
    assert versions(torch_of("2.11")) == [None, "2.11"]
    assert versions(torch_of("2.12")) == [None, "2.11", "2.12"]


def test_bundles_of_problems_with_other_options_are_apart(monkeypatch, tmp_path):
    folders = []

    def run(command, **_):
        folders.append(pathlib.Path(command[command.index("-o") + 1]).name)
        return types.SimpleNamespace(returncode=0)

    monkeypatch.setattr(grid.subprocess, "run", run)
    arguments = argparse.Namespace(folder=tmp_path, elements=64, normc="normc", knob=[], most=1, print=False)
    for options in ("", "{params=bf16}", "{params=bf16, round=normalized}"):
        grid.bundle(arguments, f"rms_norm:forward@bf16[*x256]{options}")
    name = "rms_norm-forward-bf16-256-64"
    assert folders == [name, f"{name}-params-bf16", f"{name}-params-bf16-round-normalized"]
