"""Find out the kind of every term of a rule, and refuse terms of two.

Each term has a cell, and what must be of one kind is one cell. The columns of relations say what
it is; a number that is written out is what stands beside it, else a `number`.

Source: unification, as in Milner, *A Theory of Type Polymorphism in Programming*, 1978.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from optimizer.errors import PlanError
from reactive.languages.datalog.functors import SIGNATURES, TESTS, Signature
from reactive.languages.datalog.kinds import (
    COMPARED,
    FLOAT,
    INTEGERS,
    NUMBER,
    NUMBERS,
    PRIMITIVE,
    SYMBOL,
    UNSIGNED,
    Field,
    Kind,
    Types,
)
from reactive.languages.datalog.places import Span, wrong
from reactive.languages.datalog.rules import Each, Goal, Rule, Total
from reactive.languages.datalog.syntax import (
    Aggregate,
    Atom,
    Branch,
    Cast,
    Comparison,
    Functor,
    Negation,
    Nil,
    Number,
    Record,
    Term,
    Text,
    Unnamed,
    Variable,
)

Columns = Mapping[str, tuple[Field, ...]]
FAMILIES = {"n": NUMBERS, "i": INTEGERS, "c": COMPARED}


class _Cell:
    """What is known of some terms that are of one kind."""

    __slots__ = ("families", "kind", "same")

    def __init__(self, kind: Kind | None = None, families: frozenset[str] | None = None) -> None:
        self.same: _Cell | None = None
        self.kind = kind
        self.families = families

    def root(self) -> _Cell:
        """Return the cell that stands for all that are the same; the way there is made short."""
        found = self
        while found.same is not None:
            found = found.same
        each = self
        while each.same is not None:
            each.same, each = found, each.same
        return found


class Kinds:
    """The kinds of the terms and variables of a rule."""

    def __init__(self, rule: Rule, columns: Columns, types: Types) -> None:
        self._columns = columns
        self._types = types
        self._cells: dict[int, _Cell] = {}
        self._variables: dict[str, _Cell] = {}
        self._records: list[Record] = []
        self._known: list[Term] = []  # so that no other term gets the id of one of them
        self._atom(rule.head)
        self._goals(rule.goals)
        self._settle_records()

    def of(self, term: Term) -> Kind:
        """The kind of a term."""
        if isinstance(term, Variable):
            return self.variable(term.name)
        return _settled(self._cells[id(term)])

    def variable(self, name: str) -> Kind:
        """The kind of a variable."""
        return _settled(self._variables[name])

    # Goals.

    def _goals(self, goals: Sequence[Goal]) -> None:
        for goal in goals:
            match goal:
                case Atom():
                    self._atom(goal)
                case Negation(atom):
                    self._atom(atom)
                case Comparison():
                    self._comparison(goal)
                case Each(result, functor):
                    self._same(self._cell(result), self._cell(functor), goal.at)
                case Total():
                    self._total(goal)

    def _atom(self, atom: Atom) -> None:
        for argument, field in zip(atom.arguments, self._columns[atom.name], strict=True):
            self._same(self._cell(argument), _Cell(field.kind), argument.at)

    def _comparison(self, goal: Comparison) -> None:
        left, right = self._cell(goal.left), self._cell(goal.right)
        if goal.sign.lstrip("!") in TESTS:
            self._same(left, _Cell(SYMBOL), goal.left.at)
            self._same(right, _Cell(SYMBOL), goal.right.at)
            return
        self._same(left, right, goal.at)
        if goal.sign not in ("=", "!="):
            self._same(left, _Cell(None, COMPARED), goal.at)

    def _total(self, total: Total) -> None:
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

    def _cell(self, term: Term) -> _Cell:
        if isinstance(term, Variable):
            return self._variables.setdefault(term.name, _Cell())
        found = self._cells.get(id(term))
        if found is None:
            found = self._cells[id(term)] = self._new(term)
            self._known.append(term)
        return found

    def _new(self, term: Term) -> _Cell:
        match term:
            case Number(value, is_unsigned):
                if is_unsigned:
                    return _Cell(UNSIGNED)
                return _Cell(FLOAT) if isinstance(value, float) else _Cell(None, NUMBERS)
            case Text():
                return _Cell(SYMBOL)
            case Nil():
                return _Cell(None, frozenset({"record"}))
            case Record(items):
                self._records.append(term)
                for item in items:
                    self._cell(item)
                return _Cell(None, frozenset({"record"}))
            case Branch(_, items):
                return self._branch(term)
            case Functor():
                return self._functor(term)
            case Cast():
                return self._cast(term)
            case Unnamed():
                return _Cell()
            case Aggregate():
                raise TypeError("aggregates are no terms of rules")
            case _:
                raise TypeError(f"no term: {type(term).__name__}")

    def _branch(self, branch: Branch) -> _Cell:
        kind, fields = self._types.branch(branch)
        _check_count(branch.at, f"branch {branch.name!r}", len(fields), len(branch.items))
        for item, field in zip(branch.items, fields, strict=True):
            self._same(self._cell(item), _Cell(field.kind), item.at)
        return _Cell(kind)

    def _functor(self, functor: Functor) -> _Cell:
        signature = _signature(functor)
        letters = {letter: _Cell(None, FAMILIES[letter]) for letter in FAMILIES}

        def cell(name: str) -> _Cell:
            return letters[name] if name in letters else _Cell(PRIMITIVE[name])

        last = len(signature.arguments) - 1
        for place, argument in enumerate(functor.arguments):
            expected = cell(signature.arguments[min(place, last)])
            self._same(self._cell(argument), expected, argument.at)
        return cell(signature.result)

    def _cast(self, cast: Cast) -> _Cell:
        kind = self._types.kind(cast.type, cast.at)
        of = self._cell(cast.of)
        if kind.family in INTEGERS:
            self._same(of, _Cell(None, INTEGERS), cast.at)
        else:
            self._same(of, _Cell(kind), cast.at)
        return _Cell(kind)

    def _settle_records(self) -> None:
        """Give the items of records their kinds, from those of records that they are in."""
        waiting = list(self._records)
        while waiting:
            left = []
            for record in waiting:  # a record comes before those inside it
                if self._cells[id(record)].root().kind is None:
                    left.append(record)
                else:
                    self._record(record)
            if len(left) == len(waiting):
                remedy = "an atom with such a column, or as(..., type), says it"
                raise wrong(waiting[0].at, "of which type this record is cannot be told", remedy)
            waiting = left

    def _record(self, record: Record) -> None:
        kind = _settled(self._cells[id(record)])
        fields = self._types.record_fields(kind)
        _check_count(record.at, f"a record of type {kind}", len(fields), len(record.items))
        for item, field in zip(record.items, fields, strict=True):
            self._same(self._cell(item), _Cell(field.kind), item.at)

    def _same(self, one: _Cell, other: _Cell, at: Span) -> None:
        """Have two cells be one."""
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
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _settled(cell: _Cell) -> Kind:
    root = cell.root()
    if root.kind is None and root.families is not None and "number" not in root.families:
        return UNSIGNED if "unsigned" in root.families else Kind("record")
    return root.kind or NUMBER


def _differ(at: Span, one: _Cell, other: _Cell) -> PlanError:
    what = f"{at.words()} is of type {_named(one)} and of type {_named(other)}"
    return wrong(at, what, "to_string(), to_number(), itof() and the like make one of the other")


def _named(cell: _Cell) -> str:
    if cell.kind is not None:
        return repr(str(cell.kind))
    return " or ".join(sorted(map(repr, cell.families or ())))


def _signature(functor: Functor) -> Signature:
    signatures = SIGNATURES[functor.name]
    count = len(functor.arguments)
    for signature in signatures:
        least = len(signature.arguments)
        if count == least or (signature.repeats and count > least):
            return signature
    takes = " or ".join(str(len(signature.arguments)) for signature in signatures)
    raise wrong(functor.at, f"{functor.name} takes {takes} arguments, not {count}")


def _check_count(at: Span, what: str, wanted: int, given: int) -> None:
    if wanted != given:
        raise wrong(at, f"{what} has {wanted} columns, not {given}")
