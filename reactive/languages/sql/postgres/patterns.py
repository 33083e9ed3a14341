"""Patterns of Postgres: LIKE, SIMILAR TO and regular expressions, matched by Python's.

    similar("abc", "%(b|d)%")        True
    match("foobar", "o(.)b")         the text of the first group, or the whole match
    replaced("abc", "b", "[\\&]")

At one place Postgres takes the longest match, Python the first. A pattern with alternatives is
tried at each length; if that is impossible, it raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from reactive.languages.sql.postgres.numbers import NotSupportedError
from reactive.languages.sql.runtime.automaton import Expression
from reactive.languages.sql.runtime.texts import is_like
from reactive.languages.sql.runtime.wildcards import Matcher, Wildcards, like_pattern, wildcards_of

CLASSES = {
    "alpha": "^\\W\\d_",
    "digit": "\\d",
    "alnum": "^\\W_",
    "space": "\\s",
    "upper": "A-Z",
    "lower": "a-z",
    "punct": "!-/:-@\\[-`{-~",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "xdigit": "0-9A-Fa-f",
    "word": "\\w",
    "print": " -~\u00a0-\U0010ffff",
    "graph": "!-~\u00a1-\U0010ffff",
}
NEGATED = frozenset({"alpha", "alnum"})
"""Classes that are the opposite of one of Python."""
ESCAPES = {"m": r"\b(?=\w)", "M": r"\b(?<=\w)", "y": r"\b", "Y": r"\B", "Z": r"\Z", "A": r"\A"}
BEYOND = frozenset({"(?:", ")", "|", "*", "+", "?", "{", "}"})
"""Parts of patterns of SIMILAR TO that are neither wildcards nor classes."""
LONGEST = 2_000
"""A text of more letters is not tried at each length."""


# LIKE and SIMILAR TO.


def like(text: str, pattern: str, escape: str = "\\") -> bool:
    """Match a LIKE pattern: `%` matches any text and `_` any letter."""
    return is_like(text, like_pattern(pattern, _check_escape(escape)))


def like_bytes(data: bytes, pattern: bytes, escape: bytes = b"\\") -> bool:
    """Match a LIKE pattern of bytes, where `_` matches one byte."""
    return like(*(each.decode("latin-1") for each in (data, pattern, escape)))


def like_folded(text: str, pattern: str, escape: str = "\\") -> bool:
    """Match an ILIKE pattern."""
    return is_like(text, like_pattern(pattern, _check_escape(escape), re.IGNORECASE))


def _check_escape(escape: str) -> str:
    """Return an escape, which may be empty; raise if it has several letters."""
    if len(escape) > 1:
        raise ValueError("an escape is one letter, or none")
    return escape


def similar(text: str, pattern: str, escape: str = "\\") -> bool:
    """Match a pattern of SIMILAR TO, all of the text.

    >>> similar("abc", "a%"), similar("abc", "%(b|d)%"), similar("abc", "b")
    (True, True, False)
    """
    return _similar(pattern, _check_escape(escape))(text)


@lru_cache(512)
def _similar(pattern: str, escape: str) -> Matcher:
    """Return the matcher of a pattern: wildcards if they suffice, or else an expression."""
    standard = _compile_pattern(_standard(pattern, escape), "")
    parts = list(_standard_parts(pattern, escape, ".*"))
    if not any(part in BEYOND for part in parts):
        return _wildcards(parts).is_match
    return Expression(standard).fullmatch


def _wildcards(parts: Sequence[str]) -> Wildcards:
    letters = ("".join(_translate_pattern(part, lines=False)) for part in parts if part)
    return wildcards_of(None if each == ".*" else (each, None) for each in letters)


def _standard(pattern: str, escape: str, any_text: str = ".*") -> str:
    """Return the regular expression of a pattern of SIMILAR TO."""
    return "".join(_standard_parts(pattern, escape, any_text))


def _standard_parts(pattern: str, escape: str, any_text: str) -> Iterator[str]:
    """Return the expressions of the letters of a pattern of SIMILAR TO."""
    place = 0
    while place < len(pattern):
        letter = pattern[place]
        if letter == escape:
            yield _escape_letter(pattern[place + 1 : place + 2])
            place += 1
        elif letter == "[":
            end = _end_of_class(pattern, place)
            yield pattern[place:end].replace("\\", "\\\\")
            place = end - 1
        else:
            special = {"%": any_text, "_": ".", "(": "(?:", "\\": "\\\\"}.get(letter)
            yield special or (f"\\{letter}" if letter in ".^$" else letter)
        place += 1


def _escape_letter(letter: str) -> str:
    """Return a letter as it stands for itself in a regular expression."""
    return f"\\{letter}" if letter and not letter.isalnum() else letter


def similar_part(text: str, pattern: str, escape: str = "\\") -> str | None:
    """Return the part of a text between two escaped quotes (SIMILAR); None if it does not match.

    >>> similar_part("foobar", '%#"o_b#"%', "#")
    'oob'
    """
    parts = pattern.split(f'{_check_escape(escape)}"') if escape else [pattern]
    if len(parts) > 3:
        raise ValueError("a pattern of SUBSTRING has at most two separators")
    if len(parts) < 3:
        return text if _similar(pattern.replace(f'{escape}"', ""), escape)(text) else None
    first, middle, last = parts
    lazy = _standard(first, escape, ".*?")
    form = f"(?:{lazy})({_standard(middle, escape)})(?:{_standard(last, escape)})"
    expression = _expression_of(form, "")
    made = expression.finder(text).fullmatch(text) if expression.fullmatch(text) else None
    return None if made is None else made[1]


# Regular expressions.


def has_match(text: str, pattern: str, options: str = "") -> bool:
    """Return True if a match is somewhere in the text (`~`)."""
    return _expression_of(pattern, options).search(text)


def has_folded_match(text: str, pattern: str) -> bool:
    """Return True if a match of any case is somewhere in the text (`~*`)."""
    return has_match(text, pattern, "i")


def first_part(text: str, pattern: str) -> str | None:
    """Return the first brackets of the first match, or all of it; None if there is no match."""
    made = _expression_of(pattern, "").finder(text)
    found = next(_matches(made, text), None)
    if found is None:
        return None
    return found[1] if made.groups else found[0]


def groups(text: str, pattern: str, options: str = "") -> tuple[str | None, ...] | None:
    """Return the brackets of the first match (REGEXP_MATCH), or all of it; None without a match."""
    if "g" in options:
        raise ValueError('regexp_match() does not take the option "g"')
    made = _expression_of(pattern, options).finder(text)
    found = next(_matches(made, text), None)
    if found is None:
        return None
    return found.groups() if made.groups else (found[0],)


def all_groups(text: str, pattern: str, options: str = "") -> tuple[tuple[str | None, ...], ...]:
    """Return the brackets of the first match (REGEXP_MATCHES), or of all matches with `g`.

    >>> all_groups("abab", "a(b)", "g"), all_groups("x", "a")
    ((('b',), ('b',)), ())
    """
    made = _expression_of(pattern, options.replace("g", "")).finder(text)
    matches = [each.groups() if made.groups else (each[0],) for each in _matches(made, text)]
    return tuple(matches if "g" in options else matches[:1])


def replaced(text: str, pattern: str, new: str, options: str = "") -> str:
    """Replace the first match of a pattern by `new`, or all with `g` (REGEXP_REPLACE)."""
    made = _expression_of(pattern, options.replace("g", "")).finder(text)
    parts, end = [], 0
    for found in _matches(made, text):
        parts += [text[end : found.start()], _fill_replacement(new, found)]
        end = found.end()
        if "g" not in options:
            break
    return "".join([*parts, text[end:]])


def _fill_replacement(new: str, found: re.Match[str]) -> str:
    """Put the parts of a match in the places of `\\1` and `\\&`; `\\0` stands for itself."""

    def part(escape: re.Match[str]) -> str:
        letter = escape[1]
        if letter == "&":
            return found[0]
        if letter in "0\\":
            return escape[0] if letter == "0" else letter
        number = int(letter)
        return (found[number] or "") if number <= len(found.groups()) else ""

    return re.sub(r"\\([0-9&\\])", part, new)


def split(text: str, pattern: str, options: str = "") -> tuple[str, ...]:
    """Split at matches (REGEXP_SPLIT_TO_ARRAY); an empty match at an end is none."""
    made, start = [], 0
    for found in _matches(_expression_of(pattern, options).finder(text), text):
        if found.start() == found.end() and found.start() in (start, len(text)):
            continue
        made.append(text[start : found.start()])
        start = found.end()
    return (*made, text[start:])


def count(text: str, pattern: str, start: int = 1, options: str = "") -> int:
    """Count the matches from letter `start` on, from 1 (REGEXP_COUNT); raise below 1."""
    if start < 1:
        raise ValueError("the start has to be positive")
    return sum(1 for _ in _matches(_expression_of(pattern, options).finder(text), text, start - 1))


def part(text: str, pattern: str, start: int = 1, number: int = 1) -> str | None:
    """Return a match by its number (REGEXP_SUBSTR); None if there are fewer."""
    found = _find_nth_match(text, pattern, start, number)
    return None if found is None else found[0]


def place(text: str, pattern: str, start: int = 1, number: int = 1) -> int:
    """Return where a match begins (REGEXP_INSTR); 0 if there is none."""
    found = _find_nth_match(text, pattern, start, number)
    return 0 if found is None else found.start() + 1


def _find_nth_match(text: str, pattern: str, start: int, number: int) -> re.Match[str] | None:
    """Return match `number` from letter `start` on, both from 1 (less raises); None if fewer."""
    if start < 1 or number < 1:
        raise ValueError("the start and the number have to be positive")
    found = _matches(_expression_of(pattern, "").finder(text), text, start - 1)
    return next((m for n, m in enumerate(found, 1) if n == number), None)


def _matches(made: re.Pattern[str], text: str, start: int = 0) -> Iterator[re.Match[str]]:
    """Yield the longest matches that do not overlap; raise where they cannot be found."""
    if not _has_alternatives(made.pattern):
        yield from made.finditer(text, start)
        return
    if re.search(r"\\[AZbB]|\(\?[=!<]|[*+?}]\?", made.pattern) or len(text) > LONGEST:
        raise NotSupportedError(
            "a pattern that has alternatives beside anchors, of which the longest match counts,"
        )
    while start <= len(text) and (found := made.search(text, start)) is not None:
        ends = range(len(text), found.start() - 1, -1)
        longest = next(m for e in ends if (m := made.fullmatch(text, found.start(), e)) is not None)
        yield longest
        start = longest.end() + (longest.end() == longest.start())


def _has_alternatives(pattern: str) -> bool:
    return "|" in re.sub(r"\\.|\[[^\]]*\]", "", pattern)


@lru_cache(512)
def _expression_of(pattern: str, options: str) -> Expression:
    return Expression(_compile_pattern(pattern, options))


@lru_cache(4096)
def _compile_pattern(pattern: str, options: str) -> re.Pattern[str]:
    """Compile a pattern with the options of a call, or its own `(?i)`; raise if it is invalid."""
    embedded = re.match(r"\(\?([a-z]+)\)", pattern)
    if embedded is not None:
        pattern, options = pattern[embedded.end() :], options + embedded[1]
    if pattern.startswith("***"):
        raise NotSupportedError("the beginning *** of a pattern")
    if set(options) - set("cignmpstwx"):
        raise ValueError(f"invalid regular expression option: {options!r}")
    lines = any(option in options for option in "nm")
    folds = options.rfind("i") > options.rfind("c")
    flags = (re.IGNORECASE if folds else 0) | (re.MULTILINE if lines else re.DOTALL)
    try:
        made = "".join(_translate_pattern(pattern, lines=lines))
        return re.compile(made, flags | (re.VERBOSE if "x" in options else 0))
    except (re.error, OverflowError) as error:
        raise ValueError(f"invalid regular expression: {error}") from None


def _translate_pattern(pattern: str, *, lines: bool) -> Iterator[str]:
    """Yield a pattern piece by piece for `re`; with `lines`, `$` matches at the end of lines."""
    place = 0
    while place < len(pattern):
        letter = pattern[place]
        if letter == "\\":
            escaped = pattern[place + 1 : place + 2]
            if not escaped:
                raise ValueError("invalid regular expression: invalid escape")
            yield ESCAPES.get(escaped, f"\\{escaped}")
            place += 2
        elif letter == "[":
            end = _end_of_class(pattern, place)
            yield _class(pattern[place:end])
            place = end
        else:
            yield r"\Z" if letter == "$" and not lines else letter
            place += 1


def _end_of_class(pattern: str, place: int) -> int:
    """Return the place behind the bracket that closes a class; raise if none does."""
    end = place + 1
    end += pattern[end : end + 1] == "^"
    end += pattern[end : end + 1] == "]"
    while end < len(pattern) and pattern[end] != "]":
        if pattern.startswith("[:", end) and ":]" in pattern[end:]:
            end = pattern.index(":]", end) + 2
        else:
            end += 1 + (pattern[end] == "\\")
    if end >= len(pattern):
        raise ValueError("invalid regular expression: brackets [] not balanced")
    return end + 1


def _class(text: str) -> str:
    """Return a class of letters, with named ones as Python has them; raise for unknown names."""
    names = re.findall(r"\[:(\w+):\]", text)
    for name in names:
        if name not in CLASSES:
            raise ValueError("invalid regular expression: invalid character class")
    inside = re.sub(r"\[:\w+:\]", "", text)
    negated = inside.startswith("[^")
    letters = inside[2 if negated else 1 : -1]
    letters = re.sub(r"(?<!\\)\[", r"\\[", letters)
    if letters.startswith("]"):
        letters = "\\" + letters
    letters += "".join(CLASSES[name] for name in names if name not in NEGATED)
    parts = [f"[{letters}]"] if letters else []
    parts += [f"[{CLASSES[name]}]" for name in names if name in NEGATED]
    if len(parts) == 1 and not negated:
        return parts[0]
    if len(parts) == 1 and letters:
        return f"[^{letters}]"
    either = "|".join(parts)
    return f"(?!{either})." if negated else f"(?:{either})"
