"""The code of a method, as facts.

Source: the Java Virtual Machine Specification, section 4.7.3.
"""

from __future__ import annotations

from struct import Struct

from examples.findbugs.facts import Code, Handler
from examples.findbugs.reader.attributes import Reading, skip_attributes
from examples.findbugs.reader.cursor import Cursor, Malformed, shown
from examples.findbugs.reader.instructions import instructions

CODE = Struct(">HHI")
SHORT_CODE = Struct(">BBH")
"""The header of a Code attribute, and the short one allowed before version 45.3."""
NO_LONGER_SHORT = (45, 3)
LONGEST = 65535
HANDLER = Struct(">HHHH")


def method_code(reading: Reading, method: str, end: int) -> None:
    """Read the Code attribute at the cursor, which ends there."""
    cursor, facts = reading.cursor, reading.facts
    max_stack, max_locals, length = cursor.take(_shape(reading, end))
    if not 0 < length <= LONGEST:
        raise Malformed(f"the code of method {shown(method)} has {length} bytes")
    if Code in reading.kinds:
        facts[Code].append(Code(reading.name, method, length, max_stack, max_locals))
    if reading.forms is None:
        cursor.at = cursor.after(length)
    else:
        owner = (reading.name, method)
        instructions(cursor, length, owner, reading.pool, reading.forms, facts)
    _handlers(reading, method, length)
    skip_attributes(cursor)


def _shape(reading: Reading, end: int) -> Struct:
    """Return the header of the Code attribute at the cursor.

    The specification does not have the short form. Old virtual machines expect it in an old file
    and new ones do not, so the form that agrees with the length is chosen.
    """
    if reading.version >= NO_LONGER_SHORT or _is_long(reading.cursor, end):
        return CODE
    return SHORT_CODE


def _is_long(cursor: Cursor, end: int) -> bool:
    probe = Cursor(cursor.data)
    probe.at = cursor.at
    try:
        *_, length = probe.take(CODE)
        probe.at = probe.after(length)
        probe.at = probe.after(HANDLER.size * probe.u2())
        skip_attributes(probe)
    except Malformed:
        return False
    return probe.at == end


def _handlers(reading: Reading, method: str, length: int) -> None:
    cursor = reading.cursor
    count = cursor.u2()
    if Handler not in reading.kinds:
        cursor.at = cursor.after(count * HANDLER.size)
        return
    rows: dict[Handler, None] = {}
    for _ in range(count):
        start, end, at, catch_type = cursor.take(HANDLER)
        if not (start < end <= length and at < length):
            raise Malformed(
                f"a handler from {start} to {end} at {at} is not in the {length} bytes of code"
            )
        caught = reading.pool.class_name(catch_type) if catch_type else None
        rows[Handler(reading.name, method, start, end, at, caught)] = None
    reading.facts[Handler].extend(rows)
