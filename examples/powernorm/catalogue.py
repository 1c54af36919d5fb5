"""Pairs of a text and its translation from a compiled message catalogue of gettext (*.mo)."""

import re
import struct

MAGIC = b"\xde\x12\x04\x95"  # of a catalogue in little-endian order


def entries(data):
    """Yields (message, translation) of a catalogue, as its bytes hold them: `gettext` of Python hides the contexts."""
    order = "<" if data[:4] == MAGIC else ">"
    count, messages, translations = struct.unpack_from(order + "3I", data, 8)

    def text(table, at):
        size, begin = struct.unpack_from(order + "2I", data, table + 8 * at)
        return data[begin : begin + size]

    for at in range(count):
        yield text(messages, at), text(translations, at)


def plain(text):
    """Returns a message as a reader sees it: without the mark of an accelerator key, in one line.

    A mark is the only `_`, `&` or `~` of the text, in front of a letter, or `|` and a letter at its end (LyX, which
    also writes a context behind in double brackets).
    """
    text = re.sub(r"\|.$", "", re.sub(r"\[\[.*\]\]$", "", text))
    if len(re.findall("[_&~]", text)) == 1:
        text = re.sub(r"[_&~](?=\w)", "", text)
    return " ".join(text.split())


def pairs(data):
    """Yields (text, translation) of a catalogue. Of an entry with plural forms these are the singulars; a context is
    dropped. The header, entries without a translation, and those with markup or with equal sides are left out."""
    for message, translation in entries(data):
        message = message.split(b"\4")[-1]  # a context stands in front
        try:
            source, target = (plain(side.split(b"\0")[0].decode()) for side in (message, translation))
        except UnicodeDecodeError:
            continue
        if source and target and source != target and "<" not in source + target:
            yield source, target
