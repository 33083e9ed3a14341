"""Texts of values as Postgres writes and reads them.

    text_of(1.0), text_of((1, None, "a b"))     '1', '{1,NULL,"a b"}'
    integer(" 7 "), boolean("of"), moment("Jan 2, 2024")

What cannot be read raises `ValueError`. A date that Python has no place for cannot: an infinite
one, one before the year 1 or after 9999.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any
from uuid import UUID

from reactive.languages.sql.postgres.numbers import OutOfRangeError
from reactive.languages.sql.postgres.numerics import EXACT, round_to_scale, to_numeric
from reactive.languages.sql.runtime.intervals import interval_parts

EMPTY = dt.timedelta()
_DIGITS = r"[0-9a-fA-F]{4}(?:-?[0-9a-fA-F]{4}){7}"
_UUID = re.compile(rf"\{{({_DIGITS})\}}|({_DIGITS})")
MICROSECOND = dt.timedelta(microseconds=1)


# Writing.


def text_of(value: Any) -> str:
    """Write a value as `::text` does; a tuple is an array."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return float_text(value)
        case Decimal():
            return numeric_text(value)
        case dt.datetime():
            return _write_timestamp(value)
        case dt.timedelta():
            return interval_text(value)
        case dt.time():
            return value.isoformat().rstrip("0") if value.microsecond else value.isoformat()
        case tuple():
            return array_text(value)
        case bytes():
            return "\\x" + value.hex()
        case _:
            return str(value)


def float_text(value: float) -> str:
    """Write a float with the least digits that say it."""
    if not math.isfinite(value):
        return _not_finite(value)
    text = repr(value)
    if abs(value) >= 2**53 and _is_between(text, value):
        text = f"{value:.16e}"
    return _notation(text, 15)


def _is_between(text: str, value: float) -> bool:
    """Return True if digits are as near to another float: Postgres writes one digit more then."""
    digits = Fraction(text)
    return digits != Fraction(value) and any(
        2 * digits == Fraction(value) + Fraction(math.nextafter(value, end))
        for end in (-math.inf, math.inf)
    )


def _not_finite(value: Any) -> str:
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def real_text(value: float) -> str:
    """Write a float of four bytes."""
    if not math.isfinite(value):
        return _not_finite(value)
    for digits in range(1, 10):
        made = f"{value:.{digits}g}"
        if real(float(made)) == value:
            break
    return _notation(made, 6)


def _notation(text: str, most: int) -> str:
    """Write digits in plain notation, or from an exponent of `most` on with one."""
    sign, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    shown = "".join(map(str, digits)).rstrip("0") or "0"
    place = len(digits) + exponent - 1 if any(digits) else 0
    head = "-" if sign else ""
    if -5 < place < most:
        if place < 0:
            return f"{head}0.{'0' * (-place - 1)}{shown}"
        whole, rest = shown[: place + 1].ljust(place + 1, "0"), shown[place + 1 :]
        return f"{head}{whole}{'.' if rest else ''}{rest}"
    rest = f".{shown[1:]}" if len(shown) > 1 else ""
    return f"{head}{shown[0]}{rest}e{'-' if place < 0 else '+'}{abs(place):02}"


def numeric_text(value: Decimal) -> str:
    """Write a numeric with all digits of its scale."""
    if not value.is_finite():
        return _not_finite(value) if not value.is_nan() else "NaN"
    return f"{value if value else value.copy_abs():f}"


def _write_timestamp(value: dt.datetime) -> str:
    """Return the text of a timestamp, without microseconds that are 0."""
    text = value.replace(microsecond=0).isoformat(" ")
    if value.tzinfo is not None:
        return value.isoformat(" ")
    return f"{text}.{value.microsecond:06}".rstrip("0") if value.microsecond else text


def interval_text(value: dt.timedelta) -> str:
    """Write an interval: `1 year 2 mons 3 days -04:05:06.7`."""
    months, days, micros = interval_parts(value)
    years, mons = _divide_towards_zero(months, 12)
    made, before = [], False
    for number, unit in ((years, "year"), (mons, "mon"), (days, "day")):
        if number:
            plus = "+" if before and number > 0 else ""
            made.append(f"{plus}{number} {unit}{'s' * (number != 1)}")
            before = number < 0
    if micros or not made:
        seconds, rest = divmod(abs(micros), 1_000_000)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        clock += f".{rest:06}".rstrip("0") if rest else ""
        made.append(f"{'-' if micros < 0 else '+' if before else ''}{clock}")
    return " ".join(made)


