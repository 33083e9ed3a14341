"""Let a condition on one side of an equation hold for its other side.

    join on s.k == m.k and s.k == 3             join on s.k == m.k and s.k == 3 and m.k == 3
      S                                   ->      S
      M                                           M

Sound:  pairs that fail the new condition fail one of the old ones; equality is transitive. It is
        asked last.
Needs:  a plain constant.
Pays:   the index of M holds only rows that may match.
Source: transitive predicates of SQL optimizers.
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from optimizer.expr import Again, Constant, Expr, Lifted, Operation, conjunction, conjuncts, reads
from optimizer.expressions.evaluated import PLAIN
from optimizer.plans.properties import bindings


def propagate_constants(node: plan.Node) -> plan.Node:
    match node:
        case plan.Join(left, right, plan.Match(on=Lifted() as on) as match):
            tests = conjuncts(on.body)
            new = implied(tests, bindings(left))
            if not new:
                return node
            body = conjunction((*tests, *new))
            return plan.Join(left, right, replace(match, on=on.with_body(body)))
        case _:
            return node


def implied(tests: tuple[Expr, ...], count: int) -> list[Expr]:
    """The conditions that follow from those of a join whose left side has `count` bindings."""
    known = dict(found for test in tests if (found := _fixed(test)) is not None)
    new: list[Expr] = []
    for test in tests:
        match test:
            case Operation("==", (a, b)) if _is_across(a, b, count):
                for side, other in ((a, b), (b, a)):
                    if other in known and side not in known:
                        known[side] = known[other]
                        new.append(Operation("==", (side, known[other])))
    return new


def _fixed(test: Expr) -> tuple[Expr, Constant] | None:
    match test.test if isinstance(test, Again) else test:
        case Operation("==", (Constant() as value, side)) | Operation(
            "==", (side, Constant() as value)
        ):
            plain = type(value.value) in PLAIN and not isinstance(side, Constant)
            return (side, value) if plain else None
        case _:
            return None


def _is_across(a: Expr, b: Expr, count: int) -> bool:
    sides = [reads(e) == {count} for e in (a, b)]
    return (
        bool(reads(a) and reads(b))
        and sides[0] != sides[1]
        and (count not in reads(b if sides[0] else a))
    )
