"""Facts as the columns that a recorded history has of them, and back: see `recorded.py`.

    fact     MethodDecl("a/A", "add(I)V", 1, "add", ("I",), "V")
    columns  "method_decl", "a/A", 1, "add", ("I",), "V"

A method stands in its relation without its key, which follows from its name and descriptor. All
instructions are one relation; of an instruction's own columns only the type, the field or the call
that is its operand is recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from sys import intern
from types import MappingProxyType
from typing import Any

from examples.findbugs import facts
from examples.findbugs.facts import INSTRUCTIONS, Fact
from examples.findbugs.reader.cursor import Malformed
from examples.findbugs.reader.descriptors import signature
from examples.findbugs.reader.opcodes import INVOKEDYNAMIC
from examples.findbugs.reader.opcodes import KINDS as BY_OPCODE

COMMON = len(facts.Basic._fields)
"""Columns that all instructions have."""


class NoFactError(ValueError):
    """Columns that state no fact."""


@dataclass(frozen=True, slots=True)
class Relation:
    """The conversion of the facts of some kinds to columns and back."""

    kinds: tuple[type[Fact], ...]
    columns: Callable[[Any], tuple[Any, ...]]
    fact: Callable[..., Fact]


@dataclass(frozen=True, slots=True)
class Operand:
    """The conversion of an instruction's own columns to one column and back."""

    written: Callable[[Any], Any]
    columns: Callable[[Any], tuple[Any, ...]]


def columns_of(fact: Fact) -> tuple[Any, ...]:
    """Return the relation of a fact, and its columns there.

    >>> columns_of(facts.EnclosingMethod("a/A$1", "a/A", "run()V"))
    ('enclosing_method', 'a/A$1', 'a/A', ('run', '()V'))
    """
    name = _NAMES[type(fact)]
    return (name, *RELATIONS[name].columns(fact))


def fact_of(relation: str, *columns: Any) -> Fact:
    """Return the fact that columns state; lists in them are tuples.

    >>> fact_of("enclosing_method", "a/A$1", "a/A", ("run", "()V"))
    EnclosingMethod(cls='a/A$1', outer='a/A', method='run()V')

    Raises
    ------
    NoFactError: there is no such relation, or it has other columns.
    """
    try:
        return RELATIONS[relation].fact(*columns)
    except (LookupError, TypeError, ValueError, Malformed) as error:
        raise NoFactError(f"{relation}: {error}") from error


def _whole(kind: Any) -> Relation:
    """All columns, as they are."""
    return Relation((kind,), tuple, kind)


def _without_key(row: facts.MethodDecl) -> tuple[Any, ...]:
    return (row.cls, *row[2:])


def _with_key(
    cls: str, access: int, name: str, params: tuple[str, ...], ret: str
) -> facts.MethodDecl:
    key = intern(f"{name}({''.join(params)}){ret}")
    return facts.MethodDecl(cls, key, access, name, params, ret)


def _key_apart(row: facts.EnclosingMethod) -> tuple[Any, ...]:
    if row.method is None:
        return tuple(row)
    name, opening, rest = row.method.partition("(")
    return (row.cls, row.outer, (name, opening + rest))


def _key_together(cls: str, outer: str, method: tuple[str, str] | None) -> facts.EnclosingMethod:
    if method is None:
        return facts.EnclosingMethod(cls, outer, None)
    name, descriptor = method
    return facts.EnclosingMethod(cls, outer, intern(name + descriptor))


def _with_operand(row: facts.Insn) -> tuple[Any, ...]:
    return (*row[:COMMON], _operand(type(row), row.opcode).written(row))


def _without_operand(
    cls: str, method: str, pc: int, opcode: int, next_pc: int, operand: Any
) -> facts.Insn:
    kind: Any = BY_OPCODE[opcode]
    insn: facts.Insn = kind(
        cls, method, pc, opcode, next_pc, *_operand(kind, opcode).columns(operand)
    )
    return insn


def _operand(kind: type[facts.Insn], opcode: int) -> Operand:
    return DYNAMIC if opcode == INVOKEDYNAMIC else OPERANDS[kind]


def _dynamic(row: facts.Invoke) -> tuple[str, str, str]:
    return ("indy", row.name, f"({''.join(row.params)}){row.ret}")


def _from_dynamic(operand: Any) -> tuple[Any, ...]:
    _, name, descriptor = operand
    return (None, name, *signature(descriptor))


def _several(operand: Any) -> tuple[Any, ...]:
    if type(operand) is not tuple:
        raise TypeError(f"one operand, {operand!r}, where there are several")
    return operand


def _unrecorded(*columns: Any) -> Operand:
    """Return an operand that writes nothing and is read as these columns."""
    return Operand(lambda row: None, lambda operand: columns)


DYNAMIC = Operand(_dynamic, _from_dynamic)
"""The operand of a call without a receiver."""

OPERANDS: Mapping[type[facts.Insn], Operand] = MappingProxyType(
    {
        facts.Invoke: Operand(lambda row: row[COMMON:], _several),
        facts.FieldAccess: Operand(lambda row: row[COMMON:], _several),
        facts.TypeInsn: Operand(lambda row: row.type, lambda operand: (operand,)),
        facts.NewArray: Operand(lambda row: row.type, lambda operand: (operand, None)),
        facts.ConstInsn: _unrecorded(None, None),
        facts.LocalLoad: _unrecorded(None),
        facts.LocalStore: _unrecorded(None),
        facts.Iinc: _unrecorded(None, None),
        facts.Ret: _unrecorded(None),
        facts.CondJump: _unrecorded(None),
        facts.Goto: _unrecorded(None),
        facts.Jsr: _unrecorded(None),
        facts.TableSwitch: _unrecorded(None, None, ()),
        facts.LookupSwitch: _unrecorded(None, (), ()),
        facts.Basic: _unrecorded(),
    }
)

RELATIONS: Mapping[str, Relation] = MappingProxyType(
    {
        "class_decl": _whole(facts.ClassDecl),
        "method_decl": Relation((facts.MethodDecl,), _without_key, _with_key),
        "field_decl": _whole(facts.FieldDecl),
        "code": _whole(facts.Code),
        "handler": _whole(facts.Handler),
        "inner_class": _whole(facts.InnerClass),
        "enclosing_method": Relation((facts.EnclosingMethod,), _key_apart, _key_together),
        "throws": _whole(facts.Throws),
        "insn": Relation(INSTRUCTIONS, _with_operand, _without_operand),
    }
)

_NAMES: Mapping[type[Fact], str] = MappingProxyType(
    {kind: name for name, relation in RELATIONS.items() for kind in relation.kinds}
)
