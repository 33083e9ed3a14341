"""Values of SQLite at run time: storage classes, their order, affinity, and conversions.

    store_value("12", "INTEGER")  12    numeric("x")     'x'    rank(None) does not occur
    store_value("x", "INTEGER")   'x'   integer("3abc")  3      rank(1) < rank("a") < rank(b"")

Source: https://sqlite.org/datatype3.html
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any

from reactive.languages.sql.runtime import collations
from reactive.languages.sql.runtime.wildcards import (
    ANY,
    Letter,
    Wildcards,
    like_pattern,
    plain_letter,
    wildcards_of,
)

LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
_EXACT = 1 << 51
SPACES = " \t\n\v\f\r"
NUMBER = re.compile(r"[ \t\n\v\f\r]*([+-]?(?:[0-9]+(\.[0-9]*)?|(\.[0-9]+))([eE][+-]?[0-9]+)?)")
_INTEGER = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)")


def affinity_of(declared: str) -> str:
    """Return the affinity that the name of a declared type says.

    >>> [affinity_of(each) for each in ("CHARINT", "varchar(9)", "", "doub", "date")]
    ['INTEGER', 'TEXT', 'BLOB', 'REAL', 'NUMERIC']
    """
    name = declared.upper()
    if "INT" in name:
        return "INTEGER"
    if any(part in name for part in ("CHAR", "CLOB", "TEXT")):
        return "TEXT"
    if "BLOB" in name or not name:
        return "BLOB"
    return "REAL" if any(part in name for part in ("REAL", "FLOA", "DOUB")) else "NUMERIC"


# Conversions.


def to_sqlite_value(value: Any) -> Any:
    """Return a value of Python as one of SQLite: a truth is a number, NaN is NULL."""
    if isinstance(value, bool):
        return int(value)
    return None if isinstance(value, float) and value != value else value


def characters(value: Any) -> str:
    """Return a value as a text.

    >>> characters(1.0), characters(1e20), characters(True), characters(0.1 + 0.2)
    ('1.0', '1.0e+20', '1', '0.3')
    """
    match value:
        case str():
            return value
        case bool():
            return str(int(value))
        case float():
            return _real_to_text(value)
        case bytes():
            return value.decode(errors="replace")
        case _:
            return str(value)


def _real_to_text(value: float) -> str:
    """Return the text of a float in 15 digits, always with a point unless it is infinite."""
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    if not value:
        return "0.0"
    digits, sign, exponent = f"{value:.15g}".partition("e")
    return f"{digits}{sign}{exponent}" if "." in digits else f"{digits}.0{sign}{exponent}"


def integer(value: Any) -> int:
    """Return a value as an integer: a truncated number, or the number a text begins with.

    >>> integer(2.9), integer("12abc"), integer("1e3"), integer(1e30) == GREATEST
    (2, 12, 1, True)
    """
    if isinstance(value, int):
        return min(max(int(value), LEAST), GREATEST)
    if isinstance(value, float):
        if not math.isfinite(value):
            return 0 if value != value else GREATEST if value > 0 else LEAST
        return min(max(int(value), LEAST), GREATEST)
    found = _INTEGER.match(characters(value))
    return min(max(int(found[1]), LEAST), GREATEST) if found else 0


def short_integer(value: Any) -> int:
    """Return a value as an integer of 32 bits; SQLite keeps the lower bits."""
    return (integer(value) + (1 << 31)) % (1 << 32) - (1 << 31)


def real(value: Any) -> float:
    """Return a value as a float, of a text the number that it begins with."""
    if isinstance(value, int | float):
        return float(value)
    found = NUMBER.match(characters(value))
    return float(found[1]) if found else 0.0


def number(value: Any) -> int | float:
    """Return a value as an operand of arithmetic.

    >>> number("3abc"), number("3.5"), number("3.0"), number("x"), number("1e2x")
    (3, 3.5, 3.0, 0, 100.0)
    """
    if isinstance(value, int | float):
        return value
    found = NUMBER.match(characters(value))
    if found is None:
        return 0
    text = found[1]
    if found[2] is None and found[3] is None and found[4] is None:
        whole = int(text)
        return whole if LEAST <= whole <= GREATEST else float(text)
    return float(text)


def addend(value: Any) -> int | float:
    """Return a value as SUM adds it: an integer only where a text is one as a whole.

    >>> addend("12"), addend("12x"), addend("x"), addend(b"5")
    (12, 12.0, 0.0, 5.0)
    """
    if isinstance(value, int | float):
        return value
    made = numeric(value)
    return real(value) if isinstance(made, str | bytes) else made


def numeric(value: Any) -> Any:
    """Return a text that is a number as a whole as that number; any other value as it is.

    >>> numeric(" 12 "), numeric("1e3"), numeric("12 a"), numeric(3.0), numeric("2024-01-31")
    (12, 1000.0, '12 a', 3.0, '2024-01-31')
    """
    if value.__class__ is not str:
        return value
    stripped = value.strip(SPACES)
    found = NUMBER.fullmatch(stripped)
    if found is None:
        return value
    if found[2] is None and found[3] is None and found[4] is None:
        whole = int(stripped)
        if LEAST <= whole <= GREATEST:
            return whole
    return float(stripped)


def _as_integer(value: float) -> int | float:
    """Return a float as the integer that it equals, if there is one."""
    if math.isfinite(value) and value == (whole := int(value)) and LEAST < whole < GREATEST:
        return whole
    return value


def store_value(value: Any, affinity: str | None) -> Any:
    """Return a value as a column of some affinity keeps it.

    >>> store_value("2.7", "INTEGER"), store_value("3.0", "INTEGER")
    (2.7, 3)
    >>> store_value(12, "TEXT"), store_value("1", "REAL")
    ('12', 1.0)
    """
    value = to_sqlite_value(value)
    match affinity:
        case "TEXT":
            return characters(value) if isinstance(value, int | float) else value
        case "INTEGER" | "NUMERIC":
            made = numeric(value)
            return _as_integer(made) if isinstance(made, float) else made
        case "REAL":
            made = numeric(value)
            return float(made) if isinstance(made, int) else made
        case _:
            return value


def as_text(value: Any) -> Any:
    """Return a number as a text; any other value as it is."""
    return characters(value) if isinstance(value, int | float) else value


# CAST.


def cast_to_numeric(value: Any) -> Any:
    """Convert to NUMERIC: a text to the number that it begins with, an integer where equal."""
    if isinstance(value, int | float):
        return to_sqlite_value(value)
    made = number(value)
    if isinstance(made, float) and -_EXACT <= made < _EXACT and made == int(made):
        return int(made)
    return made


def cast_to_blob(value: Any) -> bytes:
    """Convert to BLOB: the bytes of the text."""
    return value if isinstance(value, bytes) else characters(value).encode()


CASTS = {
    "TEXT": characters,
    "INTEGER": integer,
    "REAL": real,
    "NUMERIC": cast_to_numeric,
    "BLOB": cast_to_blob,
}
"""Functions of CAST, by the affinity of its type."""


def truth(value: Any) -> bool:
    """Return True if a value that is not NULL is true: a number other than 0."""
    return value != 0 if isinstance(value, int | float) else real(value) != 0.0


# Order and collations.


def rank(value: Any) -> Any:
    """Return the sort key of a value: numbers before texts before blobs; None of None.

    The places of all ranks have values of the same classes; the first says where the value is.

    >>> sorted(["a", 2, b"a", 1.5], key=rank)
    [1.5, 2, 'a', b'a']
    """
    kind = value.__class__
    if kind is str:
        return (2, 0, value, b"")
    if kind is int or kind is float:
        return (1, value, "", b"")
    if value is None:
        return None
    if kind is bytes:
        return (3, 0, "", value)
    is_number = isinstance(value, int | float)
    return (1, value, "", b"") if is_number else (2, 0, characters(value), b"")


_LOWER = {n: n + 32 for n in range(ord("A"), ord("Z") + 1)}


def without_case(value: Any) -> Any:
    """Return a text as NOCASE compares it: its letters A to Z small."""
    if value.__class__ is not str:
        return value
    return value.lower() if value.isascii() else value.translate(_LOWER)


def without_spaces(value: Any) -> Any:
    """Return a text as RTRIM compares it: without spaces at its end."""
    return value.rstrip(" ") if value.__class__ is str else value


OWN_COLLATIONS = {"NOCASE": without_case, "RTRIM": without_spaces}
COLLATIONS = {**OWN_COLLATIONS, **collations.COLLATIONS}
"""Functions of the texts that a collation compares, in small letters those of DuckDB; BINARY has
none."""


class KeyBy:
    """The key of a row whose fields are compared by collations, which are None for BINARY.

    >>> from types import SimpleNamespace
    >>> KeyBy(("a", "b"), ("NOCASE", None))(SimpleNamespace(a="X", b="X"))
    ('x', 'X')
    """

    def __init__(self, fields: tuple[str, ...], collations: tuple[str | None, ...]) -> None:
        self.fields, self._collations = fields, collations

    def __call__(self, row: Any) -> Any:
        pairs = zip(self.fields, self._collations, strict=True)
        values = tuple(
            COLLATIONS[by](getattr(row, name)) if by else getattr(row, name) for name, by in pairs
        )
        return values if len(values) > 1 else values[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyBy) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.fields, self._collations))


class RankBy:
    """The rank of a value by a collation, and by itself behind that, so that it can be told.

    >>> value_of(max(map(RankBy("NOCASE"), ["a", "B"])))
    'B'
    """

    def __init__(self, collation: str) -> None:
        self.collation = collation

    def __call__(self, value: Any) -> Any:
        return (*rank(COLLATIONS[self.collation](value)), *rank(value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RankBy) and self.collation == other.collation

    def __hash__(self) -> int:
        return hash(self.collation)


def value_of(place: Any) -> Any:
    """Return the value whose rank stands at the end of `place`."""
    return place[len(place) - 4 + place[-4]]


def least(*values: Any) -> Any:
    """Return the least of values that are not None; of equal ones the last."""
    return min(reversed(values), key=rank)


def greatest(*values: Any) -> Any:
    """Return the greatest of values that are not None; of equal ones the first."""
    return max(values, key=rank)


def type_name(value: Any) -> str:
    """Return the storage class of a value.

    >>> type_name(None), type_name(1), type_name(1.0), type_name("a"), type_name(b"")
    ('null', 'integer', 'real', 'text', 'blob')
    """
    match value:
        case None:
            return "null"
        case int():
            return "integer"
        case float():
            return "real"
        case bytes():
            return "blob"
        case _:
            return "text"


# Functions of texts and blobs in SQLite. Numbers are the texts that are written of them.


def length(value: Any) -> int:
    """Return the number of letters of a text before its first NUL, or of bytes of a blob."""
    if isinstance(value, bytes):
        return len(value)
    return len(characters(value).partition("\0")[0])


def part(value: Any, start: Any, count: Any = None) -> Any:
    """Return SUBSTR: a negative start counts from the end, a negative count to the left.

    It is None for an empty blob.

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
    """Return the text with the letters a to z in upper case."""
    text = characters(value)
    return text.upper() if text.isascii() else re.sub("[a-z]", lambda m: m[0].upper(), text)