def _divide_towards_zero(value: int, by: int) -> tuple[int, int]:
    """Divide towards zero, with the rest."""
    whole = abs(value) // by
    return (whole, value - whole * by) if value >= 0 else (-whole, value + whole * by)


def array_text(value: tuple[Any, ...]) -> str:
    """Write an array: `{1,NULL,"a b"}`."""
    return "{" + ",".join(map(_element_text, value)) + "}"


def _element_text(value: Any) -> str:
    """Return the text of an element in an array, quoted if it has to be."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, tuple):
        return array_text(value)
    text = text_of(value)
    if text and text.upper() != "NULL" and not re.search(r'[\s{}",\\]', text):
        return text
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


def row_text(value: tuple[Any, ...]) -> str:
    """Write a row: `(1,"a b",)`."""
    return "(" + ",".join(map(_field_text, value)) + ")"


def _field_text(value: Any) -> str:
    """Return the text of a field in a row, quoted if it has to be; empty for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "t" if value else "f"
    text = text_of(value)
    if text and not re.search(r'[\s(),"\\]', text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '""') + '"'


def joined_text(value: Any) -> str:
    """Write a value as CONCAT and FORMAT do: a boolean is `t` or `f`."""
    return ("t" if value else "f") if isinstance(value, bool) else text_of(value)


# Reading.


def integer(text: str) -> int:
    """Read an integer, of digits alone; raise for other texts."""
    if not re.fullmatch(r"\s*[+-]?[0-9]+\s*", text):
        raise ValueError(f"{text!r} is no integer")
    return int(text)


NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*", re.IGNORECASE | re.ASCII)
WORDS = {"nan": math.nan, "infinity": math.inf, "inf": math.inf}


def float_(text: str) -> float:
    """Read a float; raise for other texts, and numbers out of range."""
    found = NUMBER.fullmatch(text)
    if found is None:
        return _float_word(text)
    made = float(found[1])
    is_zero = not re.search("[1-9]", found[1].lower().partition("e")[0])
    if math.isinf(made) or (made == 0.0 and not is_zero):
        raise OutOfRangeError(f"{text!r} is out of range for a float")
    return made


def _float_word(text: str) -> float:
    """Return the float of a word such as `-inf`, or of hexadecimal digits; refuse other texts."""
    word = text.strip().lower()
    if word.lstrip("+-") in WORDS and len(word) - len(word.lstrip("+-")) <= 1:
        made = WORDS[word.lstrip("+-")]
        return -made if word.startswith("-") else made
    if re.fullmatch(r"[+-]?0x[0-9a-f]+", word):
        return float(int(word, 16))
    raise ValueError(f"{text!r} is no number")


def real(value: Any) -> float:
    """Round a float to four bytes; raise if it overflows or underflows."""
    value = float(value)
    try:
        made: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        raise OutOfRangeError("value out of range: overflow") from None
    if (made == 0.0 and value) or math.isinf(made) != math.isinf(value):
        raise OutOfRangeError(f"value out of range: {value}")
    return made


def real_of_text(text: str) -> float:
    """Read a float of four bytes."""
    return real(float_(text))


def decimal(value: Any, precision: int | None = None, scale: int | None = None) -> Decimal:
    """Return a value as a numeric of a scale; raise if it has more than `precision` digits."""
    made = decimal_of_text(value) if isinstance(value, str) else to_numeric(value)
    if scale is None or made.is_nan():
        return made
    if made.is_infinite():
        raise OutOfRangeError("numeric field overflow")
    made = round_to_scale(made, scale)
    if precision is not None and made and made.adjusted() >= precision - scale:
        raise OutOfRangeError(f"numeric field overflow: {value}")
    return made


def decimal_of_real(
    value: float, precision: int | None = None, scale: int | None = None
) -> Decimal:
    """Return a numeric of a float of four bytes, by its first 6 digits."""
    made = Decimal(f"{value:.6g}") if math.isfinite(value) else Decimal(str(value))
    return decimal(made if not made.is_finite() else Decimal(f"{made:f}"), precision, scale)


def decimal_of_text(text: str) -> Decimal:
    """Read a numeric; raise for other texts, and numbers out of range."""
    found = NUMBER.fullmatch(text)
    if found is None:
        word = _float_word(text)
        if not math.isfinite(word):
            return Decimal(str(word))
        raise ValueError(f"{text!r} is no number")
    try:
        made = Decimal(found[1])
    except InvalidOperation:
        raise ValueError(f"{text!r} is no number") from None
    if made.adjusted() > 131_071:
        raise OutOfRangeError("value overflows numeric format")
    return round_to_scale(made, max(0, -_exponent(made)))


