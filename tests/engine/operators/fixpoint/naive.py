"""A term evaluated from scratch: plain counters and sets, looped until nothing changes.

This is the oracle of the engine, and imports nothing of it. A relation that is being defined starts
empty; all bodies are evaluated over the current relations, until their results equal these. Bodies
are monotone in the relations, hence this is their least fixpoint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tests.random_queries import terms
from tests.random_queries.terms import Match, Pair, Term

Bag = Counter[Pair]
Known = Mapping[str, Bag]

AGGREGATES: dict[str, Callable[[list[tuple[int, int]]], int]] = {
    "count": lambda values: sum(n for _, n in values),
    "sum": lambda values: sum(value * n for value, n in values),
    "min": lambda values: min((value for value, _ in values), default=0),
    "max": lambda values: max((value for value, _ in values), default=0),
    "count_distinct": lambda values: len({value for value, _ in values}),
}
"""Aggregate functions of values with their multiplicity."""


def evaluate(term: Term, tables: Known) -> Bag:
    """The rows of a term, each with how often it is there."""
    return _Naive(tables).rows(term, {})


class _Naive:
    """One evaluation: the tables, and the results of closed terms."""

    def __init__(self, tables: Known) -> None:
        self.tables = tables
        self.closed: dict[Term, Bag] = {}

    def rows(self, term: Term, known: Known) -> Bag:
        if terms.free(term):
            return self.fresh(term, known)
        if term not in self.closed:
            self.closed[term] = self.fresh(term, known)
        return self.closed[term]

    def fresh(self, term: Term, known: Known) -> Bag:
        def of(part: Term) -> Bag:
            return self.rows(part, known)

        match term:
            case terms.Input(name):
                return Counter(self.tables[name])
            case terms.Var(name):
                return known[name]
            case terms.Where(source, p):
                test = terms.PREDICATES[p]
                return added((r, n) for r, n in of(source).items() if test(r))
            case terms.Select(source, f):
                select = terms.SELECTS[f]
                return added((select(r), n) for r, n in of(source).items())
            case terms.Fan(source, f, pairs):
                fan, pair = terms.FANS[f], terms.PAIRS[pairs or "outer"]
                return added(
                    (e if pairs is None else pair(r, e), n)
                    for r, n in of(source).items()
                    for e in fan(r)
                )
            case terms.Distinct(source):
                return Counter(set(of(source)))
            case terms.Sets(kind, left, right):
                return combined(kind, of(left), of(right))
            case terms.Join(left, right, m, pairs):
                pair = terms.PAIRS[pairs]
                matches = matching(terms.MATCHES[m], of(left), of(right))
                return added((pair(a, b), n) for a, b, n in matches)
            case terms.Chain(first, second, third, m):
                return chained(terms.MATCHES[m], of(first), of(second), of(third))
            case terms.Half(kind, left, right, m):
                return halved(kind, terms.MATCHES[m], of(left), of(right))
            case terms.Grouped(source, aggregate, by_first):
                return grouped(AGGREGATES[aggregate], of(source), by_first=by_first)
            case terms.Fixpoint(variables, _, pick):
                return self.settled(term, known)[variables[pick]]
            case terms.Iterate(variable, body, start, times):
                state = of(start)
                for _ in range(times):
                    state = self.rows(body, {**known, variable: state})
                return state
        raise TypeError(f"no meaning of {type(term).__name__}")

    def settled(self, term: terms.Fixpoint, known: Known) -> Known:
        """Return the final rows of all relations of a recursion."""
        state: dict[str, Bag] = {name: Counter() for name in term.variables}
        while True:
            inside = {**known, **state}
            bodies = zip(term.variables, term.bodies, strict=True)
            found = {name: Counter(set(self.rows(body, inside))) for name, body in bodies}
            if found == state:
                return state
            state = found


def added(pairs: Iterable[tuple[Pair, int]]) -> Bag:
    """Return a bag of rows that may be repeated."""
    bag: Bag = Counter()
    for row, times in pairs:
        bag[row] += times
    return bag


def combined(kind: str, left: Bag, right: Bag) -> Bag:
    match kind:
        case "union":
            return Counter(set(left) | set(right))
        case "intersection":
            return Counter(set(left) & set(right))
        case "difference":
            return Counter(set(left) - set(right))
        case "union_all":
            return left + right
        case "intersection_all":
            return left & right
        case "difference_all":
            return left - right
    raise ValueError(kind)


def matching(match: Match, left: Bag, right: Bag) -> Iterator[tuple[Pair, Pair, int]]:
    """Yield the rows that match, with their weights multiplied; keys are computed for all rows."""
    lefts = [(a, n, match.left_key and match.left_key(a)) for a, n in left.items()]
    rights = [(b, m, match.right_key and match.right_key(b)) for b, m in right.items()]
    for a, n, left_key in lefts:
        for b, m, right_key in rights:
            if left_key == right_key and (match.on is None or match.on(a, b)):
                yield a, b, n * m


def chained(match: Match, first: Bag, second: Bag, third: Bag) -> Bag:
    """Join rows a, b and c, where b follows a, c matches b; return the start of a, the end of c."""
    return added(
        ((a[0], c[1]), n * m)
        for a, b, n in matching(terms.MATCHES["follows"], first, second)
        for _, c, m in matching(match, Counter((b,)), third)
    )


def halved(kind: str, match: Match, left: Bag, right: Bag) -> Bag:
    matches = list(matching(match, left, right))
    partnered = {a for a, _, _ in matches}
    if kind == "semi_join":
        return added((a, n) for a, n in left.items() if a in partnered)
    alone = [(a, n) for a, n in left.items() if a not in partnered]
    if kind == "anti_join":
        return added(alone)
    return added([*(((a[0], 1), n) for a, _, n in matches), *(((a[0], 0), n) for a, n in alone)])


def grouped(fold: Callable[[Any], int], rows: Bag, *, by_first: bool) -> Bag:
    groups: dict[int, list[tuple[int, int]]] = {} if by_first else {0: []}
    for (first, second), times in rows.items():
        groups.setdefault(first if by_first else 0, []).append((second, times))
    return Counter((key, fold(values) % terms.SIZE) for key, values in groups.items())
