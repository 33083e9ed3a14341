"""Find out the kind of every term of a rule, and refuse terms of two.

Each term has a cell, and cells that must be of one kind are merged. The columns of relations
determine the kinds; a literal number has the kind of the term beside it, else `number`.

Source: unification, as in Milner, *A Theory of Type Polymorphism in Programming*, 1978.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from optimizer.errors import PlanError
from reactive.languages.datalog import rules
from reactive.languages.datalog.functors import SIGNATURES, TESTS, Signature
from reactive.languages.datalog.inference import (
    COMPARED,
    FLOAT,
    INTEGERS,
    NUMBER,
    NUMBERS,
    PRIMITIVE,
    SYMBOL,
    UNSIGNED,
    Kind,
    KindedColumn,
    ProgramTypes,
)
from reactive.languages.datalog.tokens import Span, wrong

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
