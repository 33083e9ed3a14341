"""A term as a query of the engine; see `terms.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reactive import Count, CountDistinct, Max, Min, Sum, fixpoint, iterate
from tests.random_queries import terms
from tests.random_queries.terms import SIZE, Term

Rel = Any
Known = Mapping[str, Rel]

AGGREGATES: dict[str, Callable[[], Any]] = {
    "count": Count,
    "sum": lambda: Sum(lambda r: r[1]),
    "min": lambda: Min(lambda r: r[1]),
    "max": lambda: Max(lambda r: r[1]),
    "count_distinct": lambda: CountDistinct(lambda r: r[1]),
}


class Opaque:
    """A callable that cannot be read, only called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


def of_second(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: function(b)


def of_last_two(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    return lambda a, b, c: function(b, c)


def ends_of_three(a: Any, b: Any, c: Any) -> terms.Pair:
    return a[0], c[1]


class Builder:
    """Make relations of terms; the relations of one recursion result from one `fixpoint`.

    `wrap` is applied to all callables.
    """

    def __init__(self, tables: Known, wrap: Callable[[Any], Any]) -> None:
        self.tables = tables
        self.wrap = wrap
        self.made: dict[Any, tuple[Rel, ...]] = {}

    def relation(self, term: Term, known: Known | None = None) -> Rel:
        known = {} if known is None else known

        wrap = self.wrap

        def of(part: Term) -> Rel:
            return self.relation(part, known)

        match term:
            case terms.Input(name):
                return self.tables[name]
            case terms.Var(name):
                return known[name]
            case terms.Where(source, p):
                return of(source).where(wrap(terms.PREDICATES[p]))
            case terms.Select(source, f):
                return of(source).select(wrap(terms.SELECTS[f]))
            case terms.Fan(source, f, None):
                return of(source).select_many(wrap(terms.FANS[f]))
            case terms.Fan(source, f, str(pairs)):
                return of(source).unnest(wrap(terms.FANS[f])).select(wrap(terms.PAIRS[pairs]))
            case terms.Distinct(source):
                return of(source).distinct()
            case terms.Sets(kind, left, right):
                return getattr(of(left), kind)(of(right))
            case terms.Join(left, right, m, pairs):
                joined = of(left).join(of(right), **terms.MATCHES[m].arguments(wrap))
                return joined.select(wrap(terms.PAIRS[pairs]))
            case terms.Chain(first, second, third, m):
                return chained(terms.MATCHES[m], of(first), of(second), of(third), wrap)
            case terms.Half(kind, left, right, m):
                half = getattr(of(left), kind)(of(right), **terms.MATCHES[m].arguments(wrap))
                if kind != "left_join":
                    return half
                return half.select(lambda a, b: (a[0], 0 if b is None else 1))
            case terms.Grouped(source, aggregate, by_first):
                return grouped(AGGREGATES[aggregate](), of(source), by_first=by_first)
            case terms.Fixpoint(_, _, pick):
                return self.recursion(term, known)[pick]
            case terms.Iterate(variable, body, start, times):
                return iterate(
                    lambda r: self.relation(body, {**known, variable: r}), of(start), times=times
                )
        raise TypeError(f"no query for {type(term).__name__}")

    def recursion(self, term: terms.Fixpoint, known: Known) -> tuple[Rel, ...]:
        """All relations of a recursion."""
        closed = not terms.free(term)
        key = term.variables, term.bodies
        if closed and key in self.made:
            return self.made[key]

        def bodies(*relations: Rel) -> tuple[Rel, ...]:
            inside = {**known, **dict(zip(term.variables, relations, strict=True))}
            return tuple(self.relation(body, inside) for body in term.bodies)

        made = _fixpoint(len(term.bodies), bodies)
        if closed:
            self.made[key] = made
        return made


def _fixpoint(count: int, bodies: Callable[..., tuple[Rel, ...]]) -> tuple[Rel, ...]:
    """Call `fixpoint` for `count` relations; it counts the parameters of the step."""
    match count:
        case 1:
            return (fixpoint(lambda r: bodies(r)[0]),)
        case 2:
            return fixpoint(lambda r, s: bodies(r, s))
        case _:
            return fixpoint(lambda r, s, t: bodies(r, s, t))


def chained(
    match: terms.Match, first: Rel, second: Rel, third: Rel, wrap: Callable[[Any], Any]
) -> Rel:
    follows = terms.MATCHES["follows"]
    pairs = first.join(second, **follows.arguments(wrap))
    arguments = match.arguments(wrap)
    if match.left_key is not None:
        arguments["left_key"] = wrap(of_second(match.left_key))
    if match.on is not None:
        arguments["on"] = wrap(of_last_two(match.on))
    return pairs.join(third, **arguments).select(wrap(ends_of_three))


def grouped(aggregate: Any, source: Rel, *, by_first: bool) -> Rel:
    if by_first:
        made = source.group_by(lambda r: r[0]).aggregate(aggregate)
        return made.select(lambda key, value: (key, value % SIZE))
    return source.aggregate(aggregate).select(lambda value: (0, (value or 0) % SIZE))
