"""Functions of texts. Places begin with 1."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from reactive.languages.sql.runtime.automaton import Expression
from reactive.languages.sql.runtime.wildcards import (
    ANY,
    Letter,
    Like,
    Wildcards,
    like_pattern,
    plain_letter,
    wildcards_of,
)


def cut(text: str, length: int) -> str:
    """Return the first letters of a text, as a cast to VARCHAR(n) leaves them."""
    return text[:length]


def part(text: str, start: int, length: int | None = None) -> str:
    """Return SUBSTRING: a negative start counts from the end, a negative length to the left.

    >>> part("hello", 2, 3), part("hello", -3), part("hello", 0, 3), part("hello", 4, -2)
    ('ell', 'llo', 'he', 'el')
    """
    if start < 0:
        begin = len(text) + start
        if begin < 0:
            length = None if length is None else max(0, length + begin) if length >= 0 else length
            begin = 0
    elif start == 0:
        begin = 0
        length = None if length is None else max(0, length - 1) if length > 0 else length
    else:
        begin = start - 1
    if length is None:
        return text[begin:]
    if length < 0:
        return text[max(0, begin + length) : begin]
    return text[begin : begin + length]


def standard_part(text: str, start: int, length: int | None = None) -> str:
    """Return SUBSTRING of PostgreSQL: places before 1 are empty; a negative length raises."""
    if length is None:
        return text[max(0, start - 1) :]
    if length < 0:
        raise ValueError("negative substring length not allowed")
    return text[max(0, start - 1) : max(0, start - 1 + length)]


def like(text: str, pattern: str, escape: str = "") -> bool:
    """Match a LIKE pattern: `%` matches any text and `_` any letter.

    >>> like("green", "gr%n"), like("50%", "50!%", "!")
    (True, True)
    """
    return is_like(text, like_pattern(pattern, escape))


def like_folded(text: str, pattern: str, escape: str = "") -> bool:
    """Match a pattern of ILIKE: upper and lower case are the same."""
    return is_like(text, like_pattern(pattern, escape, re.IGNORECASE))


def is_like(text: str, pattern: Like) -> bool:
    """Match; an escape at the end of the pattern raises where letters are left for it."""
    if not pattern.is_open:
        return pattern.wildcards.is_match(text)
    if 0 <= pattern.wildcards.shortest(text) < len(text):
        raise ValueError("a LIKE pattern must not end with its escape")
    return False


@lru_cache(4096)
def _compile_glob(pattern: str) -> Wildcards:
    return wildcards_of(_glob_letters(pattern))


def _glob_letters(pattern: str) -> Iterator[Letter | None]:
    """Yield the letters of a GLOB pattern; None stands for `*`."""
    for part in re.split(r"(\*|\?|\[!?\]?[^\]]*\]|\\.)", pattern):
        if part == "*":
            yield None
        elif part == "?":
            yield ANY
        elif part[:1] == "[" and part[-1:] == "]":
            inner = part[1:-1].replace("\\", "\\\\").replace("[", "\\[")
            is_inverted = inner[:1] == "!"
            yield f"[^{inner[1:]}]" if is_inverted else f"[{re.escape(inner[:1])}{inner[1:]}]", None
        elif part[:1] == "\\" and len(part) == 2:
            yield plain_letter(part[1])
        else:
            yield from map(plain_letter, part)


def glob(text: str, pattern: str) -> bool:
    """Match a GLOB pattern: `*` matches any text and `?` any letter."""
    return _compile_glob(pattern).is_match(text)


def has_match(text: str, pattern: str, options: str = "") -> bool:
    """Return True if a regular expression matches a part of a text."""
    return _compile_expression(pattern, options).search(text)


def is_match(text: str, pattern: str, options: str = "") -> bool:
    """Return True if a regular expression matches a whole text."""
    return _compile_expression(pattern, options).fullmatch(text)


def parts_between_matches(text: str, pattern: str) -> tuple[str, ...]:
    """Return the parts between matches, letters for no pattern; raise for an empty match.

    >>> parts_between_matches("a1b22c", "[0-9]+")
    ('a', 'b', 'c')
    """
    if not pattern:
        return tuple(text)
    found = list(re.finditer(_re2(pattern), text))
    if any(match.end() == match.start() for match in found):
        raise ValueError(
            f"splitting by {pattern!r:.100} is not supported in duckdb: it fits nothing"
        )
    places = [0, *(place for match in found for place in match.span()), len(text)]
    return tuple(text[start:end] for start, end in zip(places[::2], places[1::2], strict=True))


def replaced_match(text: str, pattern: str, new: str, options: str = "") -> str:
    """Replace the first match of a regular expression; all matches with the option `g`."""
    finder, groups = _compile_expression(pattern, options).finder(text), _python_groups(new)
    if "g" not in options:
        return finder.sub(groups, text, count=1)
    last = -1

    def replace_match(found: re.Match[str]) -> str:
        nonlocal last
        begin, end = found.span()
        is_left = begin == end == last  # RE2 finds nothing where it has just found something
        last = end
        return "" if is_left else found.expand(groups)

    return finder.sub(replace_match, text)


def find_matches(text: str, pattern: str, options: str) -> list[re.Match[str]]:
    """Return the matches of a regular expression, from the left; an empty one moves by a letter."""
    finder, found, place = _compile_expression(pattern, options).finder(text), [], 0
    while place <= len(text) and (match := finder.search(text, place)) is not None:
        found.append(match)
        place = match.end() + (match.end() == match.start())
    return found


def extracted_match(text: str, pattern: str, group: int = 0, options: str = "") -> str:
    """Return the first match of a regular expression, or a group of it; empty if there is none."""
    found = _compile_expression(pattern, options).finder(text).search(text)
    return "" if found is None else found.group(group) or ""


CLASSES = {
    "w": "0-9A-Za-z_",
    "d": "0-9",
    "s": "\\t\\n\\f\\r ",
    "alpha": "A-Za-z",
    "alnum": "0-9A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "upper": "A-Z",
    "space": "\\t\\n\\v\\f\\r ",
    "blank": "\\t ",
    "punct": "!-/:-@\\[-`{-~",
    "xdigit": "0-9A-Fa-f",
    "word": "0-9A-Za-z_",
}
_WORD = f"[{CLASSES['w']}]"
_EDGE = f"(?:(?<!{_WORD})(?={_WORD})|(?<={_WORD})(?!{_WORD}))"
_OF_RE2 = re.compile(r"\[:(\w+):\]|\\([wdsWDSbz])|\\.|\[\^?\]?|\]|\$", re.DOTALL)


@lru_cache(4096)
def _re2(pattern: str) -> str:
    """Return a regular expression of RE2, whose classes are of ASCII, as Python has it.

    >>> _re2(r"\\d+$"), _re2("[[:alpha:]_]")
    ('[0-9]+\\\\Z', '[A-Za-z_]')
    """
    is_inside = False

    def translate_part(found: re.Match[str]) -> str:
        nonlocal is_inside
        text, name, letter = found[0], found[1], found[2]
        if name is not None and is_inside:
            return CLASSES.get(name, text)
        if letter is not None:
            known = CLASSES.get(letter.lower())
            if known is None or (is_inside and letter.isupper()):
                return text if is_inside or letter == "B" else _EDGE if letter == "b" else r"\Z"
            return known if is_inside else f"[{'^' * letter.isupper()}{known}]"
        if text.startswith("["):
            text = r"\[" + text[1:] if is_inside else text
            is_inside = True
        elif text == "]":
            is_inside = False
        return r"\Z" if text == "$" and not is_inside else text

    return _OF_RE2.sub(translate_part, pattern)


@lru_cache(512)
def _compile_expression(pattern: str, options: str) -> Expression:
    return Expression(re.compile(_re2(pattern), _flags(options)))


def _flags(options: str) -> int:
    return (re.IGNORECASE if "i" in options else 0) | (re.DOTALL if "s" in options else 0)


def _python_groups(new: str) -> str:
    return re.sub(r"\\(\d)", r"\\g<\1>", new)


def place_of(text: str, wanted: str) -> int:
    """Return the position of a text in another, from 1 on; 0 if absent."""
    return text.find(wanted) + 1


def trimmed(text: str, letters: str = " ") -> str:
    """Remove the given letters from both ends."""
    return text.strip(letters) if letters else text


def trimmed_left(text: str, letters: str = " ") -> str:
    """Remove the given letters from the beginning."""
    return text.lstrip(letters) if letters else text


def trimmed_right(text: str, letters: str = " ") -> str:
    """Remove the given letters from the end."""
    return text.rstrip(letters) if letters else text


LARGEST = 100_000_000
"""A text that would be longer is refused, not made."""


def check_length(length: int) -> None:
    """Refuse a text of `length` letters if it is too long.

    Raises
    ------
    ValueError: the text is too long.
    """
    if length > LARGEST:
        raise ValueError(f"a text of {length:,} letters is too long: {LARGEST:,} at most")


def padded_left(text: str, length: int, fill: str = " ") -> str:
    """Return a text cut to a length, or padded on the left.

    >>> padded_left("ab", 5, "xy"), padded_left("abc", 2)
    ('xyxab', 'ab')
    """
    return _filling(text, length, fill) + text[: max(0, length)]


def padded_right(text: str, length: int, fill: str = " ") -> str:
    """Return a text cut to a length, or padded on the right."""
    return text[: max(0, length)] + _filling(text, length, fill)


def filled_left(text: str, length: int, fill: str = " ") -> str:
    """Return a text padded on the left, as in DuckDB: if `fill` is empty but needed, raise."""
    return _check_length(padded_left(text, length, fill), length)


def filled_right(text: str, length: int, fill: str = " ") -> str:
    """Return a text padded from the right, as DuckDB does."""
    return _check_length(padded_right(text, length, fill), length)


def _check_length(text: str, length: int) -> str:
    """Return a padded text; raise if it is shorter than `length`."""
    if len(text) < length:
        raise ValueError("cannot pad a text: there is nothing to fill it with")
    return text


def _filling(text: str, length: int, fill: str) -> str:
    """Return what pads a text to a length; empty if the text is long enough, or `fill` is empty."""
    missing = length - len(text)
    if missing <= 0 or not fill:
        return ""
    check_length(length)
    return (fill * (missing // len(fill) + 1))[:missing]


def left(text: str, count: int) -> str:
    """Return the first letters; all but the last ones if the count is negative."""
    return text[:count]


def right(text: str, count: int) -> str:
    """Return the last letters; all but the first ones if the count is negative."""
    return text[-count:] if count else ""


def repeated(text: str, times: int) -> str:
    """Return a text repeated a number of times; raise if it would be too long."""
    check_length(len(text) * times)
    return text * times


def replaced(text: str, old: str, new: str) -> str:
    """Return a text with another in place of each occurrence; of the empty text there is none."""
    if not old:
        return text
    if len(text) * len(new) > LARGEST:
        check_length(text.count(old) * len(new))
    return text.replace(old, new)


def translated(text: str, old: str, new: str) -> str:
    """Replace each letter of `old` by the one in its place in `new`, if there is one.

    >>> translated("banana", "an", "o")
    'booo'
    """
    table: dict[int, int | None] = {}
    for place, letter in enumerate(old):
        table.setdefault(ord(letter), ord(new[place]) if place < len(new) else None)
    return text.translate(table)


def part_between(text: str, delimiter: str, place: int) -> str:
    """Return one of the parts of a text between delimiters; empty if there is no such part.

    >>> part_between("a_b", "_", 2), part_between("a_b", "_", -1), part_between("a_b", "_", 3)
    ('b', 'b', '')
    """
    found = text.split(delimiter) if delimiter else tuple(text)
    place = place - 1 if place > 0 else place + len(found)
    return found[place] if 0 <= place < len(found) else ""


def split_text(text: str, delimiter: str) -> tuple[str, ...]:
    """Return the parts of a text between delimiters; its letters if that is empty."""
    return tuple(text.split(delimiter)) if delimiter else tuple(text)


def parts_of(text: str | None, delimiter: str | None) -> tuple[str, ...] | None:
    """Return the parts of a text between delimiters; the whole text if the delimiter is NULL."""
    if text is None or delimiter is None:
        return None if text is None else (text,)
    return split_text(text, delimiter)


def parts_of_matches(text: str | None, pattern: str | None) -> tuple[str, ...] | None:
    """Return the parts between matches of a regular expression; NULL is in no text."""
    if text is None or pattern is None:
        return None if text is None else (text,)
    return parts_between_matches(text, pattern)


def capitalized(text: str) -> str:
    """Return a text with the first letter of each word in upper, the others in lower case."""
    return re.sub(r"[^\W_]+", lambda word: word[0][0].upper() + word[0][1:].lower(), text)


def starts_with(text: str, beginning: str) -> bool:
    """Return True if a text begins with another."""
    return text.startswith(beginning)


def ends_with(text: str, end: str) -> bool:
    """Return True if a text ends with another."""
    return text.endswith(end)


def contains(text: str, wanted: str) -> bool:
    """Return True if a text contains another."""
    return wanted in text


def code_of(text: str) -> int:
    """Return the number of the first letter; 0 of the empty text."""
    return ord(text[0]) if text else 0


def code_or_less(text: str) -> int:
    """Return the number of the first letter; -1 of the empty text."""
    return ord(text[0]) if text else -1


def letters_of(*codes: int) -> str:
    """Return the letters of some numbers."""
    return "".join(map(chr, codes))


def joined(*texts: str | None) -> str:
    """Join texts; NULL is left out."""
    return "".join(text for text in texts if text is not None)


def joined_by(separator: str, *texts: str | None) -> str:
    """Join texts with a separator between them; NULL is left out."""
    return separator.join(text for text in texts if text is not None)


def bits_of(text: str) -> int:
    """Return the number of bits of a text in UTF-8."""
    return 8 * len(text.encode())


def bytes_in(text: str) -> int:
    """Return the number of bytes of a text in UTF-8."""
    return len(text.encode())


def distance(one: str, other: str) -> int:
    """Return the Levenshtein distance: inserted, deleted and replaced letters.

    >>> distance("kitten", "sitting")
    3
    """
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, 1):
        before, row[0] = row[0], number
        for place, another in enumerate(other, 1):
            replace = before + (letter != another)
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, replace)
    return row[-1]


def like_escaped(text: str, pattern: str, escape: str = "\\") -> bool:
    """Match as PostgreSQL's LIKE does, where a backslash escapes."""
    return is_like(text, like_pattern(pattern, escape))
