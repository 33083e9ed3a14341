"""A finding for people: in Java's notation, its place and its message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeAlias

from examples.findbugs.analyses import ANALYSES, name_of
from examples.findbugs.facts import FieldDecl, Invoke, MethodDecl
from examples.findbugs.notation import internal, java, modifiers, short, type_name, with_parameters
from examples.findbugs.program import Program
from examples.findbugs.reader.descriptors import signature
from examples.terminal import printable

IsLibrary: TypeAlias = Callable[[str], bool]
"""Function from the name of a class to whether it belongs to a library."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of an analysis, and its place. Attributes that do not apply are empty or None.

    Methods have the types of their parameters and of their result with packages, as in
    `void add(int, java.lang.String)`, fields have theirs as in `int count`.
    """

    letter: str
    analysis: str
    cls: str
    method: str
    pc: int | None
    field: str
    place: str
    """All of that, in short."""
    message: str

    def __str__(self) -> str:
        return printable(f"{self.place}: {self.message} [{self.analysis}]")

    @property
    def order(self) -> tuple[Any, ...]:
        """Return the sort key of findings: by analysis, then by place in the code."""
        at = -1 if self.pc is None else self.pc
        return self.letter, self.cls, self.method, self.field, at, self.message

    def is_in(self, is_library: IsLibrary) -> bool:
        """Return True if it is about a class of a library."""
        return is_library(internal(self.cls))

    @property
    def anywhere(self) -> Finding:
        """Return the finding without its place in the method."""
        return self if self.pc is None else replace(self, pc=None, place="")

    def as_dict(self) -> dict[str, Any]:
        """For JSON, with what it is about."""
        columns = {
            "letter": self.letter,
            "analysis": self.analysis,
            "class": self.cls,
            "method": self.method,
            "pc": self.pc,
            "field": self.field,
            "message": self.message,
        }
        return {name: value for name, value in columns.items() if value not in (None, "")}


def nowhere(name: str) -> bool:
    """No class is of a library."""
    return False


def findings(program: Program, is_library: IsLibrary = nowhere) -> list[Finding]:
    """All that is found in the classes of a program itself, in order."""
    found = (finding(letter, row) for letter, view in program.views.items() for row in view)
    own = (one for one in found if not one.is_in(is_library))
    return sorted(own, key=lambda one: one.order)


def finding(letter: str, row: Any) -> Finding:
    """Return the finding of a row of an analysis.

    >>> call = Invoke("shop/Cart", "add(I)V", 12, 184, 15, "java/lang/System", "gc", (), "V")
    >>> print(finding("E", call))
    shop.Cart.add(int) at byte 12: calls System.gc() [DM_GC]
    """
    return SAYS.get(letter, _plainly)(letter, row)


def _at(letter: str, message: str, cls: str, method: str = "", pc: int | None = None) -> Finding:
    """Return a finding in a class, or in a method of it, which has its key as its name."""
    place, whole = java(cls), ""
    if method:
        name, _, descriptor = method.partition("(")
        params, ret = signature("(" + descriptor)
        place += f".{with_parameters(name, params)}"
        whole = f"{type_name(ret)} {name}({', '.join(map(type_name, params))})"
    if pc is not None:
        place += f" at byte {pc}"
    return Finding(letter, name_of(ANALYSES[letter]), java(cls), whole, pc, "", place, message)


def _called(row: Invoke) -> str:
    return f"{short(java(row.receiver or ''))}.{with_parameters(row.name, row.params)}"


def _in_call(says: Callable[[str], str]) -> Callable[[str, Invoke], Finding]:
    return lambda letter, row: _at(letter, says(_called(row)), row.cls, row.method, row.pc)


def _in_method(says: str) -> Callable[[str, Any], Finding]:
    return lambda letter, row: _at(letter, says, row.cls, row.method)


def _in_field(says: str) -> Callable[[str, FieldDecl], Finding]:
    def found(letter: str, row: FieldDecl) -> Finding:
        declared = " ".join([*modifiers(row.access), short(type_name(row.type))])
        return Finding(
            letter=letter,
            analysis=name_of(ANALYSES[letter]),
            cls=java(row.cls),
            method="",
            pc=None,
            field=f"{type_name(row.type)} {row.name}",
            place=f"{java(row.cls)}.{row.name}",
            message=says.format(declared=declared),
        )

    return found


def _equals(letter: str, row: MethodDecl) -> Finding:
    says = f"is abstract, and does not override equals(Object): it takes {short(java(row.cls))}"
    return _at(letter, says, row.cls, row.method)


def _pair(letter: str, row: tuple[MethodDecl, MethodDecl]) -> Finding:
    setter, getter = row
    says = f"is synchronized, {with_parameters(getter.name, getter.params)} is not"
    return _at(letter, says, setter.cls, setter.method)


def _plainly(letter: str, row: Any) -> Finding:
    """Return the finding of an analysis without its own sentence: class or method of the row."""
    cls = row if isinstance(row, str) else getattr(row, "cls", "")
    found = repr(row)
    return _at(letter, found, cls, getattr(row, "method", None) or "", getattr(row, "pc", None))


SAYS: Mapping[str, Callable[[str, Any], Finding]] = MappingProxyType(
    {
        "A": _in_call(lambda call: f"unboxes what has just been boxed, by {call}"),
        "B": _in_field("is {declared}, in a final class"),
        "C": lambda letter, name: _at(
            letter, "is Cloneable, and neither has clone() nor calls it", name
        ),
        "D": _in_method("does not call super.clone()"),
        "E": _in_call(lambda call: f"calls {call}"),
        "F": _in_call(lambda call: f"calls {call}"),
        "G": _in_call(lambda call: f"calls {call}, and its class is no privileged action"),
        "H": _equals,
        "I": _in_method("is public, should be protected"),
        "J": _in_method("catches IllegalMonitorStateException"),
        "K": _in_field("is {declared}, which all can change and only its package reads"),
        "L": _in_field("is {declared}, which all can set"),
        "M": lambda letter, row: _at(
            letter, f"is Serializable, {java(row.outer)} around it is not", row.inner
        ),
        "N": _in_call(lambda call: f"calls {call} outside of Swing's thread"),
        "O": _pair,
    }
)
"""The function from a row to a finding, by letter."""
