"""Norm: masks, texts of the user, layouts, and what errors say."""

import hashlib
import os
import pickle
import subprocess
import sys

import normc
import normc.torch as nt
import pytest
import torch

from kit import data_of

MINE = """
norm mine {
  reduce    features
  center    none
  moment    raw
  divide_by current
  backward  exact
  affine    scale
  activation silu
  epsilon   1e-3
}
"""


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.norm"
    path.write_text(MINE)
    return path


def expected(x, weight, eps=1e-3):
    return torch.nn.functional.silu(x * (x.square().mean(-1, keepdim=True) + eps).rsqrt() * weight)


def test_a_text_of_the_user(mine):
    norm = nt.norm(mine, 48)
    x = data_of((5, 48)).requires_grad_()
    with torch.no_grad():
        norm.weight.normal_()
    y = norm(x)
    y.square().sum().backward()
    other = x.detach().clone().requires_grad_()
    weight = norm.weight.detach().clone().requires_grad_()
    z = expected(other, weight)
    z.square().sum().backward()
    for a, b in ((y, z), (x.grad, other.grad), (norm.weight.grad, weight.grad)):
        assert (a - b).abs().max() <= 1e-4 * b.abs().max()
    assert norm.bias is None and "mine#" in repr(norm)


def test_a_pickle_finds_its_text_in_the_cache(mine):
    norm, text = nt.norm(mine, 48), MINE.replace("1e-3", "3.0").encode()
    other = hashlib.sha256(text).hexdigest()[:12]  # of a norm that another process added
    normc._library._kept(other, text)
    pickled = pickle.dumps(norm).replace(norm.text.split("#")[1][:12].encode(), other.encode())
    loaded, x = pickle.loads(pickled), data_of((5, 48))
    assert other in loaded.text and (loaded(x) - expected(x, 1.0, 3.0)).abs().max() < 1e-5


def test_a_pickle_whose_text_is_not_in_the_cache(mine):
    pickled = pickle.dumps(nt.norm(mine, 48))
    loaded = pickle.loads(pickled.replace(hashlib.sha256(MINE.encode()).hexdigest()[:12].encode(), b"0123456789ab"))
    with pytest.raises(RuntimeError, match="0123456789ab"):
        loaded(data_of((5, 48)))


def test_numbers_of_a_text_of_the_user(mine):
    norm = nt.norm(mine, 48, numbers={"epsilon": 2.0})
    x = data_of((5, 48))
    assert (norm(x) - expected(x, 1.0, 2.0)).abs().max() < 1e-5


def test_a_text_of_the_user_is_compiled_into_graphs(mine):
    norm = nt.norm(mine, 48)
    x = data_of((5, 48)).requires_grad_()
    assert torch.equal(torch.compile(norm, backend="aot_eager", fullgraph=True)(x), norm(x))


def test_a_file_that_changed_is_another_norm(mine):
    first = nt.norm(mine, 48)
    mine.write_text(MINE.replace("1e-3", "1.0"))
    second = nt.norm(mine, 48)
    x = data_of((5, 48))
    assert first.text != second.text
    assert (first(x) - expected(x, 1.0)).abs().max() < 1e-5 and (second(x) - expected(x, 1.0, 1.0)).abs().max() < 1e-5


@pytest.mark.parametrize("affine", [True, False])
def test_a_module_begins_with_a_factor_of_one(affine):
    x = data_of((5, 24))
    for name in ("gemma_rms_norm", "rms_norm"):
        norm = nt.Norm(name, 24, affine=affine, numbers={"epsilon": 1e-5})
        assert (norm(x) - nt.RMSNorm(24, eps=1e-5)(x)).abs().max() < 1e-5


@pytest.mark.parametrize("make", [
    lambda device: nt.Norm("gemma_rms_norm", 24, device=device),
    lambda device: nt.Norm("layer_norm", 24, device=device),
    lambda device: nt.Norm("rms_norm", 24, affine=False, device=device),
    lambda device: nt.PowerNormV(24, device=device),
    lambda device: nt.PowerNorm(24, heads=4, device=device),
    lambda device: nt.PowerNorm(24, commit="step", device=device),
], ids=["gemma_rms_norm", "layer_norm", "without affine", "power_norm_v", "power_norm_released", "power_norm"])
def test_parameters_and_state_begin_again(make):
    new, other = make(None), make("meta").to_empty(device="cpu")
    for tensor in (*other.parameters(), *other.buffers()):
        tensor.data.fill_(7)
    other.reset_parameters()
    mine, theirs = ({**dict(norm.named_parameters()), **dict(norm.named_buffers())} for norm in (other, new))
    assert mine.keys() == theirs.keys() and all(torch.equal(mine[name], theirs[name]) for name in theirs)
    new(data_of((5, 24)).requires_grad_()).sum().backward()
    other(data_of((5, 24)).requires_grad_()).sum().backward()
    assert all(torch.equal(a, b) for a, b in zip(other.buffers(), new.buffers()))


