"""Conditions that are false where they raise, with alternatives: their common parts and keys.

    attempt(k and p or k and q)        k and attempt(p or q)
    attempt(p and k or q and k)        k and attempt(p or q)
    attempt(k1 and p or k2 and q)      k1 and attempt(p) or succeeds(k1 and p) and k2 and attempt(q)

`attempted_conditions` rewrites the left to the right: a condition that is true only if nothing
raises needs no order of its parts.

Sound:  an alternative is true if all its parts are, and then none of its parts raises. So a common
        part is true, without an exception, wherever the condition is; and if it is true, the rest
        is evaluated as before. A second alternative counts only if the first one raises nothing.
Needs:  parts without effects, because they are evaluated in another order. For the last form each
        alternative needs an equation of two rows, which is a key of a join.
Pays:   keys are found, in place of all pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from optimizer.expr import Expr, Operation, Or, conjunction, conjuncts, reads
from optimizer.expressions.attempts import attempt_condition, succeeds
from optimizer.expressions.knowledge import Shapes, is_value, total

Split = Callable[[Expr, Shapes], Sequence[Expr]]


def attempted_conditions(test: Expr, of: Shapes, split: Split) -> tuple[Expr, ...]:
    """Return conditions that are all true where a test is true, and false where it raises.

    `split` returns the alternatives of the test. None of the conditions raises.
    """
    is_of_one_row = len(reads(test)) < 2 and not isinstance(test, Or)
    if is_of_one_row or total(test, of) or len(split(test, of)) == 1:
        return (attempt_condition(test, of),)
    alternatives = [conjuncts(part) for part in split(test, of)]
    common = [part for part in alternatives[0] if _is_in_all(part, alternatives, of)]
    rests = [tuple(part for part in each if part not in common) for each in alternatives]
    asked = tuple(attempt_condition(part, of) for part in common)
    if not rests[0]:
        return asked
    if not any(map(_pairs_up, common)) and all(_has_key(rest, of) for rest in rests):
        return (*asked, _as_alternatives(rests, of))
    rest = Or(tuple(map(conjunction, rests))) if common else test
    return (*asked, attempt_condition(rest, of))


def _is_in_all(part: Expr, alternatives: Sequence[tuple[Expr, ...]], of: Shapes) -> bool:
    return is_value(part, of) and all(part in other for other in alternatives)


def _has_key(tests: Sequence[Expr], of: Shapes) -> bool:
    """Return True if one of the tests is an equation of two rows, and none has an effect."""
    return all(is_value(test, of) for test in tests) and any(map(_pairs_up, tests))


def _pairs_up(test: Expr) -> bool:
    """Return True for an equation of values of different rows."""
    if not isinstance(test, Operation) or test.operator != "==":
        return False
    a, b = map(reads, test.operands)
    return bool(a) and bool(b) and a.isdisjoint(b)


def _as_alternatives(alternatives: Sequence[tuple[Expr, ...]], of: Shapes) -> Expr:
    """Return a disjunction whose alternatives raise nothing, each with its equations."""
    made: list[Expr] = []
    before: list[Expr] = []
    for tests in alternatives:
        tried = [attempt_condition(test, of) for test in tests]
        made.append(conjunction((*before, *tried)))
        if not all(total(test, of) for test in tests):
            before.append(succeeds((conjunction(tests),)))
    return Or(tuple(made))
