"""Encodings and distances of texts, and matches of regular expressions, as DuckDB has them."""

from __future__ import annotations

import base64
import binascii
import math
from collections import Counter
from typing import Any
from urllib.parse import quote

from reactive.languages.sql.runtime.texts import find_matches


def all_matches(
    text: str, pattern: str, group: int = 0, options: str = ""
) -> tuple[str | None, ...]:
    """Return all matches of a regular expression, or a group of each.

    >>> all_matches("a1b22", "([a-z])([0-9]+)", 2)
    ('1', '22')
    """
    found = find_matches(text, pattern, options)
    return tuple(match.group(group) for match in found)


def named_groups(text: str, pattern: str, *names: str) -> tuple[str, ...]:
    """Return the first groups of the first match, as many as there are names; empty without one."""
    found = find_matches(text, pattern, "")[:1]
    if not found:
        return ("",) * len(names)
    return tuple(found[0].group(n) or "" for n in range(1, len(names) + 1))


def escaped(text: str) -> str:
    """Return a regular expression that matches a text.

    >>> escaped("a.b c_é")
    'a\\\\.b\\\\ c_é'
    """
    return "".join(c if c.isalnum() or c == "_" or ord(c) > 127 else f"\\{c}" for c in text)


def from_hexadecimal(text: str) -> bytes:
    """Return the bytes of hexadecimal digits, of which an odd number begins with a zero."""
    return bytes.fromhex(("0" if len(text) % 2 else "") + text)


def from_base_64(text: str) -> bytes:
    """Return the bytes of a text in base 64; raise for a text of another length or letter."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"{text!r:.60} is no base64: {error}") from None


def url_encoded(text: str) -> str:
    """Return a text with all letters escaped that a URL gives a meaning.

    >>> url_encoded("a b/~")
    'a%20b%2F~'
    """
    return quote(text, safe="-_.~")


def gamma(value: float) -> float:
    """Return the gamma function: infinite at 0 and beyond its range, NaN at negative integers."""
    if value == 0:
        return math.copysign(math.inf, value)
    try:
        return math.gamma(value)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan


def log_gamma(value: float) -> float:
    """Return the logarithm of the absolute value of the gamma function, infinite at its poles."""
    try:
        return math.lgamma(value)
    except (OverflowError, ValueError):
        return math.inf


def cotangent(value: float) -> float:
    """Return the cotangent, infinite at 0."""
    return math.copysign(math.inf, value) if value == 0 else 1 / math.tan(value)


def has_sign(value: float) -> bool:
    """Return True for a negative number, also for -0.0."""
    return math.copysign(1.0, value) < 0


def places_that_differ(one: str, other: str) -> int:
    """Return the Hamming distance of two texts; raise for texts of different lengths."""
    if not one or len(one) != len(other):
        raise ValueError("hamming() takes two texts of the same length that are not empty")
    return sum(a != b for a, b in zip(one, other, strict=True))


def common_letters(one: str, other: str) -> float:
    """Return the Jaccard similarity of two texts; raise for an empty one."""
    if not one or not other:
        raise ValueError("jaccard() takes texts that are not empty")
    mine, theirs = set(one), set(other)
    return len(mine & theirs) / len(mine | theirs)


def edits_with_swaps(one: str, other: str) -> int:
    """Return the edits from a text to another, of which one is a swap of neighbours.

    >>> edits_with_swaps("abcd", "badc"), edits_with_swaps("ca", "abc")
    (2, 2)
    """
    most, last = len(one) + len(other), Counter[str]()
    rows = [[most] * (len(other) + 2)]
    rows.append([most, *range(len(other) + 1)])
    for n, letter in enumerate(one, 1):
        row, swap = [most, n], 0
        for m, given in enumerate(other, 1):
            before, place = last[given], swap
            cost = int(letter != given)
            if not cost:
                swap = m
            row.append(
                min(
                    rows[n][m] + cost,
                    row[m] + 1,
                    rows[n][m + 1] + 1,
                    rows[before][place] + (n - before - 1) + 1 + (m - place - 1),
                )
            )
        rows.append(row)
        last[letter] = n
    return rows[-1][-1]


def first_unless_null(value: Any, *others: Any) -> Any:
    """Return the first value; a call is NULL where one of the others is."""
    return value
