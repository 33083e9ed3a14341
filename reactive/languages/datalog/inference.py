"""The types of a program: what kind of values each name stands for.

Subtypes and unions have the kind of their base types. Computations and comparisons depend on kinds:
numbers, unsigned numbers, floats, symbols, each record type and each algebraic data type.

The classes of rows and records: named tuples whose fields are the columns.

A class is the same for all declarations of the same columns, also in other programs and processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from keyword import iskeyword
from typing import Any, Literal, NamedTuple

from optimizer.kinds.fields import class_maker
from optimizer.record import record
from reactive.engine.storage.row_check import ALWAYS_STRICT
from reactive.engine.transactions.row_gate import FROM_TUPLES
from reactive.languages.datalog import rules
from reactive.languages.datalog.tokens import Span, suggest_name, wrong

KINDS: dict[str, Any] = {"number": int, "unsigned": int, "float": float, "symbol": str}
"""The classes of column values; records and other data have no declared class."""
TAG = "branch"
"""The first field of a value of an algebraic data type, which has the name of its branch."""


@class_maker
def row_class(name: str, columns: tuple[tuple[str, str], ...]) -> Any:
    """Return the class of rows with the given columns, each with the name of its kind.

    >>> import pickle
    >>> Path = row_class("path", (("from", "number"), ("to", "number")))
    >>> row = Path(1, 2)
    >>> row, row == (1, 2), type(pickle.loads(pickle.dumps(row))) is Path
    (path(from_=1, to=2), True, True)
    """
    names = field_names([column for column, _ in columns])
    fields = [
        (name, KINDS.get(kind, object)) for name, (_, kind) in zip(names, columns, strict=True)
    ]
    make: Any = NamedTuple
    made = make(identifier(name), fields)
    made.__module__ = __name__
    setattr(made, ALWAYS_STRICT, True)
    setattr(made, FROM_TUPLES, True)
    made.__reduce__ = lambda row: (_row, (name, columns, tuple(row)))
    made.__doc__ = f"A row of {name!r}: {', '.join(column for column, _ in columns)}."
    return made


def _row(name: str, columns: tuple[tuple[str, str], ...], values: tuple[Any, ...]) -> Any:
    """Return a row again, from a pickle."""
    return row_class(name, columns)(*values)


def identifier(name: str) -> str:
    """Return a name as Python has it.

    >>> identifier("from"), identifier("?x"), identifier("_y"), identifier("g.edge")
    ('from_', 'q_x', 'q_y', 'g_edge')
    """
    plain = name.replace(".", "_").replace("?", "_")
    plain = f"q{plain}" if plain.startswith("_") else plain
    return f"{plain}_" if iskeyword(plain) else plain


def field_names(columns: list[str]) -> list[str]:
    """Return a different name of a field for each column."""
    found: list[str] = []
    for column in columns:
        name = identifier(column)
        while name in found:
            name += "_"
        found.append(name)
    return found


Family = Literal["number", "unsigned", "float", "symbol", "record", "data"]


@record
class Kind:
    """The kind of values; for a record or algebraic data also its type."""

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
class KindedColumn:
    """A column with its kind, and the name that it has in Python."""

    name: str
    kind: Kind
    attribute: str


class ProgramTypes:
    """The types of a program, by name."""

    def __init__(
        self,
        definitions: Iterable[rules.TypeDefinition],
        functors: Iterable[rules.FunctorDeclaration] = (),
    ) -> None:
        self._definitions: dict[str, rules.TypeDefinition] = {}
        self._branches: dict[str, tuple[Kind, tuple[rules.DeclaredColumn, ...]]] = {}
        self._kinds: dict[str, Kind] = dict(PRIMITIVE)
        for definition in definitions:
            self._define(definition)
        for definition in self._definitions.values():
            self._check(definition)
        self.functors: dict[str, tuple[tuple[Kind, ...], Kind]] = {}
        """The kinds of the arguments and of the result of each functor of the user."""
        for each in functors:
            if each.name in self.functors:
                raise wrong(each.at, f"there is a functor {each.name!r} already")
            kinds = tuple(self.kind(name, each.at) for name in each.arguments)
            self.functors[each.name] = kinds, self.kind(each.result, each.at)

    def kind(self, name: str, at: Span) -> Kind:
        """Return the kind of the values of a type."""
        return self._kind(name, at, ())

    def fields(self, columns: Iterable[rules.DeclaredColumn]) -> tuple[KindedColumn, ...]:
        """Return the columns of a relation with their kinds."""
        columns = tuple(columns)
        names = field_names([column.name for column in columns])
        return tuple(
            KindedColumn(column.name, self.kind(column.type, column.at), name)
            for column, name in zip(columns, names, strict=True)
        )

    def record_fields(self, kind: Kind) -> tuple[KindedColumn, ...]:
        """Return the columns of a type of records."""
        return self.fields(self._definitions[kind.type].record or ())

    def is_ordered(self, kind: Kind) -> bool:
        """Return True if values of a kind have an order: no float is inside of a record."""
        waiting, seen = [kind], {kind}
        while waiting:
            each = waiting.pop()
            fields: list[KindedColumn] = []
            if each.family == "record":
                fields = [*self.record_fields(each)]
            elif each.family == "data":
                own = [some for of, some in self._branches.values() if of == each]
                fields = [field for some in own for field in self.fields(some)]
            elif each.family == "float" and each != kind:
                return False
            new = {field.kind for field in fields} - seen
            seen |= new
            waiting += new
        return True

    def branch(self, branch: rules.Branch) -> tuple[Kind, tuple[KindedColumn, ...]]:
        """Return the type of a branch, and its columns; raises if no type has the branch."""
        found = self._branches.get(branch.name)
        if found is None:
            remedy = suggest_name(branch.name, self._branches, "there are")
            raise wrong(branch.at, f"no type has a branch {branch.name!r}", remedy)
        return found[0], self.fields(found[1])

    def branch_fields(self, name: str, kind: Kind) -> tuple[KindedColumn, ...]:
        """Return the columns of a branch of a type; raises `ValueError` if it has none."""
        found = self._branches.get(name)
        if found is None or found[0] != kind:
            raise ValueError(f"type {kind} has no branch {name!r}")
        return self.fields(found[1])

    def functor(self, functor: rules.Functor) -> tuple[tuple[Kind, ...], Kind]:
        """Return the kinds of a functor of the user; raises if it is not declared."""
        name = functor.name[1:]
        if name not in self.functors:
            remedy = suggest_name(name, self.functors) or f"declare it by .functor {name}(...)"
            raise wrong(functor.at, f"there is no functor {functor.name!r}", remedy)
        return self.functors[name]

    def records(self) -> Iterator[Kind]:
        """Yield the kinds of records."""
        for name, definition in self._definitions.items():
            if definition.record is not None:
                yield self.kind(name, definition.at)

    def record_class(self, kind: Kind) -> Any:
        """Return the class of the records of a type."""
        return class_of(kind.type, self.record_fields(kind))

    def branch_class(self, name: str, fields: tuple[KindedColumn, ...]) -> Any:
        """Return the class of the values of a branch, which begin with its name."""
        return class_of(name, (KindedColumn(TAG, SYMBOL, TAG), *fields))

    def _define(self, definition: rules.TypeDefinition) -> None:
        """Note a type and its branches; refuses names that are taken."""
        name = definition.name
        if name in PRIMITIVE or name in self._definitions:
            raise wrong(definition.at, f"there is a type {name!r} already")
        self._definitions[name] = definition
        for branch, columns in definition.branches:
            if branch in self._branches:
                raise wrong(definition.at, f"there is a branch {branch!r} already")
            self._branches[branch] = Kind("data", name), columns

    def _check(self, definition: rules.TypeDefinition) -> None:
        self.kind(definition.name, definition.at)
        for columns in (definition.record or (), *(some for _, some in definition.branches)):
            self.fields(columns)

    def _kind(self, name: str, at: Span, through: tuple[str, ...]) -> Kind:
        """Return the kind of a type; refuses unknown types, and types made of themselves."""
        if name in self._kinds:
            return self._kinds[name]
        definition = self._definitions.get(name)
        if definition is None:
            known = [*PRIMITIVE, *self._definitions]
            raise wrong(at, f"there is no type {name!r}", suggest_name(name, known, "there are"))
        if name in through:
            raise wrong(definition.at, f"type {name!r} is made of itself")
        self._kinds[name] = found = self._made_of(definition, (*through, name))
        return found

    def _made_of(self, definition: rules.TypeDefinition, through: tuple[str, ...]) -> Kind:
        """Return the kind that a definition gives; refuses a union of different kinds."""
        if definition.record is not None:
            return Kind("record", definition.name)
        if definition.branches:
            return Kind("data", definition.name)
        found = {self._kind(name, definition.at, through) for name in definition.of}
        if len(found) > 1:
            kinds = " and ".join(sorted(map(str, found)))
            raise wrong(definition.at, f"type {definition.name!r} is of {kinds}, which differ")
        return found.pop()


def class_of(name: str, fields: Iterable[KindedColumn]) -> Any:
    """Return the class of rows with some columns."""
    return row_class(name, tuple((field.name, field.kind.family) for field in fields))
