"""Conversions of values to other types. A value that cannot be converted raises `ValueError`."""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from collections.abc import Callable, Iterable
from decimal import ROUND_DOWN, ROUND_HALF_UP, ROUND_UP, Context, Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from optimizer.expressions.knowledge import pure, rises
from optimizer.record import record
from reactive.languages.sql.runtime.intervals import clock_of, interval_of_text, months_of, of_clock
from reactive.languages.sql.runtime.moments import Unrepresentable
from reactive.languages.sql.runtime.moments import to_date as to_date
from reactive.languages.sql.runtime.moments import to_time as to_time
from reactive.languages.sql.runtime.moments import to_timestamp as to_timestamp
from reactive.languages.sql.runtime.numbers import EXACT

TRUE, FALSE = (
    frozenset({"true", "t", "yes", "y", "1"}),
    frozenset({"false", "f", "no", "n", "0"}),
)
_UUID = re.compile(r"\{([0-9a-fA-F-]+)\}|([0-9a-fA-F-]+)")
_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


@record
class Ranged:
    """An integer that a function makes, if a type has it."""

    function: Callable[..., Any] | None
    low: int
    high: int
    name: str

    def __call__(self, value: Any) -> int:
        made: int = value if self.function is None else self.function(value)
        if self.low <= made <= self.high:
            return made
        raise ValueError(f"{made} is out of the range of {self.name}")

    def __repr__(self) -> str:
        return self.name


@record
class Rounded:
    """A timestamp with as many digits of its seconds as a type has."""

    function: Callable[..., Any] | None
    digits: int

    def __call__(self, value: Any) -> dt.datetime:
        if self.digits > 6 and isinstance(value, str) and re.search(r"\.\d{6,}[1-9]", value):
            raise Unrepresentable(f"{value!r} has digits behind the microseconds")
        try:
            made: dt.datetime = value if self.function is None else self.function(value)
        except Unrepresentable as error:
            if self.digits <= 6 or "inf" in str(value):
                raise
            raise ValueError(str(error)) from None
        if self.digits > 6 and not NANOSECONDS[0] <= made <= NANOSECONDS[1]:
            raise ValueError(f"{made} is out of the range of TIMESTAMP_NS")
        unit: int = 10 ** max(0, 6 - self.digits)
        since = made - EPOCH
        whole = (since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds
        away = whole + unit // 2 if whole >= 0 else whole - unit // 2
        cut = away // unit if away >= 0 else -(-away // unit)
        try:
            return EPOCH + dt.timedelta(microseconds=cut * unit)
        except OverflowError:
            raise Unrepresentable(f"{made} is after 9999 when it is rounded") from None

    def __repr__(self) -> str:
        return f"TIMESTAMP({self.digits})"


EPOCH = dt.datetime(1970, 1, 1)
NANOSECONDS = (dt.datetime(1677, 9, 22), dt.datetime(2262, 4, 11, 23, 47, 16, 854775))
"""The first and the last moment of a TIMESTAMP_NS."""


@pure
def to_integer(value: Any) -> int:
    """Return a number rounded: a float to the even one of two, a decimal away from zero.

    >>> to_integer(2.5), to_integer(Decimal("2.5")), to_integer(" 7 ")
    (2, 3, 7)
    """
    if isinstance(value, str):
        return _integer_of_text(_ascii(value).strip())
    if isinstance(value, Decimal):
        return int(value.quantize(Decimal(1), rounding=ROUND_HALF_UP, context=EXACT))
    nearest: int = round(value)
    return nearest


def _integer_of_text(text: str) -> int:
    """Return the integer of a text: decimal, hexadecimal, or rounded from a number with a point."""
    try:
        return int(text, 16) if text[:2].lower() == "0x" else int(text)
    except ValueError:
        return to_integer(to_decimal(text, None, None))


@pure
@rises
def to_float(value: Any) -> float:
    """Return a number as a float."""
    return float(_ascii(value) if isinstance(value, str) else value)


def _ascii(text: str) -> str:
    """Return the text of a number or interval; Python reads the digits of other scripts, too."""
    if not text.isascii():
        raise ValueError(f"{text!r:.100} is no number")
    return text


@pure
@rises
def to_decimal(value: Any, precision: int | None, scale: int | None) -> Decimal:
    """Return a number with `scale` digits after the point; raise for too many digits before it.

    >>> to_decimal("1.005", 8, 2), to_decimal(2.5, None, None)
    (Decimal('1.01'), Decimal('2.5'))
    """
    try:
        made = Decimal(repr(value) if isinstance(value, float) else _ascii(str(value)).strip())
    except InvalidOperation:
        raise ValueError(f"{value!r} is no number") from None
    if not made.is_finite():
        raise ValueError(f"{value!r} is no decimal number")
    if scale is None:
        return made
    made = made.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP, context=EXACT)
    if precision is not None and made.adjusted() >= precision - scale and made:
        raise ValueError(f"{value!r} has more than {precision - scale} digits before the point")
    return made or made.copy_abs()


