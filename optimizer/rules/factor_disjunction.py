"""Factor out the parts that all alternatives of a condition have in common.

    where (k and p) or (k and q)         where k and (p or q)
      A                            ->      A

The rule applies to the predicates of joins, too. If an alternative has only common parts, these
decide alone.

Sound:  a part that is first in every alternative is evaluated before any other part, and if it is
        false all alternatives are. Another part is factored out only if it and the parts before it
        cannot raise.
Needs:  a common part has no cost: as written it may be evaluated once per alternative.
Pays:   an equation of both sides is a key of the join, a condition of one side can be pushed.
Source: common factors of SQL optimizers; TPC-H 19.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optimizer import plan
from optimizer.expr import Expr, Or, conjunction, conjuncts, disjuncts
from optimizer.expressions.knowledge import Shapes, is_value, total
from optimizer.rules.read_bitwise_tests import condition_of


def factor_disjunction(node: plan.Node) -> plan.Node:
    """Factor common parts out of the alternatives of a condition; other nodes unchanged."""
    test, of = condition_of(node)
    if test is None:
        return node
    tests = conjuncts(test.body)
    if not [each for each in tests if each.__class__ is Or]:
        return node
    new = tuple(part for each in tests for part in _factor(each, of))
    if len(new) == len(tests) and all(a is b for a, b in zip(new, tests, strict=True)):
        return node
    changed = test.with_body(conjunction(new))
    if isinstance(node, plan.Where):
        return plan.Where(node.input, changed)
    return replace(node, match=replace(node.match, on=changed))  # type: ignore[attr-defined, call-arg]


def _factor(test: Expr, of: Shapes) -> tuple[Expr, ...]:
    """Return the conjuncts of a disjunction."""
    if not isinstance(test, Or):
        return (test,)
    alternatives = [conjuncts(part) for part in disjuncts(test)]
    count = _asked_first(alternatives, of)
    rests = [alternative[count:] for alternative in alternatives]
    moved = [part for part in rests[0] if _is_common(part, rests, of)]
    common = (*alternatives[0][:count], *moved)
    if not common:
        return (test,)
    rests = [tuple(part for part in rest if part not in moved) for rest in rests]
    if () in rests and all(total(p, of) for rest in rests[: rests.index(())] for p in rest):
        return common
    return (*common, Or(tuple(map(conjunction, rests))))


def _asked_first(alternatives: Sequence[tuple[Expr, ...]], of: Shapes) -> int:
    """Return the number of parts that all alternatives begin with."""
    count = 0
    for parts in zip(*alternatives, strict=False):
        if not is_value(parts[0], of) or any(part != parts[0] for part in parts[1:]):
            break
        count += 1
    return count


def _is_common(part: Expr, alternatives: Sequence[tuple[Expr, ...]], of: Shapes) -> bool:
    """Return True if each alternative has a part, and it can be evaluated before earlier parts."""
    return (
        total(part, of)
        and is_value(part, of)
        and all(part in other for other in alternatives)
        and all(total(p, of) for other in alternatives for p in other[: other.index(part)])
    )
