"""Find out the kind of every term of a rule, and refuse terms of two.

Each term has a cell, and cells that must be of one kind are merged. The columns of relations
determine the kinds; a literal number has the kind of the term beside it, else `number`.

Source: unification, as in Milner, *A Theory of Type Polymorphism in Programming*, 1978.

The types of a program: what kind of values each name stands for.

Subtypes and unions have the kind of their base types. Computations and comparisons depend on kinds:
numbers, unsigned numbers, floats, symbols, each record type and each algebraic data type.

The classes of rows and records: named tuples whose fields are the columns.

A class is the same for all declarations of the same columns, also in other programs and processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from keyword import iskeyword
from typing import Any, Literal, NamedTuple

from optimizer.errors import PlanError
from optimizer.kinds.fields import class_maker
from optimizer.record import record
from reactive.engine.storage.row_check import ALWAYS_STRICT
from reactive.languages.datalog import rules
from reactive.languages.datalog.functors import SIGNATURES, TESTS, Signature
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

    def branch(self, branch: rules.Branch) -> tuple[Kind, tuple[KindedColumn, ...]]:
        """Return the type of a branch, and its columns; raises if no type has the branch."""
        found = self._branches.get(branch.name)
        if found is None:
            remedy = suggest_name(branch.name, self._branches, "there are")
            raise wrong(branch.at, f"no type has a branch {branch.name!r}", remedy)
        return found[0], self.fields(found[1])

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


Columns = Mapping[str, tuple[KindedColumn, ...]]
FAMILIES = {"n": NUMBERS, "p": COMPARED, "i": INTEGERS, "c": COMPARED}


class _Cell:
    """The kind of some terms that are of one kind, as far as it is known."""

    __slots__ = ("families", "kind", "same")

    def __init__(self, kind: Kind | None = None, families: frozenset[str] | None = None) -> None:
        self.same: _Cell | None = None
        self.kind = kind
        self.families = families

    def root(self) -> _Cell:
        """Return the cell that represents all merged cells; the path to it is shortened."""
        found = self
        while found.same is not None:
            found = found.same
        each = self
        while each.same is not None:
            each.same, each = found, each.same
        return found


class Kinds:
    """The kinds of the terms and variables of a rule."""

    def __init__(self, rule: rules.Rule, columns: Columns, types: ProgramTypes) -> None:
        self._columns = columns
        self._types = types
        self._cells: dict[int, _Cell] = {}
        self._variables: dict[str, _Cell] = {}
        self._records: list[rules.RecordTerm] = []
        self._known: list[rules.Term] = []  # so that no other term gets the id of one of them
        self._atom(rule.head)
        self._goals(rule.goals)
        self._settle_records()

    def of(self, term: rules.Term) -> Kind:
        """Return the kind of a term."""
        if isinstance(term, rules.Variable):
            return self.variable(term.name)
        return _kind_of_cell(self._cells[id(term)])

    def variable(self, name: str) -> Kind:
        """Return the kind of a variable."""
        return _kind_of_cell(self._variables[name])

    # Goals.

    def _goals(self, goals: Sequence[rules.Goal]) -> None:
        """Require the kinds that the goals of a rule need."""
        for goal in goals:
            match goal:
                case rules.Atom():
                    self._atom(goal)
                case rules.Negation(atom):
                    self._atom(atom)
                case rules.Comparison():
                    self._comparison(goal)
                case rules.RangeTerm(result, functor):
                    self._same(self._cell(result), self._cell(functor), goal.at)
                case rules.TotalTerm():
                    self._total(goal)

    def _atom(self, atom: rules.Atom) -> None:
        for argument, field in zip(atom.arguments, self._columns[atom.name], strict=True):
            self._same(self._cell(argument), _Cell(field.kind), argument.at)

    def _comparison(self, goal: rules.Comparison) -> None:
        """Require that both sides are of one kind, and that this can be compared."""
        left, right = self._cell(goal.left), self._cell(goal.right)
        if goal.sign.lstrip("!") in TESTS:
            self._same(left, _Cell(SYMBOL), goal.left.at)
            self._same(right, _Cell(SYMBOL), goal.right.at)
            return
        self._same(left, right, goal.at)
        if goal.sign not in ("=", "!="):
            self._same(left, _Cell(None, COMPARED), goal.at)

    def _total(self, total: rules.TotalTerm) -> None:
        """Require the kinds of the bodies, target and result of an aggregate."""
        result = self._cell(total.result)
        for body in total.bodies:
            self._goals(body)
        if total.target is None:
            self._same(result, _Cell(None, NUMBERS), total.at)
            return
        target = self._cell(total.target)
        families = COMPARED if total.name in ("min", "max") else NUMBERS
        self._same(target, _Cell(None, families), total.target.at)
        self._same(result, _Cell(FLOAT) if total.name == "mean" else target, total.at)

    # Terms.

    def _cell(self, term: rules.Term) -> _Cell:
        """Return the cell of a term, which is made once; a variable has one by its name."""
        if isinstance(term, rules.Variable):
            return self._variables.setdefault(term.name, _Cell())
        found = self._cells.get(id(term))
        if found is None:
            found = self._cells[id(term)] = self._new(term)
            self._known.append(term)
        return found

    def _new(self, term: rules.Term) -> _Cell:
        """Return a new cell of a term, with what the term itself says of its kind."""
        match term:
            case rules.Number(value, is_unsigned):
                if is_unsigned:
                    return _Cell(UNSIGNED)
                return _Cell(FLOAT) if isinstance(value, float) else _Cell(None, NUMBERS)
            case rules.TextTerm():
                return _Cell(SYMBOL)
            case rules.Nil():
                return _Cell(None, frozenset({"record"}))
            case rules.RecordTerm(items):
                self._records.append(term)
                for item in items:
                    self._cell(item)
                return _Cell(None, frozenset({"record"}))
            case rules.Branch(_, items):
                return self._branch(term)
            case rules.Functor():
                return self._functor(term)
            case rules.Cast():
                return self._cast(term)
            case rules.Unnamed():
                return _Cell()
            case rules.AggregateTerm():
                raise TypeError("aggregates are no terms of rules")
            case _:
                raise TypeError(f"no term: {type(term).__name__}")

    def _branch(self, branch: rules.Branch) -> _Cell:
        """Return the cell of a branch; its items must be of the declared kinds."""
        kind, fields = self._types.branch(branch)
        _check_count(branch.at, f"branch {branch.name!r}", len(fields), len(branch.items))
        for item, field in zip(branch.items, fields, strict=True):
            self._same(self._cell(item), _Cell(field.kind), item.at)
        return _Cell(kind)

    def _functor(self, functor: rules.Functor) -> _Cell:
        """Return the cell of a functor's result; its arguments must fit the signature."""
        if functor.name.startswith("@"):
            return self._own_functor(functor)
        if functor.name == "autoinc":
            for argument in functor.arguments:
                self._cell(argument)
            return _Cell(NUMBER)
        signature = _signature(functor)
        letters = {letter: _Cell(None, FAMILIES[letter]) for letter in FAMILIES}
        letters["a"] = _Cell()

        def cell(name: str) -> _Cell:
            return letters[name] if name in letters else _Cell(PRIMITIVE[name])

        last = len(signature.arguments) - 1
        for place, argument in enumerate(functor.arguments):
            expected = cell(signature.arguments[min(place, last)])
            self._same(self._cell(argument), expected, argument.at)
        return cell(signature.result)

    def _own_functor(self, functor: rules.Functor) -> _Cell:
        """Return the cell of the result of a functor of the user, as it is declared."""
        arguments, result = self._types.functor(functor)
        _check_count(
            functor.at,
            f"functor {functor.name}",
            len(arguments),
            len(functor.arguments),
            "arguments",
        )
        for argument, kind in zip(functor.arguments, arguments, strict=True):
            self._same(self._cell(argument), _Cell(kind), argument.at)
        return _Cell(result)

    def _cast(self, cast: rules.Cast) -> _Cell:
        """Return the cell of a cast; only an integer can be cast, to another integer kind."""
        kind = self._types.kind(cast.type, cast.at)
        of = self._cell(cast.of)
        if kind.family in INTEGERS:
            self._same(of, _Cell(None, INTEGERS), cast.at)
        else:
            self._same(of, _Cell(kind), cast.at)
        return _Cell(kind)

    def _settle_records(self) -> None:
        """Give the items of records their kinds, outer records first.

        Raises if the type of a record is unknown.
        """
        waiting = list(self._records)
        while waiting:
            left = []
            for each in waiting:  # a record comes before its inner records
                if self._cells[id(each)].root().kind is None:
                    left.append(each)
                else:
                    self._record(each)
            if len(left) == len(waiting) and not self._guess(left):
                remedy = "an atom with such a column, or as(..., type), says it"
                raise wrong(waiting[0].at, "of which type this record is cannot be told", remedy)
            waiting = left

    def _guess(self, records: Sequence[rules.RecordTerm]) -> bool:
        """Give a record the only type that has such items; return False if none has only one."""
        for each in records:
            found = [kind for kind in self._types.records() if self._may_be(each, kind)]
            if len(found) == 1:
                self._same(self._cells[id(each)], _Cell(found[0]), each.at)
                return True
        return False

    def _may_be(self, record: rules.RecordTerm, kind: Kind) -> bool:
        """Return True if the items of a record may be the fields of a type."""
        fields = self._types.record_fields(kind)
        if len(fields) != len(record.items):
            return False
        roots = [self._cell(item).root() for item in record.items]
        return all(
            root.kind == field.kind
            if root.kind is not None
            else root.families is None or field.kind.family in root.families
            for root, field in zip(roots, fields, strict=True)
        )

    def _record(self, record: rules.RecordTerm) -> None:
        """Require that the items of a record are of the kinds of its type."""
        kind = _kind_of_cell(self._cells[id(record)])
        fields = self._types.record_fields(kind)
        _check_count(record.at, f"a record of type {kind}", len(fields), len(record.items))
        for item, field in zip(record.items, fields, strict=True):
            self._same(self._cell(item), _Cell(field.kind), item.at)

    def _same(self, one: _Cell, other: _Cell, at: Span) -> None:
        """Merge two cells; raises at `at` if their kinds differ."""
        one, other = one.root(), other.root()
        if one is other:
            return
        if one.kind is not None and other.kind is not None and one.kind != other.kind:
            raise _differ(at, one, other)
        kind = one.kind or other.kind
        families = _both(one.families, other.families)
        if families is not None and (
            not families or (kind is not None and kind.family not in families)
        ):
            raise _differ(at, one, other)
        one.same, other.kind, other.families = other, kind, families


