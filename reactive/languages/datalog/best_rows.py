"""Relations that keep some of their rows: subsumption and choice domains.

Subsumption deletes the rows that another row dominates:

    path(x, y, c) <= path(x, y, d) :- c >= d.       keeps the row with the least d for each x, y

If one column decides, the recursion keeps the best row of each key (`fixpoint(keep=)`). If another
test of the two rows decides, the recursion keeps the rows of each key that no other dominates, as
the value of a lattice. Otherwise the dominated rows of the finished relation are left out.

    way(v, [t, p]) <= way(v, [s, q]) :- t >= s, p >= q.

    way.undominated(v, rows)       rows joined by key: the union, without the dominated ones
    way(v, c)                      the rows of each key

A choice domain keeps one row for each value of some columns, the one that is derived first:

    .decl tree(v: symbol, u: symbol) choice-domain u
    tree(v, u) :- tree(_, v), edge(v, u).

Rows get a rank, the number of steps from the facts, and the row of the least rank is kept; of
several, the least row. So the choice depends on the facts, not on their history:

    tree.by_rank(v, u, r + 1) :- tree.by_rank(_, v, r), edge(v, u).     kept: the least (r, v, u)
    tree(v, u) :- tree.by_rank(v, u, _).

Relations with several choice domains, or that depend on themselves through others, are those of
`choices.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from operator import itemgetter
from typing import Any, NamedTuple

from optimizer.plans.components import strongly_connected
from optimizer.record import record
from reactive.api.aggregates import Max, Min
from reactive.api.lattices import Lattice
from reactive.languages.datalog import rules
from reactive.languages.datalog.tokens import Span, suggest_name, wrong

RANKED = ".by_rank"
"""The end of the name of a relation with ranks."""
KEEPING = frozenset({"btree_min", "btree_max"})
"""Qualifiers of relations that keep the row with the least or greatest last column of each key."""
UNDOMINATED = ".undominated"
"""The end of the name of a relation with the sets of rows that no other row dominates."""


@record
class KeptRows:
    """The best row of each key: by the values of some places, the greatest if `is_max`."""

    key: tuple[int, ...]
    value: tuple[int, ...]
    is_max: bool = False
    order: Callable[[Any], Any] | None = None
    """What orders the rows of a key; None for the values themselves."""

    def keep(self) -> Any:
        """Return the aggregate that says which row is best."""
        return (Max if self.is_max else Min)(self.order or itemgetter(*self.value))

    def by(self) -> Callable[[Any], Any]:
        """Return the function of the key of a row."""
        return itemgetter(*self.key) if self.key else _no_key


def _no_key(row: Any) -> Any:
    return None


def decided_by_a_column(clauses: Sequence[rules.Clause]) -> KeptRows | None:
    """Return the rows that the subsumption of a relation keeps, if one column decides.

    Both rows have the same variables in all places but one, and the body compares these two.
    """
    if len(clauses) != 1 or len(clauses[0].bodies) != 1:
        return None
    less, greater, *tests = clauses[0].bodies[0]
    if len(tests) != 1 or not isinstance(less, rules.Atom) or not isinstance(greater, rules.Atom):
        return None
    pairs = list(zip(less.arguments, greater.arguments, strict=True))
    names = [part.name for pair in pairs for part in pair if isinstance(part, rules.Variable)]
    places = [place for place, (one, other) in enumerate(pairs) if one != other]
    if len(names) < 2 * len(pairs) or len(places) != 1 or len({*names}) != len(pairs) + 1:
        return None
    (place,) = places
    worse, better = pairs[place]
    match tests[0]:
        case rules.Comparison(">=" | ">", left, right) if (left, right) == (worse, better):
            is_max = False
        case rules.Comparison("<=" | "<", left, right) if (left, right) == (better, worse):
            is_max = False
        case rules.Comparison("<=" | "<", left, right) if (left, right) == (worse, better):
            is_max = True
        case rules.Comparison(">=" | ">", left, right) if (left, right) == (better, worse):
            is_max = True
        case _:
            return None
    key = tuple(other for other in range(len(pairs)) if other != place)
    return KeptRows(key, (place,), is_max)


class UndominatedRows(NamedTuple):
    """The rows of a key that no other row of the key dominates."""

    key: Any
    rows: frozenset[Any]


def only_row(row: Any) -> frozenset[Any]:
    """Return the set of one row."""
    return frozenset((row,))


class Dominance:
    """The lattice of sets of rows of one key, of which no row dominates another.

    `tests` are callables, two rows -> true if the second dominates the first. Of rows that dominate
    each other, the least is kept.

    >>> lower = Dominance([lambda worse, better: worse[0] >= better[0] and worse[1] >= better[1]])
    >>> sorted(lower.join(frozenset([(1, 5), (3, 3)]), frozenset([(2, 5), (4, 1)])))
    [(1, 5), (3, 3), (4, 1)]
    """

    def __init__(self, tests: Sequence[Callable[[Any, Any], object]]) -> None:
        self._tests = tests

    def lattice(self) -> Lattice[frozenset[Any]]:
        """Return the lattice of the sets."""
        return Lattice(self.join, itemgetter(1), leq=self.is_at_most)

    def join(self, one: frozenset[Any], other: frozenset[Any]) -> frozenset[Any]:
        """Return the rows of both sets that no row of the other set dominates."""
        new = other - one
        if not new:
            return one
        new = frozenset(row for row in new if not self._is_below(row, one))
        if not new:
            return one
        return new.union(row for row in one if not self._is_below(row, new))

    def is_at_most(self, one: frozenset[Any], other: frozenset[Any]) -> bool:
        """Return True if each row of the first set is in the second, or dominated by one of it."""
        return all(row in other or self._is_below(row, other) for row in one)

    def _is_below(self, row: Any, others: frozenset[Any]) -> bool:
        """Return True if one of the other rows dominates a row."""
        return any(
            self._is_dominated(row, other)
            and not (self._is_dominated(other, row) and repr(row) <= repr(other))
            for other in others
        )

    def _is_dominated(self, row: Any, by: Any) -> bool:
        return any(test(row, by) for test in self._tests)


def shared_places(pairs: Iterable[tuple[rules.Atom, rules.Atom]]) -> list[int]:
    """Return the places at which the two atoms of each pair have the same variable."""
    shared: set[int] | None = None
    for less, greater in pairs:
        both = enumerate(zip(less.arguments, greater.arguments, strict=True))
        own = {n for n, (a, b) in both if a == b and isinstance(a, rules.Variable)}
        shared = own if shared is None else shared & own
    return sorted(shared or ())


def subsumption(
    less: rules.Atom,
    greater: rules.Atom,
    bodies: tuple[tuple[rules.Literal, ...], ...],
    at: Span,
) -> rules.Clause:
    """Return the clause whose rows are those that another row dominates."""
    if less.name != greater.name:
        raise wrong(greater.at, f"a row of {less.name!r} is dominated by a row of {less.name!r}")
    numbers = count()
    less, greater = _named(less, numbers), _named(greater, numbers)
    return rules.Clause(
        (less,), tuple((less, greater, *body) for body in bodies), at, is_subsumptive=True
    )


def _named(atom: rules.Atom, numbers: Iterator[int]) -> rules.Atom:
    """Return the atom with a variable for each `_`."""

    def change(part: rules.Term | rules.Literal) -> rules.Term | rules.Literal:
        is_unnamed = isinstance(part, rules.Unnamed)
        return rules.Variable(f"_ {next(numbers)}", part.at) if is_unnamed else part

    return rules.transform_part(atom, change)


def subsumptions(clauses: Sequence[rules.Clause]) -> Mapping[str, list[rules.Clause]]:
    """Return the subsumptive clauses of each relation that has some."""
    found: dict[str, list[rules.Clause]] = {}
    for clause in clauses:
        if clause.is_subsumptive:
            found.setdefault(clause.heads[0].name, []).append(clause)
    return found


# Choice domains.


def with_ranks(statements: Sequence[rules.Statement]) -> list[rules.Statement]:
    """Return the statements with a relation with ranks for each choice domain.

    Raises
    ------
    PlanError: a relation with a choice domain of unknown columns, or that is an input.
    """
    every = {s.name: s for s in statements if isinstance(s, rules.Declaration) and s.choices}
    for declared in every.values():
        _check_choices(declared)
    for each in statements:
        if isinstance(each, rules.Directive) and each.word == "input" and each.name in every:
            what = f"relation {each.name!r} has a choice domain, and cannot be an input"
            raise wrong(each.at, what, "choose from a relation that is one")
    by_rounds = _through_others(statements) if every else ()
    chosen = {n: s for n, s in every.items() if len(s.choices) == 1 and n not in by_rounds}
    return (
        [made for each in statements for made in _ranked(each, chosen)] if chosen else [*statements]
    )


def _ranked(
    statement: rules.Statement, chosen: Mapping[str, rules.Declaration]
) -> Iterator[rules.Statement]:
    """Yield what stands for a statement."""
    match statement:
        case rules.Declaration(name) if name in chosen:
            yield from _declared(statement)
        case rules.Clause(heads) if any(head.name in chosen for head in heads):
            for head in heads:
                own = replace(statement, heads=(head,))
                yield _with_rank(own) if head.name in chosen else own
        case _:
            yield statement


def _through_others(statements: Sequence[rules.Statement]) -> set[str]:
    """Return the relations that depend on themselves through others."""
    read: dict[str, set[str]] = {}
    for clause in (each for each in statements if isinstance(each, rules.Clause)):
        parts = (part for body in clause.bodies for literal in body for part in rules.walk(literal))
        names = {part.name for part in parts if isinstance(part, rules.Atom)}
        for head in clause.heads:
            read.setdefault(head.name, set()).update(names)
    graph = {name: [each for each in some if each in read] for name, some in read.items()}
    return {name for group in strongly_connected(graph) if len(group) > 1 for name in group}


def _check_choices(declared: rules.Declaration) -> None:
    """Refuse choice domains of columns that the relation lacks."""
    if KEEPING & declared.qualifiers:
        raise wrong(declared.at, f"relation {declared.name!r} keeps some of its rows already")
    columns = [column.name for column in declared.columns]
    for column in (each for choice in declared.choices for each in choice):
        if column not in columns:
            what = f"relation {declared.name!r} has no column {column!r}"
            raise wrong(declared.at, what, suggest_name(column, columns, "they are"))


def _declared(declared: rules.Declaration) -> Iterator[rules.Statement]:
    """Yield a relation with a choice domain, and the one with ranks that it reads."""
    at, name = declared.at, declared.name
    columns = [column.name for column in declared.columns]
    rank = rules.DeclaredColumn("rank", "number", at)
    ranked = replace(
        declared, name=name + RANKED, columns=(*declared.columns, rank), qualifiers=frozenset()
    )
    yield ranked
    yield replace(declared, choices=())
    values = tuple(rules.Variable(f"_ {place}", at) for place, _ in enumerate(columns))
    body = rules.Atom(ranked.name, (*values, rules.Unnamed(at)), at, at)
    yield rules.Clause((rules.Atom(name, values, at, at),), ((body,),), at)


def _with_rank(clause: rules.Clause) -> rules.Clause:
    """Return a clause of a relation with ranks: one more than the ranks of the rows it reads."""
    (head,) = clause.heads
    made = [_body_with_ranks(body, head.name) for body in clause.bodies]
    if len({len(ranks) for _, ranks in made}) > 1:
        at, what = (
            clause.at,
            "the alternatives read different numbers of rows of their own relation",
        )
        raise wrong(at, what, "write a clause for each")
    ranks = made[0][1]
    rank: rules.Term = rules.Number(0, False, head.at)
    if ranks:
        most = ranks[0] if len(ranks) == 1 else rules.Functor("max", tuple(ranks), head.at)
        rank = rules.Functor("+", (most, rules.Number(1, False, head.at)), head.at)
    ranked = rules.Atom(head.name + RANKED, (*head.arguments, rank), head.at, head.name_at)
    return replace(clause, heads=(ranked,), bodies=tuple(body for body, _ in made))


def _body_with_ranks(
    body: tuple[rules.Literal, ...], name: str
) -> tuple[tuple[rules.Literal, ...], list[rules.Variable]]:
    """Return a body that reads the ranks of the rows of a relation, and their variables."""
    found: list[rules.Literal] = []
    ranks: list[rules.Variable] = []
    for literal in body:
        if isinstance(literal, rules.Atom) and literal.name == name:
            rank = rules.Variable(f"rank {len(ranks)}", literal.at)
            ranks.append(rank)
            literal = replace(literal, name=name + RANKED, arguments=(*literal.arguments, rank))
        found.append(literal)
    return tuple(found), ranks


def chosen_rows(columns: Sequence[str], choice: Sequence[str]) -> KeptRows:
    """Return the rows that a choice domain keeps, of a relation whose last column is the rank."""
    key = tuple(columns.index(name) for name in choice)
    last = len(columns) - 1
    return KeptRows(key, (last, *range(last)))