def to_uuid(value: Any) -> UUID:
    """Return a UUID of its text, with hyphens anywhere, perhaps in braces; raise for other texts.

    >>> str(to_uuid("{A0EEBC999C0B-4EF8BB6D6BB9BD380A11}"))
    'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'
    """
    if isinstance(value, UUID):
        return value
    found = _UUID.fullmatch(value) if isinstance(value, str) else None
    digits = (found[1] or found[2]).replace("-", "") if found else ""
    if len(digits) != 32:
        raise ValueError(f"{value!r:.100} is no UUID")
    return UUID(digits)


def bytes_of_uuid(value: UUID) -> bytes:
    """Return the 16 bytes of a UUID."""
    return value.bytes


@pure
@rises
def to_real(value: Any) -> float:
    """Return a float of four bytes."""
    made: float = struct.unpack("<f", struct.pack("<f", to_float(value)))[0]
    return made


def to_real_or_infinity(value: float) -> float:
    """Return the result of REAL arithmetic, infinite where four bytes are too few."""
    try:
        return to_real(value)
    except OverflowError:
        return math.copysign(math.inf, value)


@pure
def to_text(value: Any) -> str:
    """Return the text of a value.

    >>> to_text(True), to_text(1.0), to_text(dt.datetime(2024, 1, 2))
    ('true', '1.0', '2024-01-02 00:00:00')
    """
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return _write_float(value)
        case Decimal():
            return f"{value or abs(value):f}"
        case dt.datetime():
            return _timestamp_to_text(value)
        case dt.timedelta():
            return _interval_text(value)
        case dt.time():
            return _time_text(value)
        case tuple():
            return f"[{', '.join(map(_item_text, value))}]"
        case bytes():
            return "".join(map(_byte_text, value))
        case _:
            return str(value)


def _write_float(value: float) -> str:
    return repr(value) if math.isfinite(value) else str(value)


def _byte_text(byte: int) -> str:
    is_plain = 32 <= byte < 127 and byte not in b"\"'\\"
    return chr(byte) if is_plain else f"\\x{byte:02X}"


def _item_text(value: Any) -> str:
    """Return the text of a value inside a list or struct, quoted if it might be misread."""
    if value is None:
        return "NULL"
    text = to_text(value)
    return text if isinstance(value, tuple) else quote_list_text(text)


_QUOTED = frozenset("\"'(),:=[\\]{}")


def quote_list_text(text: str) -> str:
    """Return a text as it stands in the text of a list.

    >>> [quote_list_text(text) for text in ("a b", "it's", "null", "")]
    ['a b', "'it\\\\'s'", "'null'", "''"]
    """
    is_plain = text == text.strip() and text.lower() not in ("", "null")
    if is_plain and _QUOTED.isdisjoint(text):
        return text
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def fraction_text(value: Decimal) -> str:
    """Write a decimal of a type that has no digits before the point as DuckDB does.

    >>> fraction_text(Decimal("-0.50"))
    '-.50'
    """
    return to_text(value).replace("0.", ".", 1)


def real_text(value: float) -> str:
    """Return a float of four bytes with the digits that tell it from its neighbours.

    Where two texts are as near, or one lies in the middle of two floats, DuckDB writes the digits
    of a DOUBLE.

    >>> real_text(to_real(0.1)), real_text(16777216.0), real_text(116777216.0)
    ('0.1', '16777216.0', '116777216.0')
    """
    if not math.isfinite(value) or not value:
        return str(value)
    sign, exact = "-" if value < 0 else "", Decimal(abs(value))
    (bits,) = struct.unpack("<I", struct.pack("<f", abs(value)))
    low = EXACT_REALS.divide(EXACT_REALS.add(exact, _real_of(bits - 1)), 2)
    above = _real_of(bits + 1)
    if above.is_finite():
        high = EXACT_REALS.divide(EXACT_REALS.add(exact, above), 2)
    else:
        high = EXACT_REALS.subtract(EXACT_REALS.multiply(exact, 2), low)
    for digits in range(1, 9):
        down, up = (Context(digits, way).plus(exact) for way in (ROUND_DOWN, ROUND_UP))
        inside = [each for each in (down, up) if low <= each <= high]
        if not inside:
            continue
        before, after = EXACT_REALS.subtract(exact, down), EXACT_REALS.subtract(up, exact)
        best = down if before < after else up
        if best not in inside:
            best = inside[0]
        elif before == after and before:
            return sign + repr(abs(value))
        return sign + repr(abs(value) if best in (low, high) else float(best))
    return sign + repr(float(f"{abs(value):.9g}"))


