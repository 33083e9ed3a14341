"""Write a history as a recorded one, of facts instead of class files: see `recorded.py`.

Of an instruction only the type, field or call that is its operand is recorded.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from examples.findbugs import facts
from examples.findbugs.classfile import read
from examples.findbugs.facts import Fact
from examples.findbugs.faults.revisions import Revision
from examples.findbugs.reader.opcodes import INVOKEDYNAMIC

RELATIONS: dict[type[Fact], str] = {
    facts.ClassDecl: "class_decl",
    facts.MethodDecl: "method_decl",
    facts.FieldDecl: "field_decl",
    facts.Code: "code",
    facts.Handler: "handler",
    facts.InnerClass: "inner_class",
    facts.EnclosingMethod: "enclosing_method",
    facts.Throws: "throws",
}
"""All other facts are in the relation `insn`."""


def record(history: Iterable[Revision], path: Path) -> None:
    """Write a history to a file, compressed by xz."""
    with lzma.open(path, "wt", encoding="utf-8", preset=9) as file:
        file.writelines(f"{line}\n" for line in lines(history))


def lines(history: Iterable[Revision]) -> Iterator[str]:
    """The lines of a recorded history."""
    present: dict[str, list[str]] = {}
    for revision in history:
        old = {name: present.pop(name, []) for name in revision.classes}
        new = {name: _stated(name, data) for name, data in revision.classes.items()}
        removed = [fact for name in new for fact in _without(old[name], new[name])]
        added = [fact for name in new for fact in _without(new[name], old[name])]
        present |= new
        counts = (revision.number, len(new), len(removed), len(added))
        yield _text("revision", *counts)
        yield from (f'["-",{columns}' for columns in removed)
        yield from (f'["+",{columns}' for columns in added)


def _stated(name: str, data: bytes | None) -> list[str]:
    """What a class file states: its lines without what is before the relation."""
    every = {} if data is None else read(data, f"{name}.class")
    return [_text(*_columns(fact))[1:] for rows in every.values() for fact in rows]


def _without(these: list[str], those: list[str]) -> list[str]:
    known = frozenset(those)
    return [fact for fact in these if fact not in known]


def _columns(fact: Fact) -> tuple[Any, ...]:
    """The relation of a fact and its columns there."""
    match fact:
        case facts.MethodDecl():
            return ("method_decl", fact.cls, *fact[2:])
        case facts.EnclosingMethod(cls, outer, str(method)):
            name, opening, rest = method.partition("(")
            return ("enclosing_method", cls, outer, (name, opening + rest))
        case _ if type(fact) in RELATIONS:
            return (RELATIONS[type(fact)], *fact)
    return ("insn", *fact[:5], _operand(fact))


def _operand(insn: Fact) -> Any:
    match insn:
        case facts.Invoke(opcode=opcode, name=name, params=params, ret=ret):
            if opcode == INVOKEDYNAMIC:
                return ("indy", name, f"({''.join(params)}){ret}")
            return insn[5:]
        case facts.FieldAccess():
            return insn[5:]
        case facts.TypeInsn(type=name) | facts.NewArray(type=name):
            return name
    return None


def _text(*columns: Any) -> str:
    return json.dumps(columns, separators=(",", ":"))
