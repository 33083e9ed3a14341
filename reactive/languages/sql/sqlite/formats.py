"""PRINTF and FORMAT of SQLite: a pattern with the values that stand for its parts.

    formatted("%05d|%-4s|%.2f", 42, "a", 1.005)    '00042|a   |1.01'
    formatted("%,d %Q", 1234567, "it's")            "1,234,567 'it''s'"

What is missing is 0 or the empty text; a pattern ends before a part that there is not.
Source: https://sqlite.org/printf.html
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from decimal import Context, Decimal, localcontext
from typing import Any

from reactive.languages.sql.sqlite.values import characters, integer, real, short_integer

_PART = re.compile(r"([-+ #!0,]*)(\*|[0-9]+)?(?:\.(\*|[0-9]*))?l{0,2}(.)", re.DOTALL)
_MOST = 100_000
"""The greatest width and precision."""
_EXACT = Context(prec=400)


class _Part:
    """A part of a pattern: its flags, width, precision and letter."""

    def __init__(self, flags: str, width: int, precision: int, letter: str) -> None:
        self.flags, self.precision, self.letter = flags, precision, letter
        self.is_left = "-" in flags or width < 0
        self.width = abs(width)
        if max(self.width, precision) > _MOST:
            raise ValueError("string or blob too big")
        self.sign = next((each for each in reversed(flags) if each in "+ "), "")
        self.counts_letters = "!" in flags

    def pad(self, text: str) -> str:
        """Return a text in the width of the part, which is of bytes unless `!` says of letters."""
        size = len(text) if self.counts_letters else len(text.encode())
        space = " " * (self.width - size)
        return text + space if self.is_left else space + text

    def truncate(self, text: str) -> str:
        """Return the beginning of a text by the precision."""
        if self.precision < 0:
            return text
        if self.counts_letters:
            return text[: self.precision]
        return text.encode()[: self.precision].decode(errors="replace")


def formatted(pattern: Any, *values: Any) -> str | None:
    """Fill a format (PRINTF).

    >>> formatted("%5.1f%%", 2.25), formatted("%x %s", 255), formatted("a%y", 1), formatted(None)
    ('  2.3%', 'ff ', 'a', None)
    """
    if pattern is None:
        return None
    text, given, made, at = _text_before_nul(pattern), iter(values), list[str](), 0
    while True:
        start = text.find("%", at)
        if start < 0:
            return _text_of_parts([*made, *([text[at:]] if text[at:] else [])])
        made += [text[at:start]] if start > at else []
        found = _PART.match(text, start + 1)
        if found is None:
            return _text_of_parts([*made, *(["%"] if start + 1 == len(text) else [])])
        at = found.end()
        width = _read_width(found[2], given)
        precision = -1 if found[3] is None else abs(_read_width(found[3], given))
        write = _WRITERS.get(found[4])
        if write is None:
            return _text_of_parts(made)
        made.append(write(_Part(found[1], width, precision, found[4]), given))


def _text_of_parts(parts: list[str]) -> str | None:
    """Return the text of some parts; None where the pattern has none."""
    return "".join(parts) if parts else None


def _read_width(said: str | None, given: Iterator[Any]) -> int:
    """Return a width or a precision: `*` takes the next value, None is 0."""
    return short_integer(next(given, None) or 0) if said == "*" else int(said or 0)


def _text_before_nul(value: Any) -> str:
    """Return a value as a text up to its first NUL; empty for None."""
    return "" if value is None else characters(value).partition("\0")[0]


def _write_integer(part: _Part, given: Iterator[Any]) -> str:
    """Return the next value as an integer in the form of a part; 0 without one."""
    value = integer(next(given, None) or 0)
    sign = ""
    if part.letter in "di":
        sign = "-" if value < 0 else part.sign
        value = abs(value)
    value %= 1 << 64
    base = {"x": "x", "X": "X", "p": "X", "o": "o"}.get(part.letter, "d")
    digits = format(value, base)
    precision = part.precision
    if "0" in part.flags:
        precision = max(precision, part.width - bool(sign))
    digits = digits.rjust(precision, "0")
    if base == "d" and "," in part.flags:
        digits = _thousands(digits)
    if "#" in part.flags and value:
        digits = {"x": "0x", "X": "0X", "o": "0", "p": "0x"}.get(part.letter, "") + digits
    return part.pad(sign + digits)


def _thousands(digits: str) -> str:
    """Return digits with commas between groups of three."""
    first = (len(digits) - 1) % 3 + 1
    groups = [digits[n : n + 3] for n in range(first, len(digits), 3)]
    return ",".join([digits[:first], *groups])


def _write_real(part: _Part, given: Iterator[Any]) -> str:
    """Return the next value as a float in the form of a part; 0.0 without one."""
    argument = next(given, None)
    value = 0.0 if argument is None else real(argument)
    sign = "-" if value < 0 else part.sign
    if math.isinf(value):
        return part.pad(f"{sign}Inf")
    precision = 6 if part.precision < 0 else part.precision
    kind = part.letter.lower()
    if kind == "g" and precision > 0:
        precision -= 1
    digits, exponent = _round_to_digits(
        abs(value), precision, kind, 26 if "!" in part.flags else 16
    )
    strips = "!" in part.flags
    if kind == "g":
        strips = "#" not in part.flags
        if exponent < -4 or exponent > precision:
            kind = "e"
        else:
            precision -= exponent
    point = 0 if kind == "e" else exponent
    if point < 0:
        before, behind = "0", "0" * (-point - 1) + digits
    else:
        digits = digits.ljust(point + 1, "0")
        before, behind = digits[: point + 1], digits[point + 1 :]
    behind = behind[:precision].ljust(precision, "0")
    has_point = precision > 0 or "#" in part.flags or "!" in part.flags
    made = before + ("." + behind if has_point else "")
    if strips and has_point:
        made = made.rstrip("0")
        if made.endswith("."):
            made = made + "0" if "!" in part.flags else made[:-1]
    if kind == "e":
        mark = "E" if part.letter in "EG" else "e"
        made += f"{mark}{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if "0" in part.flags and not part.is_left:
        made = made.rjust(part.width - len(sign), "0")
    return part.pad(sign + made)


def _round_to_digits(value: float, precision: int, kind: str, most: int) -> tuple[str, int]:
    """Return the first digits of a number that is rounded at its precision, and its exponent."""
    with localcontext(_EXACT):
        exact = Decimal(value)
        half = Decimal(5).scaleb(-precision - 1)
        if kind == "f":
            if value and precision + int((math.frexp(value)[1] - 1) / 3) < 15:
                exact += Decimal(value) * Decimal("3e-16")
            exact += half
        elif value:
            exact += half.scaleb(exact.adjusted())
        if not exact or (kind != "f" and not value):
            return "0", 0
        exponent = exact.adjusted()
        return "".join(map(str, exact.as_tuple().digits))[:most], exponent


def _write_text(part: _Part, given: Iterator[Any]) -> str:
    return part.pad(part.truncate(_text_before_nul(next(given, None))))


def _write_letter(part: _Part, given: Iterator[Any]) -> str:
    """Return the first letter of the next value, `precision` times and padded (`%c`)."""
    letter, count = _text_before_nul(next(given, None))[:1] or "\0", max(part.precision, 1)
    space = part.width - count
    text = letter * count
    return text + " " * space if part.is_left else " " * space + text


def _write_quoted(part: _Part, given: Iterator[Any]) -> str:
    """Return the next value with its quotes doubled (`%q`, `%Q`, `%w`); `%Q` puts it in quotes."""
    value = next(given, None)
    if value is None:
        return part.pad(part.truncate("NULL" if part.letter == "Q" else "(NULL)"))
    quote = '"' if part.letter == "w" else "'"
    text = part.truncate(_text_before_nul(value)).replace(quote, quote * 2)
    return part.pad(f"'{text}'" if part.letter == "Q" else text)


_WRITERS: dict[str, Callable[[_Part, Iterator[Any]], str]] = {
    **dict.fromkeys("diuxXop", _write_integer),
    **dict.fromkeys("feEgG", _write_real),
    **dict.fromkeys("sz", _write_text),
    **dict.fromkeys("qQw", _write_quoted),
    "c": _write_letter,
    "n": lambda part, given: "",
    "%": lambda part, given: part.pad("%"),
}
"""The functions that write a part, by its letter."""
