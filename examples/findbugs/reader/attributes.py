"""The state of reading a class file, and the attributes that occur in all places.

Source: the Java Virtual Machine Specification, section 4.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from examples.findbugs.facts import Fact
from examples.findbugs.reader.constant_pool import ConstantPool
from examples.findbugs.reader.cursor import Cursor, Malformed
from examples.findbugs.reader.instructions import Forms

ATTRIBUTE = Struct(">HI")
ONCE = frozenset({"Code", "ConstantValue", "Exceptions", "InnerClasses", "EnclosingMethod"})
"""Attributes that occur at most once in a place."""


class Reading(NamedTuple):
    """A class file whose header has been read, and the facts that it stated so far."""

    cursor: Cursor
    version: tuple[int, int]
    pool: ConstantPool
    name: str
    kinds: frozenset[type[Fact]]
    """The requested kinds of facts."""
    forms: Forms | None
    """The forms of instructions; None if no facts of instructions are requested."""
    facts: dict[type[Fact], list[Fact]]


def attributes(reading: Reading) -> Iterator[tuple[str, int]]:
    """Yield the names and ends of the attributes at the cursor; one that is not read is skipped."""
    cursor = reading.cursor
    seen = set()
    for _ in range(cursor.u2()):
        text, length = cursor.take(ATTRIBUTE)
        name = reading.pool.text(text)
        start, end = cursor.at, cursor.after(length)
        if name in ONCE:
            if name in seen:
                raise Malformed(f"there are two attributes {name}")
            seen.add(name)
        yield name, end
        if cursor.at not in (start, end):
            raise Malformed(f"attribute {name} claims {length} bytes and has {cursor.at - start}")
        cursor.at = end


def skip_attributes(cursor: Cursor) -> None:
    """Move the cursor past the attributes at it."""
    for _ in range(cursor.u2()):
        _, length = cursor.take(ATTRIBUTE)
        cursor.at = cursor.after(length)