def test_rows_that_a_mask_leaves_out():
    norm = nt.Norm("power_norm_released", 24, options={"heads": 4}, numbers={"warmup_steps": 3.0})
    other = nt.PowerNorm(24, heads=4, warmup_iters=3)
    x = data_of((3, 5, 24))
    mask = torch.arange(5) < torch.tensor([[5], [3], [4]])
    norm(x.clone().requires_grad_(), mask).sum().backward()
    other(x[mask].requires_grad_()).sum().backward()
    assert (norm.psi2 - other.psi2).abs().max() < 1e-6 and norm.step == 1


def test_a_mask_without_a_real_row_changes_nothing():
    norm = nt.PowerNorm(24, heads=4)
    norm(data_of((6, 24)).requires_grad_(), torch.zeros(6, dtype=torch.bool)).sum().backward()
    assert norm.step == 0 and torch.equal(norm.psi2, torch.ones(24)) and norm.nu.isfinite().all()


def test_a_masked_row_is_zero():
    x, mask = data_of((4, 24)), torch.tensor([True, False, True, True])
    y = nt.Norm("layer_norm", 24)(x, mask)
    assert torch.equal(y[mask], nt.LayerNorm(24)(x[mask])) and not y[1].any()


def test_a_norm_takes_as_many_dimensions_as_the_runtime():
    ones, said = (1,) * 15, "a tensor has 17 dimensions; a norm takes at most 16"
    x = data_of((3, 24))
    assert torch.equal(nt.LayerNorm(24)(x.reshape(*ones[:14], 3, 24)).reshape(3, 24), nt.LayerNorm(24)(x))
    with pytest.raises(RuntimeError, match=said):
        nt.LayerNorm(24)(x.reshape(*ones, 3, 24))
    with pytest.raises(RuntimeError, match=said):
        nt.Norm("layer_norm", 24)(x, torch.ones(3, dtype=torch.bool).reshape(*ones, 1, 3))


def test_a_refusal_is_that_of_a_package_that_has_the_entry(no_compiler):
    with pytest.raises(RuntimeError, match=r"no kernel serves power_norm:forward@f32\[\*x\*x64\]") as refused:
        nt.Norm("power_norm", 64, layout="segments")(data_of((2, 3, 64)))
    assert "has no forward of" not in str(refused.value)


def test_layouts_are_the_same_norm():
    x = data_of((2, 5, 6, 64))
    last = nt.Norm("group_norm_segment", 64, options={"groups": 32}, layout="segments")
    first = nt.Norm("group_norm_segment", 64, options={"groups": 32}, layout="channels_first")
    assert (last(x) - first(x.permute(0, 3, 1, 2).contiguous()).permute(0, 2, 3, 1)).abs().max() < 1e-5


@pytest.mark.parametrize("call, error, said", [
    (lambda: nt.Norm("layer_norm", 24, numbers={"epsilo": 1}), ValueError, "no number epsilo; it has .*epsilon"),
    (lambda: nt.Norm("layer_norm", 24, layout="nhwc"), ValueError, "layout is 'nhwc'; known are 'features_last'"),
    (lambda: nt.Norm("layer_norm", 24, commit="never"), ValueError, "commit is 'never'; known are 'backward'"),
    (lambda: nt.functional.norm("rms_norm[*x8] epsilom=3", data_of((2, 8))), Exception, "rms_norm has no number epsilom; it has epsilon"),
    (lambda: nt.Norm("layer_nrom", 24), RuntimeError, "layer_nrom"),
    (lambda: nt.Norm("layer_norm", 0), RuntimeError, "features is '0'"),
    (lambda: nt.Norm("mine.norm", 24), ValueError, "mine.norm is a file, and a norm is named here; normc.torch.norm and"),
    (lambda: nt.Norm("group_norm_segment", 64, options={"groups": 32}), ValueError,
     'group_norm_segment needs segments; give layout="segments"'),
    (lambda: nt.Norm("rms_norm", 24, numbers={"epsilon": 1e-42}), Exception, "statistics are f32, so it must be"),
    (lambda: nt.Norm("rms_norm_residual", 24)(data_of((4, 24)), residual=0.5), TypeError, "residual is 0.5; give a tensor"),
    (lambda: nt.PowerNorm(24)(data_of((3, 23))), (RuntimeError, ValueError), r"\[3, 23\]; power_norm takes \[..., 24\]"),
    (lambda: nt.PowerNorm(24)(data_of((4, 8, 3))), RuntimeError, r"\[4, 8, 3\]; power_norm takes \[..., 24\]"),
    (lambda: nt.PowerNorm(24)(torch.tensor(1.0)), RuntimeError, r"the shape \[\]; power_norm takes \[..., 24\]"),
    (lambda: nt.Norm("layer_norm", 24, layout="segments")(data_of((4, 5, 8, 3))), RuntimeError,
     r"\[4, 5, 8, 3\]; layer_norm takes \[batch, positions..., 24\]"),
    (lambda: nt.Norm("rms_norm_residual", 24)(data_of((4, 8, 3)), residual=data_of((4, 8, 3))), RuntimeError,
     r"\[4, 8, 3\]; rms_norm_residual takes \[..., 24\]"),
    (lambda: nt.PowerNorm(24, heads=4)(data_of((3, 24)), torch.ones(4, dtype=torch.bool)), RuntimeError, "mask"),
    (lambda: nt.PowerNorm(24, heads=5)(data_of((3, 24))), RuntimeError, "heads"),
    (lambda: nt.PowerNorm(24, heads=0), ValueError, "heads is 0; it must be at least 1"),
    (lambda: nt.BatchNorm1d(24, momentum=1.5)(data_of((4, 24))), ValueError,
     "the momentum is 1.5; normc takes one from 0 to 1"),
    (lambda: nt.PowerNorm(24)(data_of((3, 24)).int()), Exception, "float32"),
])
def test_refuses_wrong_arguments(call, error, said):
    with pytest.raises(error, match=said):
        call()


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"^no file 'rms_norm'; norm\(\) reads a .norm file, "
                                                r"Norm\('rms_norm', features\) takes a built-in norm$"):
        nt.norm("rms_norm", 64)
    with pytest.raises(FileNotFoundError, match="No such file or directory: .*none.norm"):
        nt.norm(tmp_path / "none.norm", 64)


