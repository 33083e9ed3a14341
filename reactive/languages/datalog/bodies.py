"""The goals of a rule as a query: one binding for each atom, and an expression for each variable.

    path(x, y), edge(y, z), !gone(z)        anti_join on edge.b == gone.a
                                              join on path.b == edge.a
        x  path.a                               path
        y  path.b                               edge
        z  edge.b                             gone

An atom that shares a variable is joined before one that does not; a test is applied as soon as its
variables have values. An atom whose row is not read later is a semi join, unless it is counted.

The arguments of an atom: equations that a row must satisfy, and values that it gives to variables.

edge(x, [y, 3])         x bound: an equation with x      row.a == x
                                                         row.b is not None
                        y new: a value for y             y = row.b[0]
                                                         row.b[1] == 3
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from optimizer import plan
from optimizer.expr import (
    FALSE,
    NONE,
    Attribute,
    Expr,
    Lifted,
    Operation,
    Parameter,
    conjunction,
    constant,
    one_value,
    reads,
    substitute,
)
from optimizer.plans.properties import free
from reactive.languages.datalog import inference, rules
from reactive.languages.datalog.expressions import Expressions, Values, each, item, lift_body
from reactive.languages.datalog.inference import KindedColumn
from reactive.languages.datalog.tokens import wrong


class Relations(Protocol):
    """The relations that a rule reads: their plans, fields and kinds."""

    def node(self, name: str) -> plan.Node:
        """Return the rows of a relation."""
        ...

    def fields(self, name: str) -> tuple[KindedColumn, ...]:
        """Return the columns of a relation."""
        ...

    def unit(self) -> plan.Node:
        """Return the plan of one row without values."""
        ...


class BodyQuery:
    """A query with a row for each assignment of variables that satisfies some goals.

    Parameters
    ----------
    add_total: the function that gives the result of an aggregate its value.
    around: the variables of the rule around the aggregate whose body the goals are.
    counts: True if the number of assignments matters.
    """

    def __init__(
        self,
        relations: Relations,
        expressions: Expressions,
        add_total: Callable[[BodyQuery, rules.TotalTerm, frozenset[str]], None],
        around: frozenset[str] = frozenset(),
        *,
        counts: bool = False,
    ) -> None:
        self.relations = relations
        self.expressions = expressions
        self._add_total = add_total
        self._around = around
        self._counts = counts
        self.names: list[str] = []
        self.values: dict[str, Expr] = {}
        self.held: list[rules.Goal] = []
        """The goals that were added."""
        self._node: plan.Node | None = None

    @property
    def node(self) -> plan.Node:
        """The query so far; one row if there is nothing in it."""
        if self._node is None:
            self.begin(self.relations.unit(), "unit")
        assert self._node is not None
        return self._node

    @property
    def is_empty(self) -> bool:
        """Return True if no goal has been added."""
        return self._node is None

    def inner(self) -> BodyQuery:
        """Return an empty one, for an aggregate in this one."""
        around = self._around.union(self.values)
        of = (self.relations, self.expressions, self._add_total)
        return BodyQuery(*of, around, counts=True)

    @property
    def counts(self) -> bool:
        """Return True if the number of its rows matters."""
        return self._counts

    def begin(self, node: plan.Node, name: str) -> None:
        """Begin with the rows of a query of one binding."""
        self._node, self.names = node, [name]

    def hold(self, goals: Sequence[rules.Goal], needed: Iterable[str]) -> list[rules.Goal]:
        """Add goals in a suitable order; return the goals whose variables never get values.

        `needed` are the variables that are read later.
        """
        waiting, later = list(goals), frozenset(needed)
        while waiting:
            goal = self._next(waiting, later)
            if goal is None:
                return waiting
            waiting = [other for other in waiting if other is not goal]
            self._hold(goal, waiting, later)
            self.held.append(goal)
        return []

    # Which is next.

    def _next(self, waiting: Sequence[rules.Goal], later: frozenset[str]) -> rules.Goal | None:
        """Return the goal to add next: a test, else the best atom; None if none can be added."""
        for goal in waiting:
            if isinstance(
                goal, rules.Truth | rules.Comparison | rules.RangeTerm
            ) and self._is_ready(goal):
                return goal
        atoms = [goal for goal in waiting if isinstance(goal, rules.Atom)]
        if atoms:
            return max(atoms, key=lambda atom: self._rank(atom, waiting, later))
        for goal in waiting:
            if self._is_ready(goal) or (
                isinstance(goal, rules.TotalTerm) and self._is_asked(goal, waiting)
            ):
                return goal
        return None

    def _is_ready(self, goal: rules.Goal) -> bool:
        """Return True if the known variables suffice for a goal, or for it to bind others."""
        match goal:
            case rules.Comparison("=", left, right):
                known = (not self._is_open(left), not self._is_open(right))
                return all(known) or (known[0] and _binds(right)) or (known[1] and _binds(left))
            case rules.Negation(atom):
                return all(map(self._has, atom.arguments))
            case rules.RangeTerm(_, functor):
                return self._has(functor)
            case rules.TotalTerm():
                return False
            case _:
                return all(name in self.values for name in rules.names_in(goal))

    def _is_asked(self, total: rules.TotalTerm, waiting: Sequence[rules.Goal]) -> bool:
        """Return True if the outer variables of an aggregate have values."""
        others = [goal for goal in waiting if goal is not total]
        around = {
            *self._around,
            *rules.variables(*(t for goal in others for t in rules.terms_of(goal))),
        }
        return not any(n in around and n not in self.values for n in rules.names_within(total))

    def _has(self, term: rules.Term) -> bool:
        return all(name in self.values for name in rules.variables(term))

    def _is_open(self, term: rules.Term) -> bool:
        """Return True if the term has no value of its own."""
        return not self._has(term) or any(
            isinstance(part, rules.Unnamed) for part in rules.walk(term)
        )

    def _rank(
        self, atom: rules.Atom, waiting: Sequence[rules.Goal], later: frozenset[str]
    ) -> tuple[bool, bool, bool]:
        """Return the rank of an atom for the next place; the first of the highest rank is taken."""
        new = {name for name in rules.variables(atom) if name not in self.values}
        is_joined = len(new) < len(rules.variables(atom))
        is_read = bool(new & self._needed_variables(atom, waiting, later))
        if self.is_empty:
            return is_read, is_joined, False
        return not new, is_joined, is_read

    def _needed_variables(
        self, atom: rules.Goal, waiting: Sequence[rules.Goal], later: frozenset[str]
    ) -> set[str]:
        """Return the variables that are read beside an atom."""
        return {*later, *rules.names_in(*(goal for goal in waiting if goal is not atom))}

    # Holding one.

    def _hold(self, goal: rules.Goal, waiting: list[rules.Goal], later: frozenset[str]) -> None:
        """Add a goal to the query, so that only rows that meet it are left."""
        match goal:
            case rules.Truth(value):
                if not value:
                    self.where(FALSE)
            case rules.Comparison():
                self._compare(goal)
            case rules.Atom():
                self._join(goal, waiting, later)
            case rules.Negation(atom):
                node = self.node
                self._node = self._anti_join(node, self.names, atom, self.values)
            case rules.RangeTerm(result, functor):
                values = each(self.expressions, functor, self.values)
                node = self.node
                self._node = plan.Unnest(node, lift_body(values, self.names))
                self.define(result, self._append_binding(functor.name))
            case rules.TotalTerm():
                self._add_total(self, goal, frozenset(self._needed_variables(goal, waiting, later)))

    def where(self, test: Expr) -> None:
        """Keep the rows that satisfy a test."""
        node = self.node
        self._node = plan.Where(node, lift_body(test, self.names))

    def define(self, result: rules.Variable, value: Expr) -> None:
        """Give a variable its value, or compare it with the one that it has."""
        if result.name in self.values:
            self.where(Operation("==", (self.values[result.name], value)))
        else:
            self.values[result.name] = value

    def joined(self, node: plan.Node, name: str) -> Expr:
        """Go on with a query that has one binding more, and the expression for that."""
        self._node = node
        return self._append_binding(name)

    def _append_binding(self, name: str) -> Expr:
        """Add a binding with a free name like `name`, and return its parameter."""
        self.names.append(_another(name, self.names))
        return Parameter(len(self.names) - 1)

    def _compare(self, goal: rules.Comparison) -> None:
        """Add a comparison: `=` with an open side binds the variables of that side."""
        match goal:
            case rules.Comparison("=", left, right) if self._is_open(left):
                self._fit(left, self.expressions.of(right, self.values))
            case rules.Comparison("=", left, right) if self._is_open(right):
                self._fit(right, self.expressions.of(left, self.values))
            case _:
                self.where(self.expressions.comparison(goal, self.values))

    def _fit(self, term: rules.Term, value: Expr) -> None:
        """Match a term with a value: known parts become conditions, other variables get values."""
        pattern = TermPattern(self.values, self.expressions)
        pattern.fit(term, value)
        for test in (*pattern.tests, *(Operation("==", pair) for pair in pattern.keys)):
            self.where(test)
        self.values |= pattern.gives

    def _join(self, atom: rules.Atom, waiting: list[rules.Goal], later: frozenset[str]) -> None:
        """Join the relation of an atom; a semi-join if none of its new variables is read."""
        relations = self.relations
        pattern = TermPattern(self.values, self.expressions)
        pattern.fit_row(atom, relations.fields(atom.name))
        name = inference.identifier(atom.name)
        right = pattern.rows(relations.node(atom.name), name)
        right = self._without_early(right, name, pattern, waiting)
        if self._node is None:
            self.begin(right, name)
            self.values |= pattern.gives
            return
        match = match_keys(pattern.keys, self.names, name)
        is_read = not self._needed_variables(atom, waiting, later).isdisjoint(pattern.gives)
        if not is_read and not self._counts:
            self._node = plan.SemiJoin(self._node, right, match)
            return
        row = self.joined(join_nodes(self._node, right, match), name)
        self.values |= {name: substitute(e, (row,)) for name, e in pattern.gives.items()}

    def _without_early(
        self, right: plan.Node, name: str, pattern: TermPattern, waiting: list[rules.Goal]
    ) -> plan.Node:
        """Return the rows of an atom without those that a negation on this atom alone refuses.

        Such negations are removed from `waiting`.
        """
        if free(right):
            return right
        for goal in [goal for goal in waiting if isinstance(goal, rules.Negation)]:
            read = rules.variables(goal.atom)
            if read and all(each in pattern.gives for each in read):
                right = self._anti_join(right, [name], goal.atom, pattern.gives)
                waiting.remove(goal)
                self.held.append(goal)
        return right

    def _anti_join(
        self, node: plan.Node, names: Sequence[str], atom: rules.Atom, values: dict[str, Expr]
    ) -> plan.AntiJoin:
        """Return the rows that have no match for an atom."""
        relations = self.relations
        pattern = TermPattern(values, self.expressions)
        pattern.fit_row(atom, relations.fields(atom.name))
        name = inference.identifier(atom.name)
        right = pattern.rows(relations.node(atom.name), name)
        return plan.AntiJoin(node, right, match_keys(pattern.keys, names, name))

    def split_negated(self, negation: rules.Negation) -> plan.Node:
        """Keep the rows that have no match for a negated atom, and return the other rows."""
        kept = self._anti_join(self.node, self.names, negation.atom, self.values)
        self._node = kept
        return plan.SemiJoin(kept.left, kept.right, kept.match)

    def tests_of_pair(
        self, pair: Sequence[rules.Atom], goals: Sequence[rules.Goal], of: plan.Node
    ) -> list[Lifted] | None:
        """Return the tests that two rows of a relation match two atoms, and meet other goals.

        `of` is a query of the pairs of rows. Return None if the goals are more than tests.
        """
        self._node, self.names = of, ["row", "other"]
        for place, atom in enumerate(pair):
            pattern = TermPattern(self.values, self.expressions)
            pattern.fit_row(atom, self.relations.fields(atom.name))
            row = (Parameter(place),)
            for test in pattern.tests:
                self.where(substitute(test, row))
            for known, value in pattern.keys:
                self.where(Operation("==", (known, substitute(value, row))))
            self.values |= {name: substitute(e, row) for name, e in pattern.gives.items()}
        if not all(isinstance(goal, rules.Truth | rules.Comparison) for goal in goals):
            return None
        if self.hold(goals, ()):
            return None
        found: list[Lifted] = []
        while isinstance(self._node, plan.Where):
            assert isinstance(self._node.predicate, Lifted)
            found.append(self._node.predicate)
            self._node = self._node.input
        return found[::-1] if self._node is of else None

    # The whole.

    def rows_of(self, terms: Sequence[rules.Term]) -> list[Expr]:
        """Return the values of terms as expressions of the rows."""
        return [self.expressions.of(term, self.values) for term in terms]


def _binds(term: rules.Term) -> bool:
    """Return True if a value that equals the term determines all its variables."""
    match term:
        case rules.Variable():
            return True
        case rules.RecordTerm(items) | rules.Branch(_, items):
            return all(_binds(each) or not rules.variables(each) for each in items)
        case _:
            return False


def _another(name: str, taken: Sequence[str]) -> str:
    """Return the name, with a number if it is taken."""
    numbered = (f"{name}{number or ''}" for number in range(len(taken) + 1))
    return next(each for each in numbered if each not in taken)


def match_keys(
    keys: Sequence[tuple[Expr, Expr]], names: Sequence[str], name: str, on: Expr | None = None
) -> plan.Match:
    """Return the condition that rows match if their keys are equal and a test is true."""
    test = None if on is None else lift_body(on, (*names, name))
    if not keys:
        return plan.Match(on=test)
    left = lift_body(one_value([known for known, _ in keys]), names)
    return plan.Match(left, lift_body(one_value([value for _, value in keys]), (name,)), test)


def join_nodes(left: plan.Node, right: plan.Node, match: plan.Match) -> plan.Node:
    """Return the pairs of rows that match."""
    return plan.Product(left, right) if match == plan.Match() else plan.Join(left, right, match)


def stuck(goals: Sequence[rules.Goal]) -> Exception:
    """Return the error of goals that wait for each other's variables."""
    at = goals[0].at
    return wrong(at, f"{at.words()} depends on itself", "bind its variables by an atom")