EXACT_REALS = Context(prec=200)
"""Digits that the middle of two floats of four bytes has."""


def _real_of(bits: int) -> Decimal:
    return Decimal(struct.unpack("<f", struct.pack("<I", bits))[0])


@record
class ListText:
    """The text of a list, of whose items a function makes texts."""

    item: Callable[..., Any]

    def __call__(self, value: tuple[Any, ...]) -> str:
        return f"[{', '.join('NULL' if v is None else self.item(v) for v in value)}]"


@record
class StructText:
    """The text of a struct by its names; of a row, which has none, in brackets."""

    names: tuple[str, ...]
    items: tuple[Callable[..., Any], ...]

    def __call__(self, value: tuple[Any, ...]) -> str:
        texts = [
            "NULL" if v is None else made(v) for made, v in zip(self.items, value, strict=True)
        ]
        if not self.names:
            return f"({', '.join(texts)})"
        pairs = [f"'{name}': {text}" for name, text in zip(self.names, texts, strict=True)]
        return "{" + ", ".join(pairs) + "}"


@record
class MapText:
    """The text of a map: `{a=1, 'b c'=NULL}`."""

    key: Callable[..., Any]
    value: Callable[..., Any]

    def __call__(self, entries: tuple[Any, ...]) -> str:
        shown = [f"{self.key(k)}={'NULL' if v is None else self.value(v)}" for k, v in entries]
        return f"{{{', '.join(shown)}}}"


def map_of(entries: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, Any], ...]:
    """Return a map, which is a tuple of pairs in their order.

    Raises
    ------
    ValueError: a key is NULL, or there twice.

    >>> map_of([("b", 1), ("a", None)])
    (('b', 1), ('a', None))
    """
    made = tuple(entries)
    keys = {key if key == key else math.nan for key, _ in made}
    if None in keys:
        raise ValueError("the keys of a map cannot be NULL")
    if len(keys) < len(made):
        raise ValueError("the keys of a map must be unique")
    return made


def _converted(function: Callable[..., Any] | None, value: Any) -> Any:
    return value if function is None or value is None else function(value)


@record
class MapOfMap:
    """Makes a map another, by functions of its keys and of its values."""

    key: Callable[..., Any] | None
    value: Callable[..., Any] | None

    def __call__(self, entries: tuple[Any, ...]) -> tuple[Any, ...]:
        return map_of([(_converted(self.key, k), _converted(self.value, v)) for k, v in entries])


@record
class MapOfStruct:
    """Makes a map of a struct, with the names of its fields as the keys."""

    names: tuple[str, ...]
    key: Callable[..., Any] | None
    values: tuple[Callable[..., Any] | None, ...]

    def __call__(self, fields: tuple[Any, ...]) -> tuple[Any, ...]:
        parts = zip(self.names, self.values, fields, strict=True)
        return map_of([(_converted(self.key, name), _converted(to, v)) for name, to, v in parts])


@record
class MapOfText:
    """Reads a map from its text: `{a=1, 'b c'=NULL}`."""

    key: Callable[..., Any] | None
    value: Callable[..., Any] | None

    def __call__(self, text: str) -> tuple[Any, ...]:
        plain, place = text.strip(), 1
        if plain[:1] != "{" or plain[-1:] != "}" or len(plain) < 2:
            raise ValueError(f"{text!r:.100} is no map")
        inner, place, found = plain[1:-1], 0, list[tuple[Any, Any]]()
        while inner.strip() and place <= len(inner):
            key, behind = _next_item(inner, place, "=")
            if behind > len(inner) or inner[behind - 1] != "=":
                raise ValueError(f"{text!r:.100} is no map")
            value, place = _next_item(inner, behind)
            found.append((_converted(self.key, key), _converted(self.value, value)))
        return map_of(found)


@record
class Quoted:
    """The text of an item of a list."""

    function: Callable[..., Any]

    def __call__(self, value: Any) -> str:
        return quote_list_text(self.function(value))


@record
class ListOfText:
    """Reads a list from its text: `[1, NULL, 'a b']`."""

    item: Callable[..., Any] | None

    def __call__(self, text: str) -> tuple[Any, ...]:
        return tuple(
            each if each is None or self.item is None else self.item(each)
            for each in items_of_text(text)
        )


