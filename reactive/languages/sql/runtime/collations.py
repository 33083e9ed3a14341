"""Texts as the collations of DuckDB compare them.

    nocase               letters in lower case
    noaccent             letters without accents
    nocase.noaccent      both
    nfc                  letters as one code point where there is one

Collations of the binary order (C, POSIX, BINARY) have no function.
"""

from __future__ import annotations

import unicodedata
from typing import Any

from reactive.languages.sql.runtime import letters


def without_accents(text: Any) -> Any:
    """Return a text without the marks of its letters.

    >>> without_accents("Mühé"), without_accents("ø")
    ('Muhe', 'ø')
    """
    if text.__class__ is not str or text.isascii():
        return text
    parts = (c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))
    return unicodedata.normalize("NFC", "".join(parts))


def without_case(text: Any) -> Any:
    """Return a text in lower case."""
    return letters.lower(text) if text.__class__ is str else text


def without_case_and_accents(text: Any) -> Any:
    """Return a text in lower case, without the marks of its letters."""
    return without_accents(without_case(text))


def composed(text: Any) -> Any:
    """Return a text in which a letter and its marks are one code point where there is one."""
    return unicodedata.normalize("NFC", text) if text.__class__ is str else text


COLLATIONS = {
    "nocase": without_case,
    "noaccent": without_accents,
    "nocase.noaccent": without_case_and_accents,
    "noaccent.nocase": without_case_and_accents,
    "nfc": composed,
}
BINARY = frozenset({"c", "posix", "binary"})
