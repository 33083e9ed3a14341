"""Recorded histories: the facts of a program's first revision, and how each later one changes them.

A history is a file of JSON arrays, one a line, compressed by xz or not:

    ["revision", number, files, removed, added]          begins a revision; more may follow
    ["-", relation, ...columns]                           a fact that is gone
    ["+", relation, ...columns]                           a fact that is new

The relations are `class_decl`, `method_decl`, `field_decl`, `code`, `handler`, `inner_class`,
`enclosing_method`, `throws` and `insn`, with the columns of our facts; a method stands in its
relation without its key, which follows from its name and descriptor. Of an instruction one knows
the type, the field or the call that is its operand, and no other operands.
"""

from __future__ import annotations

import json
import lzma
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples.findbugs import facts
from examples.findbugs.difference import Difference
from examples.findbugs.facts import Fact
from examples.findbugs.reader.descriptors import signature
from examples.findbugs.reader.opcodes import INVOKEDYNAMIC, KINDS


@dataclass(frozen=True, slots=True)
class Revision:
    """How a program differs from its previous revision; the first one, from no program at all."""

    name: str
    files: int
    """How many class files changed."""
    change: Difference


class HistoryError(ValueError):
    """A file is no recorded history."""


def revisions(path: Path) -> Iterator[Revision]:
    """The revisions of a recorded history, one after another.

    Raises
    ------
    HistoryError: names the file and the line.
    OSError: the file cannot be read.
    """
    revision: Revision | None = None
    shared = _Shared()
    for number, line in _lines(path):
        try:
            sign, *columns = json.loads(line)
            if sign == "revision":
                following = _begun(columns)
            else:
                assert revision is not None
                _note(shared.fact(columns), sign, revision.change)
                continue
        except Exception as error:
            shown = line.rstrip()[:80]
            raise HistoryError(f"{path}:{number}: no line of a history: {shown}") from error
        if revision is not None:
            yield revision
        revision = following
    if revision is not None:
        yield revision


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    opened = lzma.open if path.suffix == ".xz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as lines:
            yield from enumerate(lines, 1)
    except (EOFError, lzma.LZMAError, UnicodeDecodeError) as error:
        raise HistoryError(f"{path}: no history: {error}") from error


def _begun(columns: list[Any]) -> Revision:
    number, files, _, _, *version = columns
    return Revision(version[0] if version else str(number), files, Difference())


def _note(fact: Fact, sign: str, change: Difference) -> None:
    part = {"-": change.removed, "+": change.added}[sign]
    part.setdefault(type(fact), []).append(fact)


class _Shared:
    """Makes facts, of which equal strings and tuples are one object."""

    def __init__(self) -> None:
        self._values: dict[Any, Any] = {}

    def fact(self, columns: list[Any]) -> Fact:
        """The fact that a line states."""
        relation, *values = [self._one(value) for value in columns]
        fact: Fact = _MAKERS[relation](*values)
        return fact

    def _one(self, value: Any) -> Any:
        if type(value) is list:
            value = tuple(map(self._one, value))
        elif value != value:
            return math.nan
        if type(value) is str:
            return sys.intern(value)
        return self._values.setdefault(value, value) if type(value) is tuple else value


def _method_decl(
    cls: str, access: int, name: str, params: tuple[str, ...], ret: str
) -> facts.MethodDecl:
    key = sys.intern(f"{name}({''.join(params)}){ret}")
    return facts.MethodDecl(cls, key, access, name, params, ret)


def _enclosing_method(
    cls: str, outer: str, method: tuple[str, str] | None
) -> facts.EnclosingMethod:
    return facts.EnclosingMethod(cls, outer, method and "".join(method))


def _insn(cls: str, method: str, pc: int, opcode: int, next_pc: int, operand: Any) -> facts.Insn:
    place = (cls, method, pc, opcode, next_pc)
    if opcode == INVOKEDYNAMIC:
        return facts.Invoke(*place, None, operand[1], *signature(operand[2]))
    kind: Any = KINDS[opcode]
    return kind(*place, *_operands(kind, operand))  # type: ignore[no-any-return]


def _operands(kind: type[facts.Insn], operand: Any) -> tuple[Any, ...]:
    """The columns that an instruction of a kind has of its own."""
    if kind is facts.Invoke or kind is facts.FieldAccess:
        return tuple(operand)
    if kind is facts.TypeInsn:
        return (operand,)
    if kind is facts.NewArray:
        return (operand, None)
    if kind is facts.TableSwitch:
        return (None, None, ())
    if kind is facts.LookupSwitch:
        return (None, (), ())
    return (None,) * (len(kind._fields) - len(facts.Basic._fields))


_MAKERS: dict[str, Any] = {
    "class_decl": facts.ClassDecl,
    "method_decl": _method_decl,
    "field_decl": facts.FieldDecl,
    "code": facts.Code,
    "insn": _insn,
    "handler": facts.Handler,
    "inner_class": facts.InnerClass,
    "enclosing_method": _enclosing_method,
    "throws": facts.Throws,
}