def items_of_text(text: str) -> list[str | None]:
    """Return the texts of the items of a list, None for NULL; raise for other texts.

    >>> items_of_text("[a, 'b c', NULL, [1, 2]]"), items_of_text("[]")
    (['a', 'b c', None, '[1, 2]'], [])
    """
    plain = text.strip()
    if plain[:1] != "[" or plain[-1:] != "]" or len(plain) < 2:
        raise ValueError(f"{text!r:.100} is no list")
    inner, place = plain[1:-1], 0
    if not inner.strip():
        return []
    found: list[str | None] = []
    while place <= len(inner):
        item, place = _next_item(inner, place)
        found.append(item)
    return found


def _next_item(text: str, place: int, end: str = ",") -> tuple[str | None, int]:
    """Return an item, None for NULL, and the place behind its `end`; raise if it does not end."""
    letters, depth, quote, was_quoted = list[str](), 0, "", False
    while place < len(text):
        letter = text[place]
        if letter == "\\" and place + 1 < len(text):
            place += 1
            letters.append(letter * bool(depth) + text[place])
        elif quote:
            quote = "" if letter == quote else quote
            letters.append(letter if quote or depth else "")
        elif letter in "'\"" and (depth or not "".join(letters).strip()):
            quote, was_quoted = letter, not depth
            if not depth:
                letters.clear()
            letters.append(letter if depth else "")
        elif letter == end and not depth:
            break
        elif was_quoted and not depth and letter.isspace():
            pass  # between a quote and the end of its item
        else:
            depth += (letter in "[{(") - (letter in "]})")
            letters.append(letter)
        place += 1
    if depth or quote:
        raise ValueError(f"{text!r:.100} is no list")
    made = "".join(letters)
    if not was_quoted:
        made = made.strip()
    return (None if made.lower() == "null" and not was_quoted else made), place + 1


def _time_text(value: dt.time) -> str:
    text = value.replace(microsecond=0).isoformat()
    return f"{text}.{value.microsecond:06}".rstrip("0") if value.microsecond else text


def _timestamp_to_text(value: dt.datetime) -> str:
    text = value.replace(microsecond=0).isoformat(" ")
    return f"{text}.{value.microsecond:06}".rstrip("0") if value.microsecond else text


def _interval_text(value: dt.timedelta) -> str:
    """Return the text of an interval in DuckDB, such as `1 year 2 days 03:04:05`."""
    months, (days, clock) = months_of(value), clock_of(value)
    years, months = int(months / 12), int(math.fmod(months, 12))
    parts = ((years, "year"), (months, "month"), (days, "day"))
    made = [f"{n} {unit}{'s' * (abs(n) != 1)}" for n, unit in parts if n]
    if clock or not made:
        seconds, rest = divmod(abs(clock), 1_000_000)
        text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        text += f".{rest:06}".rstrip("0") if rest else ""
        made.append("-" * (clock < 0) + text)
    return " ".join(made)


@pure
def to_boolean(value: Any) -> bool:
    """Return the boolean of a text, or raise; of a number True unless it is zero."""
    if isinstance(value, str):
        folded = value.lower()
        if folded in TRUE:
            return True
        if folded in FALSE:
            return False
        raise ValueError(f"{value!r} is no boolean")
    return bool(value)


def to_interval(value: Any) -> dt.timedelta:
    """Return an interval that is written out; a number alone is of seconds.

    >>> to_interval("1 day"), to_interval("1.5")
    (datetime.timedelta(days=1), datetime.timedelta(seconds=1, microseconds=500000))
    """
    if not isinstance(value, str):
        return value  # type: ignore[no-any-return]
    if re.fullmatch(r"\s*-?\d+(\.\d*)?\s*", _ascii(value)):
        return of_clock(dt.timedelta(seconds=float(value)))
    return interval_of_text(value)


def to_bytes(value: Any) -> bytes:
    """Return the bytes of a text of ASCII letters, where `\\xFF` is a byte; raise for other texts.

    >>> to_bytes("a\\\\xFF")
    b'a\\xff'
    """
    if not isinstance(value, str):
        return bytes(value)
    if not value.isascii() or re.search(r"\\(?!x[0-9a-fA-F]{2})", value):
        raise ValueError(f"{value!r:.100} is no BLOB: write bytes as \\\\x and two digits")
    return re.sub(rb"\\x(..)", lambda found: bytes.fromhex(found[1].decode()), value.encode())
