"""When the sub-queries of an expression are asked.

    c.active and any(...) or sum(...) > 3       any(...)   if c.active
                                                sum(...)   if not (c.active and any(...))

Python evaluates a part of an expression only where those before it have it so.
"""

from __future__ import annotations

from collections.abc import Iterator

from optimizer.expr import (
    And,
    Conditional,
    Expr,
    Operation,
    Or,
    Subquery,
    conjunction,
    has_subquery,
    parts,
)

Guard = tuple[Expr, ...]
"""Tests, all of which are true of the rows that something is asked of."""


def guarded(*exprs: Expr) -> dict[Subquery, Expr | None]:
    """The sub-queries in some expressions, each of which is evaluated, in the order in which they
    are: with the test that must be true of a row for it to be asked, if there is one."""
    found: dict[Subquery, list[Guard]] = {}
    for expr in exprs:
        for part, guard in _asked(expr, ()):
            found.setdefault(part, []).append(guard)
    return {part: _either(guards) for part, guards in found.items()}


def _either(guards: list[Guard]) -> Expr | None:
    """Whether one of them lets a row through; those that ask more than another are not needed, and
    may have the sub-query itself in them."""
    if not all(guards):
        return None
    least = [g for g in guards if not any(set(other) < set(g) for other in guards)]
    tests = tuple(dict.fromkeys(map(conjunction, least)))
    return tests[0] if len(tests) == 1 else Or(tests)


def _asked(expr: Expr, guard: Guard) -> Iterator[tuple[Subquery, Guard]]:
    match expr:
        case And(inner):
            for part in inner:
                yield from _asked(part, guard)
                guard = (*guard, part)
        case Or(inner):
            for part in inner:
                yield from _asked(part, guard)
                guard = (*guard, negation(part))
        case Conditional(test, then, otherwise):
            yield from _asked(test, guard)
            yield from _asked(then, (*guard, test))
            yield from _asked(otherwise, (*guard, negation(test)))
        case _:
            for part in parts(expr):
                yield from _asked(part, guard)
            if isinstance(expr, Subquery):
                yield expr, guard


def negation(test: Expr) -> Expr:
    """Whether a test is false."""
    match test:
        case Operation("not", (inner,)):
            return inner
        case _:
            return Operation("not", (test,))


def as_condition(test: Expr) -> Expr:
    """A test of which only the truth counts, with `not` at the sub-queries in it."""
    if not has_subquery(test):
        return test
    match test:
        case And(inner):
            return And(tuple(map(as_condition, inner)))
        case Or(inner):
            return Or(tuple(map(as_condition, inner)))
        case Operation("not", (inner,)):
            return _negated(inner)
        case _:
            return test


def _negated(test: Expr) -> Expr:
    if not has_subquery(test):
        return negation(test)
    match test:
        case And(inner):
            return Or(tuple(map(_negated, inner)))
        case Or(inner):
            return And(tuple(map(_negated, inner)))
        case Operation("not", (inner,)):
            return as_condition(inner)
        case _:
            return Operation("not", (test,))
