"""Norms of the user's texts: which norm of a file, where its text is kept, and what a constructor refuses."""

import threading

import jax
import jax.numpy as jnp
import normc
import normc.jax as nj
import numpy as np
import pytest

CLAUSES = "reduce features\n  moment raw\n  affine scale\n"


def added(tmp_path, text):
    path = tmp_path / "file.norm"
    path.write_bytes(text.encode())
    return nj.norm(path, 8)


@pytest.mark.parametrize("text", [
    "norm mine {\n  CLAUSES}\n",
    "norm\nmine {\n  CLAUSES}\n",
    "norm mine{CLAUSES}\n",
    "norm mine//c\n{\n  CLAUSES}\n",
    "\ufeffnorm mine {\r\n  CLAUSES}\r\n",
    "// norm other {\nnorm mine {\n  CLAUSES}\n",
    "norm mine from rms_norm { affine none }\n",
    "norm base {\n  CLAUSES}\nnorm mine from base {\n}\n",
    "norm mine from base {\n}\nnorm base {\n  CLAUSES}\n",
])
def test_the_norm_of_a_file(tmp_path, compiler, text):
    norm = added(tmp_path, text.replace("CLAUSES", CLAUSES))
    assert norm.name == "mine" and "mine#" in repr(norm)


@pytest.mark.parametrize("text, said", [
    ("// nothing\n", r"file.norm defines no norm: write one as 'norm NAME \{ ... \}'"),
    ("norm a {\n}\nnorm b from a {\n}\nnorm c {\n}\n",
     r"file.norm defines a, b, c, and takes one norm that no other of the file is made from; give each of them a file"),
])
def test_a_file_without_one_norm_is_refused(tmp_path, compiler, text, said):
    with pytest.raises(normc.Error, match=said):
        added(tmp_path, text)


def test_a_name_is_no_file():
    with pytest.raises(FileNotFoundError, match=r"^no file 'rms_norm'; norm\(\) reads a .norm file, "
                                                r"Norm\('rms_norm', features\) takes a built-in norm$"):
        nj.norm("rms_norm", 64)


def test_compiling_is_off(tmp_path):
    with pytest.raises(normc.Error, match=r'(?s)no kernel serves mine:.*; compiling is off: normc.compiler\(""\) was called$'):
        added(tmp_path, f"norm mine {{\n  {CLAUSES}}}\n")(jnp.ones((2, 8)))


def test_threads_keep_one_text(tmp_path, compiler):
    for number in range(8):
        path, names, threads = tmp_path / f"{number}.norm", [], []
        path.write_text(f"norm mine {{\n  {CLAUSES}}}\n// {tmp_path}\n" + "\n" * number)
        start = threading.Barrier(4)

        def add():
            start.wait()
            names.append(normc._library.add_norm(path))

        threads = [threading.Thread(target=add) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(names) == 4 and len(set(names)) == 1


def test_a_text_is_kept_in_the_cache_of_the_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    try:
        normc.compiler("", str(tmp_path / "cache"))
        source = repr(added(tmp_path, f"norm mine {{\n  {CLAUSES}}}\n")).split("#")[1][:12]
        kept, = (tmp_path / "cache/norms").iterdir()
        assert kept == tmp_path / f"cache/norms/{source}.norm"
        normc.compiler("")
        with pytest.raises(normc.Error, match=r"is kept in /proc/none/normc/norms, which cannot be written: .*; choose "
                                              r"a folder with normc.compiler\(program, cache\)"):
            added(tmp_path, f"norm mine {{\n  {CLAUSES}}}\n")
    finally:
        monkeypatch.undo()
        normc.compiler("")


@pytest.mark.parametrize("value", [np.float64(0.25), np.float32(0.25), np.array(0.25), jnp.float32(0.25), 0.25])
def test_numbers_of_any_library(value):
    groups = jnp.int32(4) if isinstance(value, jax.Array) else np.int64(4)
    norm = nj.Norm("group_norm", 8, options={"groups": groups}, numbers={"epsilon": value})
    assert repr(norm) == "normc.jax.Norm('group_norm[*x8]{groups=4} epsilon=0.25')"


def traced_number(value):
    jax.jit(lambda value: nj.Norm("rms_norm", 8, numbers={"epsilon": value}))(value)


@pytest.mark.parametrize("call, said", [
    (lambda: nj.Norm("rms_norm", 8, numbers={"epsilon": "1e-3"}), "numbers has epsilon='1e-3'; give a number, whose"),
    (lambda: nj.Norm("rms_norm", 8, numbers={"epsilon": np.ones(2)}), r"numbers has epsilon=array\(\[1., 1.\]\); give"),
    (lambda: traced_number(0.5), "numbers has epsilon=.*; give a number, whose value is known when the norm is made"),
    (lambda: nj.Norm("group_norm", 8, options={"groups": 4.0}), "options has groups=4.0; give an integer or a word"),
    (lambda: nj.Norm("group_norm", 8, options={"groups": 4, "layout": "nonsense"}),
     "options has layout='nonsense', but types and the mask follow from the arrays of a call, and layout is an "
     "argument; give what the norm leaves open"),
    (lambda: nj.Norm("rms_norm", 8, options={"y": "bf16"}), "options has y='bf16', but types and the mask follow"),
])
def test_refuses_values_of_numbers_and_options(call, said):
    with pytest.raises((TypeError, ValueError), match=said):
        call()
