"""Letters as DuckDB treats them: upper and lower case, and grapheme clusters.

upper("straße")            one letter for each, without regard to its neighbours
reversed_text("ab👍🏽")      marks, tones and flags stay with their letter
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache


def reversed_text(text: str) -> str:
    """Return a text with its grapheme clusters in reverse order.

    >>> reversed_text("abc"), len(reversed_text("👍🏽!"))
    ('cba', 3)
    """
    return text[::-1] if text.isascii() and "\r" not in text else "".join(_clusters(text)[::-1])


def upper(text: str) -> str:
    """Return a text in upper case, each letter as one letter, as DuckDB does.

    >>> upper("straße"), upper("ŉ")
    ('STRAẞE', 'ŉ')
    """
    return text.upper() if text.isascii() else "".join(map(_upper_letter, text))


def lower(text: str) -> str:
    """Return a text in lower case, each letter as one letter and without regard to the next.

    >>> lower("İÄ")
    'iä'
    """
    return text.lower() if text.isascii() else "".join(map(_lower_letter, text))


@lru_cache(4096)
def _upper_letter(letter: str) -> str:
    """Return a letter in upper case, else in title case, if that is one letter; else the letter."""
    if letter == "ß":
        return "ẞ"
    made = letter.upper()
    if len(made) == 1:
        return made
    title = letter.title()
    return title if len(title) == 1 else letter


@lru_cache(4096)
def _lower_letter(letter: str) -> str:
    return letter.lower()[:1]


MARKS = frozenset({"Mn", "Me", "Mc"})
JOINER = "\u200d"
CLINGING = JOINER + "\u200c\u0e33\u0eb3"
"""Letters that belong to the one before, beside marks."""
FOLLOWING = {"L": ("L", "V", "LV", "LVT"), "LV": ("V", "T"), "V": ("V", "T")}
FOLLOWING |= {"LVT": ("T",), "T": ("T",)}
"""The parts of Hangul that belong to a part before them."""
TONES = range(0x1F3FB, 0x1F400)
REGIONS = range(0x1F1E6, 0x1F200)


def _clusters(text: str) -> list[str]:
    """Return the grapheme clusters of a text: letters with marks, joined emoji, flags."""
    found: list[str] = []
    for letter in text:
        if found and _continues(found[-1], letter):
            found[-1] += letter
        else:
            found.append(letter)
    return found


def _hangul(letter: str) -> str:
    """Return which parts a Hangul letter has: L, V, T, LV or LVT; empty for another letter."""
    if not "\u1100" <= letter <= "\ud7a3":
        return ""
    if letter >= "\uac00":
        return "LVT" if (ord(letter) - 0xAC00) % 28 else "LV"
    return "L" if letter < "\u1160" else "V" if letter < "\u11a8" else "T" * (letter < "\u1200")


def _continues(cluster: str, letter: str) -> bool:
    """Return True if a letter belongs to the grapheme cluster before it."""
    last, code = cluster[-1], ord(letter)
    if last in "\r\n" or letter in "\r\n":
        return cluster == "\r" and letter == "\n"
    if letter in CLINGING or code in TONES or unicodedata.category(letter) in MARKS:
        return True
    if _hangul(letter) in FOLLOWING.get(_hangul(last), ()):
        return True
    if last == JOINER:
        return all(
            unicodedata.category(each) == "So" and ord(each) not in REGIONS
            for each in (letter, cluster[0])
        )
    return len(cluster) == 1 and ord(last) in REGIONS and code in REGIONS