ROW = Parameter(0)


class TermPattern:
    """Matches terms with values of a row; collects keys, tests, and the variables' values."""

    def __init__(self, values: Values, expressions: Expressions) -> None:
        self._values = values
        self._expressions = expressions
        self.tests: list[Expr] = []
        """Tests that the row must satisfy."""
        self.keys: list[tuple[Expr, Expr]] = []
        """Pairs of a known value and the expression of the row that must equal it."""
        self.gives: dict[str, Expr] = {}
        """Values that the row gives to variables without a value."""

    def fit_row(self, atom: rules.Atom, fields: Sequence[KindedColumn]) -> None:
        """Compare the arguments of an atom with a row that is the only binding."""
        for argument, field in zip(atom.arguments, fields, strict=True):
            self.fit(argument, Attribute(ROW, field.attribute))

    def fit(self, term: rules.Term, value: Expr) -> None:
        """Compare a term with a value of the row."""
        match term:
            case rules.Unnamed():
                pass
            case rules.Variable(name) if name in self.gives:
                self.tests.append(Operation("==", (self.gives[name], value)))
            case rules.Variable(name) if name not in self._values:
                self.gives[name] = value
            case rules.Variable(name):
                self._equal(self._values[name], value)
            case rules.Nil():
                self.tests.append(Operation("is", (value, NONE)))
            case rules.RecordTerm(items):
                self.tests.append(Operation("is not", (value, NONE)))
                for place, each in enumerate(items):
                    self.fit(each, item(value, place))
            case rules.Branch(name, items):
                self.tests.append(Operation("==", (item(value, 0), constant(name))))
                for place, each in enumerate(items, 1):
                    self.fit(each, item(value, place))
            case _:
                self._equal(self._expressions.of(term, self._values), value)

    def _equal(self, known: Expr, value: Expr) -> None:
        """Require that a value equals a known one: by a join key, or a test of one row."""
        if reads(known):
            self.keys.append((known, value))
        else:
            self.tests.append(Operation("==", (value, known)))

    def rows(self, node: plan.Node, name: str) -> plan.Node:
        """Return the rows that satisfy the tests."""
        if not self.tests:
            return node
        return plan.Where(node, lift_body(conjunction(tuple(self.tests)), (name,)))
