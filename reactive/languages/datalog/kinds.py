"""The types of a program: what kind of values each name stands for.

Subtypes and unions have the kind of what they are made of. Kinds are what matters when values are
computed and compared: numbers, unsigned numbers, floats, symbols, and each type of records and
each algebraic data type by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from optimizer.record import record
from reactive.languages.datalog import rows
from reactive.languages.datalog.places import Span, near, wrong
from reactive.languages.datalog.syntax import Branch, Column, Definition

Family = Literal["number", "unsigned", "float", "symbol", "record", "data"]


@record
class Kind:
    """What values are; of a record or other data, of which type."""

    family: Family
    type: str = ""

    def __str__(self) -> str:
        return self.type or self.family


NUMBER, UNSIGNED = Kind("number"), Kind("unsigned")
FLOAT, SYMBOL = Kind("float"), Kind("symbol")
PRIMITIVE = {"number": NUMBER, "unsigned": UNSIGNED, "float": FLOAT, "symbol": SYMBOL}
INTEGERS = frozenset({"number", "unsigned"})
NUMBERS = frozenset({*INTEGERS, "float"})
COMPARED = frozenset({*NUMBERS, "symbol"})


@record
class Field:
    """A column with its kind, and the name that it has in Python."""

    name: str
    kind: Kind
    attribute: str


class Types:
    """The types of a program, by name."""

    def __init__(self, definitions: Iterable[Definition]) -> None:
        self._definitions: dict[str, Definition] = {}
        self._branches: dict[str, tuple[Kind, tuple[Column, ...]]] = {}
        self._kinds: dict[str, Kind] = dict(PRIMITIVE)
        for definition in definitions:
            self._define(definition)
        for definition in self._definitions.values():
            self._check(definition)

    def kind(self, name: str, at: Span) -> Kind:
        """The kind of the values of a type."""
        return self._kind(name, at, ())

    def fields(self, columns: Iterable[Column]) -> tuple[Field, ...]:
        """Columns with their kinds."""
        columns = tuple(columns)
        names = rows.field_names([column.name for column in columns])
        return tuple(
            Field(column.name, self.kind(column.type, column.at), name)
            for column, name in zip(columns, names, strict=True)
        )

    def record_fields(self, kind: Kind) -> tuple[Field, ...]:
        """The columns of a type of records."""
        return self.fields(self._definitions[kind.type].record or ())

    def branch(self, branch: Branch) -> tuple[Kind, tuple[Field, ...]]:
        """The type that a branch is of, and its columns."""
        found = self._branches.get(branch.name)
        if found is None:
            remedy = near(branch.name, self._branches, "there are")
            raise wrong(branch.at, f"no type has a branch {branch.name!r}", remedy)
        return found[0], self.fields(found[1])

    def record_class(self, kind: Kind) -> Any:
        """The class of the records of a type."""
        return class_of(kind.type, self.record_fields(kind))

    def branch_class(self, name: str, fields: tuple[Field, ...]) -> Any:
        """The class of the values of a branch, which begin with its name."""
        return class_of(name, (Field(rows.TAG, SYMBOL, rows.TAG), *fields))

    def _define(self, definition: Definition) -> None:
        name = definition.name
        if name in PRIMITIVE or name in self._definitions:
            raise wrong(definition.at, f"there is a type {name!r} already")
        self._definitions[name] = definition
        for branch, columns in definition.branches:
            if branch in self._branches:
                raise wrong(definition.at, f"there is a branch {branch!r} already")
            self._branches[branch] = Kind("data", name), columns

    def _check(self, definition: Definition) -> None:
        self.kind(definition.name, definition.at)
        for columns in (definition.record or (), *(some for _, some in definition.branches)):
            self.fields(columns)

    def _kind(self, name: str, at: Span, through: tuple[str, ...]) -> Kind:
        if name in self._kinds:
            return self._kinds[name]
        definition = self._definitions.get(name)
        if definition is None:
            known = [*PRIMITIVE, *self._definitions]
            raise wrong(at, f"there is no type {name!r}", near(name, known, "there are"))
        if name in through:
            raise wrong(definition.at, f"type {name!r} is made of itself")
        self._kinds[name] = found = self._made_of(definition, (*through, name))
        return found

    def _made_of(self, definition: Definition, through: tuple[str, ...]) -> Kind:
        if definition.record is not None:
            return Kind("record", definition.name)
        if definition.branches:
            return Kind("data", definition.name)
        found = {self._kind(name, definition.at, through) for name in definition.of}
        if len(found) > 1:
            kinds = " and ".join(sorted(map(str, found)))
            raise wrong(definition.at, f"type {definition.name!r} is of {kinds}, which differ")
        return found.pop()


def class_of(name: str, fields: Iterable[Field]) -> Any:
    """The class of rows with some columns."""
    return rows.row_class(name, tuple((field.name, field.kind.family) for field in fields))
