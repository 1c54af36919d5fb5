"""English and German phrases from message catalogues of Debian's packages, split into train, valid and test.

Packages are fetched as those of corpus.py. Where that fails, catalogues of programs that every Debian system has serve,
and where those in German are missing, lines of its licences beside themselves in capitals. The report's table of pairs
names what served.
"""

import hashlib
import pathlib
import subprocess

import catalogue
import corpus

PACKAGES = (
    "libreoffice-l10n-de",
    "gimp-data",
    "gnucash-common",
    "evolution-common",
    "vlc-l10n",
    "digikam-data",
    "audacity-data",
    "lyx-common",
    "krita-l10n",
)
SYSTEM = pathlib.Path("/usr/share/locale/de/LC_MESSAGES")
PROGRAMS = ("apt", "bash", "coreutils", "diffutils", "dpkg", "findutils", "grep", "sed", "shadow", "tar")
SHORTEST, FEWEST = 12, 500  # bytes of a side; pairs that are enough for training
SPLITS = {"valid": corpus.CYCLE - 2, "test": corpus.CYCLE - 1}  # of 20 values of a hash


def letters(text):
    """Returns what tells sentences apart: the letters, so that marks, digits and capitals do not."""
    return "".join(character for character in text.lower() if character.isalpha())


def split(text):
    """Returns the split of an English text. Texts of equal letters have the same."""
    rest = hashlib.sha256(letters(text).encode()).digest()[0] % corpus.CYCLE
    return next((name for name, value in SPLITS.items() if value == rest), "train")


def of_files(paths):
    """Returns [(English, German)] of catalogues, in the order of their names."""
    return [pair for path in sorted(paths) for pair in catalogue.pairs(path.read_bytes())]


def of_licences():
    """Yields (line, line in capitals): no translation, but a task of the same form on every machine."""
    for path in sorted(corpus.LICENCES.iterdir()):
        for line in path.read_text(errors="ignore").splitlines():
            yield line.strip(), line.strip().upper()


def sources(cache, packages):
    """Returns {source: [(English, German)]}."""
    try:
        folders = {package: corpus.unpacked(package, pathlib.Path(cache)) for package in packages}
        found = {package: of_files(folder.rglob("de/LC_MESSAGES/*.mo")) for package, folder in folders.items()}
    except (OSError, subprocess.SubprocessError):
        found = {}
    if not found or not all(found.values()):
        installed = [SYSTEM / f"{program}.mo" for program in PROGRAMS]
        found = {"fallback: catalogues of the system": of_files(path for path in installed if path.exists())}
    if sum(map(len, found.values())) < FEWEST:
        found = {"fallback: lines of common-licenses in capitals": list(of_licences())}
    return found


def load(cache, longest, packages=PACKAGES):
    """Returns ({split: [(source, target)] as bytes}, [{"source", "pairs", ...}]), a row for each source of pairs.

    A side has SHORTEST to `longest` bytes. Of texts with equal letters only the first is kept. A split is in the order
    of a hash, so its beginning is a sample of all sources.
    """
    splits, rows, seen = {"train": [], "valid": [], "test": []}, [], set()
    for name, found in sources(cache, packages).items():
        row = {"source": name, "pairs": 0, "English bytes": 0, "German bytes": 0, **{part: 0 for part in splits}}
        for pair in found:
            source, target = (side.encode() for side in pair)
            key = letters(pair[0])
            if key in seen or not all(SHORTEST <= len(side) <= longest for side in (source, target)):
                continue
            seen.add(key)
            part = split(pair[0])
            splits[part].append((source, target))
            added = {"pairs": 1, "English bytes": len(source), "German bytes": len(target), part: 1}
            row.update({column: row[column] + value for column, value in added.items()})
        rows.append(row)
    for part in splits.values():
        part.sort(key=lambda pair: hashlib.sha256(pair[0]).digest())
    return splits, rows
