"""The translations of examples/powernorm: catalogues, splits, padding, and what a byte is predicted from."""

import pathlib
import struct
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples/powernorm"))

import catalogue  # noqa: E402
import pairs  # noqa: E402
import translation  # noqa: E402
from settings import FORMS, NORMS, PLACEMENTS  # noqa: E402
from translator import Translator  # noqa: E402

PAIRS = [
    (b"Open the file", b"Die Datei \xc3\xb6ffnen"),
    (b"Close", b"Schlie\xc3\x9fen"),
    (b"A page of text", b"Eine Seite"),
]


def compiled(entries, order):
    """Returns a catalogue of {message: translation}."""
    texts = [text.encode() for entry in sorted(entries.items()) for text in entry]
    at, table = 28 + 8 * len(texts), [b"", b""]
    for number, text in enumerate(texts):
        table[number % 2] += struct.pack(order + "2I", len(text), at)
        at += len(text) + 1
    head = struct.pack(order + "7I", 0x950412DE, 0, len(entries), 28, 28 + 8 * len(entries), 0, 0)
    return head + b"".join(table) + b"".join(text + b"\0" for text in texts)


@pytest.mark.parametrize("order", "<>")
def test_entries_of_a_catalogue(order):
    entries = {
        "": "Content-Type: text/plain; charset=UTF-8\n",
        "menu\4_Open": "Ö_ffnen",
        "%d page\0%d pages": "%d Seite\0%d Seiten",
        "Fonts && &Colors": "Schriften && &Farben",
        "snake_case_name is wrong": "snake_case_name ist falsch",
        "Copy|C": "Kopieren|K",
        "~Close\nnow": "Jetzt\n~schließen",
        "Size[[of paper]]": "Größe",
        "Save & quit": "Sichern & beenden",
        "<b>bold</b>": "<b>fett</b>",
        "Version": "Version",
        "Untranslated": "",
    }
    assert sorted(catalogue.pairs(compiled(entries, order))) == sorted(
        [
            ("Open", "Öffnen"),
            ("%d page", "%d Seite"),
            ("Fonts && &Colors", "Schriften && &Farben"),
            ("snake_case_name is wrong", "snake_case_name ist falsch"),
            ("Copy", "Kopieren"),
            ("Close now", "Jetzt schließen"),
            ("Size", "Größe"),
            ("Save & quit", "Sichern & beenden"),
        ]
    )


def test_a_text_is_in_one_split_and_once(monkeypatch):
    names = [(word, thing) for word in "abcdefgh" for thing in "ijklmnopq"]
    found = [(f"{word} the {thing} of a page", f"{word} {thing} der Seite") for word, thing in names]
    again = [(f"{source.upper()}: 7!", f"{target}!") for source, target in found]
    others = [*again, ("too short", "zu kurz"), ("x" * 65, "y" * 20)]
    monkeypatch.setattr(pairs, "sources", lambda *_: {"one": found, "two": others})
    splits, rows = pairs.load("", 64)
    sides = [source.decode() for part in splits.values() for source, _ in part]
    assert sorted(sides) == sorted(source for source, _ in found) and all(splits.values())
    assert [row["pairs"] for row in rows] == [len(found), 0]
    assert all(rows[0][name] == len(part) for name, part in splits.items())
    assert all(pairs.split(source) == pairs.split(same) for (source, _), (same, _) in zip(found, again))


def test_a_system_without_catalogues_has_pairs(monkeypatch, tmp_path):
    monkeypatch.setattr(pairs, "SYSTEM", tmp_path)
    splits, rows = pairs.load(tmp_path, 64, ())
    assert [row["source"] for row in rows] == ["fallback: lines of common-licenses in capitals"]
    assert len(splits["train"]) > 500 and all(target == source.upper() for source, target in splits["test"])


def test_sources_are_exchanged_for_those_of_other_targets():
    changed = translation.exchanged(PAIRS)
    assert sorted(source for source, _ in changed) == sorted(source for source, _ in PAIRS)
    assert [target for _, target in changed] == [target for _, target in PAIRS] and not set(changed) & set(PAIRS)


def test_batches_are_of_equal_lengths_or_of_all():
    splits = {name: [(b"a" * (1 + at % 60), b"b") for at in range(6000)] for name in ("train", "valid", "test")}

    def spread(mixed):
        task = translation.Translation(splits, FORMS["smoke"], mixed)
        drawn = [[task.draw(16, torch.Generator().manual_seed(seed)) for seed in (0, 1, 0)] for _ in "ab"]
        assert all(torch.equal(x, y) for x, y in zip(drawn[0][0][0], drawn[1][2][0]))
        return max(sizes.max() - sizes.min() for (given, _) in drawn[0] for sizes in [given[1].sum(1)])

    assert spread(False) <= 10 and spread(True) > 40


def model_of(norm, placement):
    torch.manual_seed(0)
    return Translator(norm, placement, 16, 2, 2, 64, 1)


def trained(norm, placement, extra):
    """Returns losses, gradients and state of two steps with so many more positions of padding, of other bytes."""
    model, losses = model_of(norm, placement), []
    for _ in range(2):
        given, wanted = translation.batch_of(PAIRS)
        longer = []
        for tokens, real in zip(given[::2], given[1::2]):
            tokens = torch.where(real, tokens, 7) if extra else tokens
            more = torch.full((len(tokens), extra), 9)
            longer += [torch.cat((tokens, more), 1), torch.cat((real, torch.zeros_like(more, dtype=torch.bool)), 1)]
        model.zero_grad()
        loss = translation.loss_of(model, (longer, wanted))
        loss.backward()
        losses.append(loss.detach())
    found = {"loss": torch.stack(losses), "gradient": torch.cat([each.grad.flatten() for each in model.parameters()])}
    for name, value in model.named_buffers():
        kind = name.rpartition(".")[2]
        found[kind] = torch.cat((found.get(kind, torch.zeros(0)), value.flatten().float()))
    return found


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("norm", NORMS)
def test_padding_changes_no_loss_no_gradient_and_no_state(norm, placement):
    for kind, alone in trained(norm, placement, 0).items():
        longer = trained(norm, placement, 5)[kind]
        if norm == "pn_released" and kind in ("gradient", "nu"):  # its code has padding in the mean of nu
            assert not torch.allclose(longer, alone, rtol=1e-3, atol=1e-5)
        else:
            torch.testing.assert_close(longer, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_byte_is_predicted_from_the_source_and_the_bytes_before(placement):
    model = model_of("ln", placement).eval()
    (source, source_real, target, real), _ = translation.batch_of(PAIRS[:1])

    def logits(source, target):
        return model(source, source_real, target, real)

    before, other = logits(source, target), target.clone()
    other[0, 5:] += 1
    after = logits(source, other)
    assert torch.equal(after[:5], before[:5]) and not torch.isclose(after[5:], before[5:]).all(1).any()
    assert not torch.isclose(logits(source.flip(1), target), before).all(1).any()


def test_the_loss_is_that_of_each_text_alone():
    model = model_of("pn", "post").eval()
    nats = [translation.loss_of(model, translation.batch_of([pair])) * (len(pair[1]) + 1) for pair in PAIRS]
    mean = sum(nats) / sum(len(target) + 1 for _, target in PAIRS)
    torch.testing.assert_close(translation.loss_of(model, translation.batch_of(PAIRS)), mean)
    bits = translation.bits_per_byte(model, PAIRS)
    assert bits == pytest.approx(mean.item() / 0.6931471805599453, rel=1e-5)
