"""Functions of texts and blobs in SQLite. Numbers are the texts that are written of them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from reactive.languages.sql.runtime.wildcards import (
    ANY,
    Letter,
    Wildcards,
    like_pattern,
    plain_letter,
    wildcards_of,
)
from reactive.languages.sql.sqlite.values import characters, integer, short_integer, without_case


def length(value: Any) -> int:
    """Return the number of letters of a text before its first NUL, or of bytes of a blob."""
    if isinstance(value, bytes):
        return len(value)
    return len(characters(value).partition("\0")[0])


def part(value: Any, start: Any, count: Any = None) -> Any:
    """SUBSTR: a negative start counts from the end, a negative count goes to the left. Of an empty
    blob it is None.

    >>> part("hello", 2, 3), part("hello", -3, 2), part("hello", 0, 3), part("hello", 4, -2)
    ('ell', 'll', 'he', 'el')
    """
    of = value if isinstance(value, bytes) else characters(value)
    if of == b"":
        return None
    first, size = short_integer(start), len(of)
    wanted = 1_000_000_000 if count is None else short_integer(count)
    goes_left, wanted = wanted < 0, abs(wanted)
    if first < 0:
        first += size
        if first < 0:
            wanted = max(wanted + first, 0)
            first = 0
    elif first > 0:
        first -= 1
    elif wanted > 0:
        wanted -= 1
    if goes_left:
        first -= wanted
        if first < 0:
            wanted += first
            first = 0
    return of[first : first + max(wanted, 0)]


def upper(value: Any) -> str:
    """With the letters a to z great."""
    text = characters(value)
    return text.upper() if text.isascii() else re.sub("[a-z]", lambda m: m[0].upper(), text)


def lower(value: Any) -> Any:
    """With the letters A to Z small."""
    return str(without_case(characters(value)))


def place(value: Any, wanted: Any) -> int:
    """Return the first place of a text in a text, or a blob in a blob; 0 if there is none."""
    if isinstance(value, bytes) and isinstance(wanted, bytes):
        return value.find(wanted) + 1
    return characters(value).find(characters(wanted)) + 1


def trimmed(value: Any, letters: Any = " ") -> str:
    """Without these letters at both ends."""
    text, cut = characters(value), characters(letters)
    return text.strip(cut) if cut else text


def trimmed_left(value: Any, letters: Any = " ") -> str:
    """Without these letters at the beginning."""
    text, cut = characters(value), characters(letters)
    return text.lstrip(cut) if cut else text


def trimmed_right(value: Any, letters: Any = " ") -> str:
    """Without these letters at the end."""
    text, cut = characters(value), characters(letters)
    return text.rstrip(cut) if cut else text


def replaced(value: Any, old: Any, new: Any) -> Any:
    """With another text in the place of each occurrence; if `old` is empty the value
    itself, of a blob its text."""
    wanted = characters(old)
    if wanted:
        return characters(value).replace(wanted, characters(new))
    return characters(value) if isinstance(value, bytes) else value


def code(value: Any) -> int | None:
    """The number of the first letter; None of the empty text."""
    text = characters(value)
    return ord(text[0]) if text else None


def letters(*codes: Any) -> str:
    """The letters of some numbers."""
    numbers = (0 if each is None else integer(each) for each in codes)
    return "".join(chr(n) if 0 <= n <= 0x10FFFF else "\ufffd" for n in numbers)


def digits(value: Any) -> str:
    """HEX: the bytes of a blob or text in hexadecimal digits; nothing of None."""
    if value is None:
        return ""
    return (value if isinstance(value, bytes) else characters(value).encode()).hex().upper()


def quoted(value: Any) -> str:
    """A value as it is written in a text of SQL.

    >>> quoted(None), quoted("it's"), quoted(b"a"), quoted(0.1)
    ('NULL', "'it''s'", "X'61'", '0.1')
    """
    match value:
        case None:
            return "NULL"
        case bytes():
            return f"X'{value.hex().upper()}'"
        case str():
            return f"""'{value.partition(chr(0))[0].replace("'", "''")}'"""
        case float() if float(characters(value).replace("Inf", "inf")) != value:
            return f"{value:.20e}"
        case _:
            return characters(value)


def like(value: Any, pattern: Any, escape: Any = "") -> bool:
    """Return True if a text matches a pattern of LIKE; the case of A to Z does not count.

    >>> like("ÄB", "äb"), like("ÄB", "Äb"), like("50%", "50!%", "!")
    (False, True, True)
    """
    mark, wanted = characters(escape), characters(pattern)
    if escape != "" and len(mark) != 1:
        raise ValueError("ESCAPE expression must be a single character")
    if mark and len(wanted) - len(wanted.rstrip(mark)) & 1:
        return False
    found = like_pattern(wanted, mark, re.IGNORECASE | re.ASCII)
    return found.wildcards.is_match(characters(value))


@lru_cache(4096)
def _glob(pattern: str) -> Wildcards | None:
    """Compile a pattern of GLOB; None if nothing matches it."""
    made, at = list[Letter | None](), 0
    while at < len(pattern):
        letter = pattern[at]
        at += 1
        if letter != "[":
            made.append(None if letter == "*" else ANY if letter == "?" else plain_letter(letter))
            continue
        inverted = pattern[at : at + 1] == "^"
        start = at + inverted
        end = pattern.find("]", start + 1)
        if end < 0:
            return None
        made.append((_set(pattern[start:end], inverted=inverted), None))
        at = end + 1
    return wildcards_of(made)


def _set(inside: str, *, inverted: bool) -> str:
    """The letters between brackets, with ranges, as an expression."""
    parts, at = list[str](), 0
    while at < len(inside):
        if inside[at + 1 : at + 2] == "-" and at + 2 < len(inside):
            low, high = inside[at], inside[at + 2]
            parts += [f"{re.escape(low)}-{re.escape(high)}"] if low <= high else []
            at += 3
        else:
            parts.append(re.escape(inside[at]))
            at += 1
    if not parts:
        return "." if inverted else "(?!)"
    return f"[{'^' * inverted}{''.join(parts)}]"


def glob(value: Any, pattern: Any) -> bool:
    """Return True if a text matches a pattern with `*`, `?` and `[a-z]`.

    >>> glob("abc", "a[b-d]?"), glob("a]c", "a[]]c"), glob("x", "[x")
    (True, True, False)
    """
    found = _glob(characters(pattern))
    return found is not None and found.is_match(characters(value))