def test_a_file_that_is_no_norm(tmp_path):
    (tmp_path / "wrong.norm").write_text("# nothing\n")
    with pytest.raises(normc.Error, match="defines no norm"):
        nt.norm(tmp_path / "wrong.norm", 24)
    (tmp_path / "wrong.norm").write_text(MINE.replace("current", "curent"))
    with pytest.raises(RuntimeError, match=rf"{tmp_path}/wrong.norm:6:13: error: .*curent"):
        nt.norm(tmp_path / "wrong.norm", 24)


def test_a_text_that_needs_f64(tmp_path):
    (tmp_path / "tiny.norm").write_text(MINE.replace("1e-3", "1e-42"))
    with pytest.raises(normc.Error, match=r"f32 holds no number so small .*\[P8\]"):
        nt.norm(tmp_path / "tiny.norm", 24)
    x = 1e-20 * data_of((3, 24), torch.float64)
    made = nt.norm(tmp_path / "tiny.norm", 24, dtype=torch.float64)
    by_number = nt.Norm("rms_norm", 24, numbers={"epsilon": 1e-42}, dtype=torch.float64)
    assert (made(x) - expected(x, made.weight, 1e-42)).abs().max() < 1e-12
    assert (by_number(x) - torch.nn.functional.rms_norm(x, (24,), None, 1e-42)).abs().max() < 1e-12


ALONE = """
import sys, torch, normc, normc.torch as nt
x = torch.randn(3, 40)
assert (nt.LayerNorm(40)(x) - torch.nn.functional.layer_norm(x, (40,))).abs().max() < 1e-5
try:
    nt.norm(sys.argv[1], 48)
except RuntimeError as error:
    print(error)
"""


def test_without_a_compiler(mine, tmp_path):
    out = subprocess.run([sys.executable, "-c", ALONE, str(mine)], check=True, text=True, capture_output=True,
                         env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)}).stdout
    assert "no kernel serves mine:" in out and "install normc-compiler" in out


def test_compiling_is_off(mine, no_compiler):
    with pytest.raises(normc.Error, match=r'(?s)no kernel serves mine:.*; compiling is off: normc.compiler\(""\) was called$'):
        nt.norm(mine, 50)


def test_a_compilation_is_said_once(caplog, mine, empty_cache):
    import logging

    with caplog.at_level(logging.INFO, logger="normc"):
        norm = nt.norm(mine, 56)
        for _ in range(2):
            norm(data_of((5, 56)))
    lines = [line for line in caplog.messages if "mine:forward@f32[*x56]" in line]
    assert len(lines) == 1 and lines[0].startswith("compiled ")


@pytest.mark.parametrize("script, text", [
    ("exit 3", "ended with exit code 3, and said nothing"),
    ("kill -9 $$", "was ended by signal 9, and said nothing"),
    ("echo no space; exit 1", "no space"),
    ("exit 0", "succeeded, and there is no "),
])
def test_a_compiler_that_fails_is_an_error(mine, tmp_path, empty_cache, script, text):
    program = tmp_path / "failing"
    program.write_text("#!/bin/sh\n" + script + "\n")
    program.chmod(0o755)
    normc.compiler(str(program), str(tmp_path / "cache"))
    with pytest.raises(RuntimeError, match="no kernel serves mine:") as error:
        nt.norm(mine, 72)
    assert text in str(error.value)


def test_a_compiler_that_is_not_there_is_an_error(mine, tmp_path, empty_cache):
    normc.compiler(str(tmp_path / "none"), str(tmp_path / "cache"))
    with pytest.raises(RuntimeError, match="cannot start .*none: No such file or directory"):
        nt.norm(mine, 72)