def lower(value: Any) -> Any:
    """Return the text with the letters A to Z in lower case."""
    return str(without_case(characters(value)))


def place(value: Any, wanted: Any) -> int:
    """Return the first place of a text in a text, or a blob in a blob; 0 if there is none."""
    if isinstance(value, bytes) and isinstance(wanted, bytes):
        return value.find(wanted) + 1
    return characters(value).find(characters(wanted)) + 1


def trimmed(value: Any, letters: Any = " ") -> str:
    """Remove the given letters from both ends."""
    text, cut = characters(value), characters(letters)
    return text.strip(cut) if cut else text


def trimmed_left(value: Any, letters: Any = " ") -> str:
    """Remove the given letters from the beginning."""
    text, cut = characters(value), characters(letters)
    return text.lstrip(cut) if cut else text


def trimmed_right(value: Any, letters: Any = " ") -> str:
    """Remove the given letters from the end."""
    text, cut = characters(value), characters(letters)
    return text.rstrip(cut) if cut else text


def replaced(value: Any, old: Any, new: Any) -> Any:
    """Replace each occurrence of `old`; if `old` is empty return the value, for a blob its text."""
    wanted = characters(old)
    if wanted:
        return characters(value).replace(wanted, characters(new))
    return characters(value) if isinstance(value, bytes) else value


def code(value: Any) -> int | None:
    """Return the number of the first letter; None of the empty text."""
    text = characters(value)
    return ord(text[0]) if text else None


def letters(*codes: Any) -> str:
    """Return the letters of some numbers."""
    numbers = (0 if each is None else integer(each) for each in codes)
    return "".join(chr(n) if 0 <= n <= 0x10FFFF else "\ufffd" for n in numbers)


def digits(value: Any) -> str:
    """Return HEX of a value: the bytes of a blob, or of any other value's text; "" for None."""
    if value is None:
        return ""
    return (value if isinstance(value, bytes) else characters(value).encode()).hex().upper()


def quoted(value: Any) -> str:
    """Return a value as it is written in a text of SQL.

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
    """Return True if a text matches a LIKE pattern, A as a; an ESCAPE of several letters raises.

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
def _read_glob(pattern: str) -> Wildcards | None:
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
        made.append((_bracket_expression(pattern[start:end], inverted=inverted), None))
        at = end + 1
    return wildcards_of(made)


def _bracket_expression(inside: str, *, inverted: bool) -> str:
    """Return the letters between brackets, with ranges, as an expression."""
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
    found = _read_glob(characters(pattern))
    return found is not None and found.is_match(characters(value))