def _both(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    """Return the kinds that both sets allow; None allows all."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _kind_of_cell(cell: _Cell) -> Kind:
    """Return the kind of a cell; if several are left, the first of number, unsigned, record."""
    root = cell.root()
    if root.kind is None and root.families is not None and "number" not in root.families:
        return UNSIGNED if "unsigned" in root.families else Kind("record")
    return root.kind or NUMBER


def _differ(at: Span, one: _Cell, other: _Cell) -> PlanError:
    """Return the error for a term that would be of two kinds."""
    what = f"{at.words()} is of type {_name_of_cell(one)} and of type {_name_of_cell(other)}"
    return wrong(at, what, "to_string(), to_number(), itof() and the like make one of the other")


def _name_of_cell(cell: _Cell) -> str:
    if cell.kind is not None:
        return repr(str(cell.kind))
    return " or ".join(sorted(map(repr, cell.families or ())))


def _signature(functor: rules.Functor) -> Signature:
    """Return the signature for the number of arguments; raises if there is none."""
    signatures = SIGNATURES[functor.name]
    count = len(functor.arguments)
    for signature in signatures:
        least = len(signature.arguments)
        if count == least or (signature.repeats and count > least):
            return signature
    takes = " or ".join(str(len(signature.arguments)) for signature in signatures)
    raise wrong(functor.at, f"{functor.name} takes {takes} arguments, not {count}")


def _check_count(at: Span, what: str, wanted: int, given: int, of: str = "columns") -> None:
    if wanted != given:
        raise wrong(at, f"{what} has {wanted} {of}, not {given}")
