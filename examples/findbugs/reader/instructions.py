"""The instructions in a method's code, as facts.

Source: the Java Virtual Machine Specification, sections 4.9 and 6.5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from examples.findbugs.facts import Fact, Insn
from examples.findbugs.reader import opcodes
from examples.findbugs.reader.constant_pool import ConstantPool
from examples.findbugs.reader.cursor import Cursor, Malformed
from examples.findbugs.reader.operands import (
    LOOKUP,
    OPERANDS,
    TABLE,
    WIDE_OPERANDS,
    Columns,
    operands_of_switch,
)


class Form(NamedTuple):
    """The form of the instructions of one opcode."""

    length: int
    """0 if it depends on the operands, and if there is no such opcode."""
    kind: type[Insn] | None
    """None if facts of this kind are not asked for."""
    implied: tuple[Any, ...]
    """The columns from the sixth on, if the opcode alone says them."""
    columns: Columns | None
    """The function that reads them from the operands; None if there are none."""


Forms: TypeAlias = tuple[Form, ...]
"""The forms by opcode; from WIDE_FORMS on, those of instructions after `wide`."""

WIDE_FORMS = 256
UNKNOWN = Form(0, None, (), None)

_row: Callable[[type[Insn], tuple[Any, ...]], Insn] = tuple.__new__
"""Make a fact from a tuple of its columns: most of the time is spent here."""


def instructions(
    cursor: Cursor,
    length: int,
    method: tuple[str, str],
    pool: ConstantPool,
    forms: Forms,
    facts: Mapping[type[Fact], list[Fact]],
) -> None:
    """Add the facts of the code at the cursor, which belongs to a method of a class."""
    start = cursor.at
    end = cursor.after(length)
    code = cursor.data[start:end]
    pc = 0
    try:
        while pc < length:
            opcode = code[pc]
            size, kind, implied, columns = forms[opcode]
            if not size:
                opcode, size, kind, columns = _of_other_length(code, pc, forms)
            next_pc = pc + size
            if next_pc > length:
                raise Malformed(f"the instruction at {pc} does not end with the code")
            if kind is not None:
                if columns is not None:
                    implied = columns(code, pc, pool)
                row = (*method, pc, opcode, next_pc, *implied)
                facts[kind].append(_row(kind, row))
            pc = next_pc
    except Malformed:
        cursor.at = start + pc
        raise
    cursor.at = end


@cache
def forms(kinds: frozenset[type[Fact]]) -> Forms:
    """Return the forms of all instructions for a reader of some kinds of facts."""
    return (
        *[_form(opcode, opcodes.LENGTHS, OPERANDS, kinds) for opcode in range(WIDE_FORMS)],
        *[
            _form(opcode, opcodes.WIDE_LENGTHS, WIDE_OPERANDS, kinds)
            for opcode in range(WIDE_FORMS)
        ],
    )


def _form(
    opcode: int,
    lengths: Mapping[int, int],
    readers: Mapping[int, Columns],
    kinds: frozenset[type[Fact]],
) -> Form:
    if opcode not in lengths:
        return UNKNOWN
    kind = opcodes.KINDS[opcode]
    wanted = kind if kind in kinds else None
    return Form(lengths[opcode], wanted, opcodes.IMPLIED.get(opcode, ()), readers.get(opcode))


def _of_other_length(
    code: bytes, pc: int, forms: Forms
) -> tuple[int, int, type[Insn] | None, Columns | None]:
    """Return opcode, length, kind and columns of an instruction whose length operands say."""
    opcode = code[pc]
    _, kind, _, columns = forms[opcode]
    match opcode:
        case opcodes.TABLESWITCH:
            return opcode, _table_length(code, pc), kind, columns
        case opcodes.LOOKUPSWITCH:
            return opcode, _lookup_length(code, pc), kind, columns
        case opcodes.WIDE if pc + 1 < len(code):
            inner = code[pc + 1]
            size, kind, _, columns = forms[WIDE_FORMS + inner]
            if size:
                return inner, size, kind, columns
    raise Malformed(f"there is no instruction {' '.join(map(str, code[pc : pc + 2]))}")


def _table_length(code: bytes, pc: int) -> int:
    start = operands_of_switch(pc)
    end = start + TABLE.size
    if end > len(code):
        return end - pc
    low: int
    high: int
    _, low, high = TABLE.unpack_from(code, start)
    if high < low:
        raise Malformed(f"a tableswitch has keys from {low} to {high}")
    return end + 4 * (high - low + 1) - pc


def _lookup_length(code: bytes, pc: int) -> int:
    start = operands_of_switch(pc)
    end = start + LOOKUP.size
    if end > len(code):
        return end - pc
    count: int
    _, count = LOOKUP.unpack_from(code, start)
    if count < 0:
        raise Malformed(f"a lookupswitch has {count} keys")
    return end + 8 * count - pc
