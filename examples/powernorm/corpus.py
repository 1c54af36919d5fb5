"""Real text from packages of Debian, as bytes, with a split into train, valid and test.

The packages are fetched with `apt-get download` and unpacked into a cache, so neither root nor a change of the system
is needed. Where that fails, the text is the licences that every Debian system has, and the report says so.
"""

import gzip
import pathlib
import subprocess

import numpy as np

PACKAGES = ("debian-reference-en", "debian-policy", "debian-faq", "fortunes", "manpages")
PATTERNS = {
    "debian-reference-en": "usr/share/debian-reference/*.en.txt.gz",
    "debian-policy": "usr/share/doc/debian-policy/policy.txt.gz",
    "debian-faq": "usr/share/doc/debian/FAQ/debian-faq.en.txt.gz",
    "fortunes": "usr/share/games/fortunes/*",
    "manpages": "usr/share/man/man[457]/*.gz",
}
LICENCES = pathlib.Path("/usr/share/common-licenses")
BLOCK = 4096  # bytes of text that go into one split together
CYCLE = 20  # of 20 neighbouring blocks, the last but one is valid and the last is test


def unpacked(package, cache):
    """Returns the folder in which a package lies unpacked; fetches it if it is not there."""
    folder = cache / package
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", package], cwd=folder, check=True, capture_output=True, timeout=300)
        for archive in folder.glob("*.deb"):
            subprocess.run(["dpkg", "-x", archive.name, "."], cwd=folder, check=True, capture_output=True)
        (folder / "complete").touch()
    return folder


def _text(package, cache):
    """Returns the text of a package: its files in the order of their names, each once."""
    folder = unpacked(package, cache)
    files = [path for path in sorted(folder.glob(PATTERNS[package])) if path.is_file() and not path.is_symlink()]
    if package == "fortunes":
        files = [path for path in files if not path.suffix]  # the others are indices
    return b"\n".join(
        gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes() for path in files
    )


def split(text):
    """Returns train, valid and test of bytes: blocks of 4 KiB, of 20 neighbours 18, 1 and 1."""
    data = np.frombuffer(text, dtype=np.uint8)
    blocks = [data[at : at + BLOCK] for at in range(0, len(data), BLOCK)]
    of = {"valid": CYCLE - 2, "test": CYCLE - 1}
    parts = {name: [block for at, block in enumerate(blocks) if at % CYCLE == rest] for name, rest in of.items()}
    parts["train"] = [block for at, block in enumerate(blocks) if at % CYCLE < CYCLE - 2]
    return {name: np.concatenate(parts[name]) for name in ("train", "valid", "test")}


def load(cache, packages=PACKAGES):
    """Returns ({split: array of bytes}, [{"source", "bytes", "train", "valid", "test"}]), a row for each source."""
    sources = {}
    try:
        for package in packages:
            sources[package] = _text(package, pathlib.Path(cache))
    except (OSError, subprocess.SubprocessError):
        sources = {}
    if not sources or not all(sources.values()):
        files = [path for path in sorted(LICENCES.iterdir()) if path.is_file() and not path.is_symlink()]
        sources = {"fallback: common-licenses": b"\n".join(path.read_bytes() for path in files)}
    splits, rows = {name: [] for name in ("train", "valid", "test")}, []
    for source, text in sources.items():
        parts = split(text)
        rows.append({"source": source, "bytes": len(text), **{name: len(part) for name, part in parts.items()}})
        for name, part in parts.items():
            splits[name].append(part)
    return {name: np.concatenate(parts) for name, parts in splits.items()}, rows
