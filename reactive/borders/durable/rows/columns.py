"""How the values of a field are written, by what the field is declared to hold.

    int, float, str, bytes      as they are
    bool                        0, 1
    Decimal, UUID, dates        text
    an enumeration              the name of the member
    anything else               as `values.py` has it

None is None everywhere, but in a key. A value that is not what the field is declared to hold is
marked, so that each comes back as what it was.

Cost: of writing a value 0.05 us where it is as declared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum, Flag
from typing import Any
from uuid import UUID

from reactive.borders.durable.rows.type_text import alternatives
from reactive.borders.durable.rows.values import (
    LEAST,
    MARK,
    MOST,
    Unstorable,
    is_plain,
    is_text,
    marked,
    pack,
    unpack,
)
from reactive.engine.codegen.functions import Values, build

PLAIN = "plain"
ENUM = "enum "
"""What the kind of a column of an enumeration begins with; then comes its name."""
TESTS: Mapping[Any, str] = {
    int: "{v}.__class__ is int and LEAST <= {v} <= MOST",
    float: "{v}.__class__ is float and {v} == {v}",
    str: "{v}.__class__ is str and ({v}.isascii() or is_text({v}))",
    bytes: "{v}.__class__ is bytes and {v}[:1] != MARK",
}
"""Whether a value is as it is declared, and stored as it is."""
OTHERWISE = "is_plain({v})"
KINDS: Mapping[str, tuple[str, str]] = {
    "bool": ("{v}.__class__ is bool", "(1 if {v} else 0)"),
    "Decimal": ("{v}.__class__ is Decimal", "str({v})"),
    "UUID": ("{v}.__class__ is UUID", "str({v})"),
    "date": ("{v}.__class__ is date", "{v}.isoformat()"),
    "time": (
        "{v}.__class__ is time and {v}.tzinfo is None and not {v}.fold",
        "{v}.isoformat()",
    ),
    "datetime": (
        "{v}.__class__ is datetime and ({v}.tzinfo is None or {v}.tzinfo is utc) and not {v}.fold",
        "{v}.isoformat()",
    ),
}
"""Of classes that are not stored as they are: whether a value is as declared, and what is stored
then."""
READS: Mapping[str, Callable[[Any], Any]] = {
    "bool": bool,
    "Decimal": Decimal,
    "UUID": UUID,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "datetime": datetime.fromisoformat,
}
"""The values of what is stored so."""
NAMES: Mapping[str, Any] = {
    **{kind.__name__: kind for kind in (Decimal, UUID, date, time, datetime)},
    "utc": UTC,
    "LEAST": LEAST,
    "MOST": MOST,
    "MARK": MARK,
    "is_text": is_text,
    "is_plain": is_plain,
}
"""What the texts refer to."""


@dataclass(frozen=True, slots=True)
class Writing:
    """How values of a field are written, as text over a variable `{v}`.

    is_usual: whether one is as declared.
    written: what is stored then.
    """

    is_usual: str
    written: str


def kind_of(hint: Any, names: Mapping[type, str]) -> str:
    """How values of an annotation are written, in a word.

    >>> kind_of(Decimal | None, {}), kind_of(int, {})
    ('Decimal', 'plain')
    """
    parts: list[Any] = [part for part in alternatives(hint) if part is not type(None)] or [None]
    only: Any = parts[0]
    if len(parts) > 1 or not isinstance(only, type):
        return PLAIN
    if issubclass(only, Enum) and not issubclass(only, Flag) and only in names:
        return ENUM + names[only]
    name: str = only.__name__
    return name if name in KINDS and only in (bool, NAMES.get(name)) else PLAIN


def writing(kind: str, hint: Any) -> Writing:
    """How the values of a field are written."""
    if kind.startswith(ENUM):
        return Writing("{v}.__class__ is {kind}", "{v}.name")
    if kind in KINDS:
        return Writing(*KINDS[kind])
    found = [TESTS[part] for part in alternatives(hint) if part in TESTS]
    return Writing(found[0] if len(found) == 1 else OTHERWISE, "{v}")


def writer(
    kind: str, names: Mapping[type, str], classes: Mapping[str, type], *, is_key: bool
) -> Callable[[Any], Any]:
    """What gives what is stored of any value at all.

    Raises `Unstorable` for a value that is not stored.

    >>> write = writer("bool", {}, {}, is_key=False)
    >>> write(True), write(1), write(None)
    (1, b'\\xff1', None)
    """
    how, values = writing(kind, None), Values()
    enum = classes.get(kind.removeprefix(ENUM))
    values.by_name |= {**NAMES, "enum": enum, "null": marked(None, {}) if is_key else None}
    otherwise = pack if kind == PLAIN else marked
    values.by_name["otherwise"] = lambda value: otherwise(value, names)
    is_usual = how.is_usual.format(v="v", kind="enum")
    text = f"{how.written.format(v='v')} if {is_usual} else otherwise(v)"
    return build("write", f"def write(v):\n    return null if v is None else {text}\n", values)


def reader(kind: str, classes: Mapping[str, type]) -> Callable[[Any], Any]:
    """What gives the value of what is stored.

    >>> reader("Decimal", {})("1.50"), reader("Decimal", {})(None), reader("plain", {})(2)
    (Decimal('1.50'), None, 2)
    """
    of, stored = of_stored(kind, classes), stored_as(kind)
    if of is None:
        return lambda value: unpack(value, classes)
    return lambda value: of(value) if value.__class__ is stored else unpack(value, classes)


def of_stored(kind: str, classes: Mapping[str, type]) -> Callable[[Any], Any] | None:
    """What gives the value of what is stored of a value as declared; None if that is itself."""
    if not kind.startswith(ENUM):
        return READS.get(kind)
    name = kind.removeprefix(ENUM)
    return lambda member: _member_of(classes.get(name), name, member)


def stored_as(kind: str) -> type:
    """The class of what is stored of a value as declared, if that is not the value itself."""
    return int if kind == "bool" else str


def _member_of(enum: Any, name: str, member: str) -> Any:
    """The member of an enumeration; its name where nobody knows the class."""
    if enum is None:
        return member
    try:
        return enum[member]
    except KeyError:
        raise Unstorable(f"{member!r}, which {name} has no more") from None