def _exponent(value: Decimal) -> int:
    """Return the exponent of a decimal's last digit; 0 for infinity and NaN."""
    found = value.as_tuple().exponent
    return found if isinstance(found, int) else 0


def integer_of_float(value: float) -> int:
    """Round a float to a whole number, halves to the even one; raise for infinity and NaN."""
    if not math.isfinite(value):
        raise OutOfRangeError(f"integer out of range: {value}")
    return round(value)


def integer_of_numeric(value: Decimal) -> int:
    """Round a numeric to a whole number, halves away from zero; raise for infinity and NaN."""
    if not value.is_finite():
        raise OutOfRangeError(f"cannot convert {value} to integer")
    return int(value.quantize(Decimal(1), context=EXACT))


TRUTHS = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False}


def uuid(value: Any) -> UUID:
    """Read a UUID: a hyphen may stand behind each four digits, and braces around it.

    >>> str(uuid("{A0EE-BC999C0B4EF8BB6D6BB9BD380A11}"))
    'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'
    """
    if isinstance(value, UUID):
        return value
    found = _UUID.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"invalid input syntax for type uuid: {value!r:.100}")
    return UUID((found[1] or found[2]).replace("-", ""))


def boolean(text: str) -> bool:
    """Read a boolean: a word, or a beginning of one word; raise for other texts."""
    word = text.strip().lower()
    if word in ("1", "0"):
        return word == "1"
    found = {value for each, value in TRUTHS.items() if word and each.startswith(word)}
    if len(found) != 1:
        raise ValueError(f"{text!r} is no boolean")
    return found.pop()


def bytes_(text: str) -> bytes:
    """Read bytes: `\\x` and hexadecimal digits, or letters with escapes of octal digits."""
    if text.startswith("\\x"):
        digits = re.sub(r"\s", "", text[2:])
        if len(digits) % 2 or not re.fullmatch(r"[0-9a-fA-F]*", digits):
            raise ValueError("invalid hexadecimal data")
        return bytes.fromhex(digits)
    made = bytearray()
    for part in re.findall(r"\\\\|\\[0-3][0-7]{2}|\\|[^\\]+", text):
        if part == "\\":
            raise ValueError("invalid input syntax for type bytea")
        if part.startswith("\\"):
            made += b"\\" if part == "\\\\" else bytes([int(part[1:], 8)])
        else:
            made += part.encode()
    return bytes(made)


ARRAY = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|((?:[^{}",\\]|\\.)+)|(\{))\s*', re.DOTALL)


def array(text: str, item: Any, more: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    """Read an array, whose elements `item` reads; raise for a malformed text."""
    found, end = _read_elements(text.strip(), 0, lambda each: item(each, *more))
    if text.strip()[end:]:
        raise ValueError(f"malformed array literal: {text!r}")
    return found


def _read_elements(text: str, place: int, item: Any) -> tuple[tuple[Any, ...], int]:
    """Return the elements of the array at a place, and the place behind it; raise if malformed."""
    if text[place : place + 1] != "{":
        raise ValueError(f"malformed array literal: {text!r}")
    place, made = place + 1, list[Any]()
    if re.match(r"\s*\}", text[place:]):
        return (), text.index("}", place) + 1
    while True:
        found = ARRAY.match(text, place)
        if found is None:
            raise ValueError(f"malformed array literal: {text!r}")
        if found[3] is not None:
            each, place = _read_elements(text, found.start(3), item)
            made.append(each)
        else:
            made.append(_item(found, item))
            place = found.end()
        letter = text[place : place + 1]
        if letter not in (",", "}"):
            raise ValueError(f"malformed array literal: {text!r}")
        place += 1
        if letter == "}":
            return tuple(made), place


def _item(found: re.Match[str], item: Any) -> Any:
    """Return an element, converted by `item`; None for an unquoted NULL. Refuse an empty one."""
    if found[1] is not None:
        return item(re.sub(r"\\(.)", r"\1", found[1], flags=re.DOTALL))
    text = found[2].strip()
    if not text:
        raise ValueError("malformed array literal")
    return None if text.upper() == "NULL" else item(re.sub(r"\\(.)", r"\1", text))
