"""Push a condition to the rows that a recursion starts from, if it forwards the tested value.

    where r.src == "a"                    fixpoint r
      fixpoint r                            union
        union                                 where e.src == "a"
          table edges                ->         table edges
          select Edge(r.src, e.dst)           select Edge(r.src, e.dst)
            join r.dst == e.src                 join r.dst == e.src
              recursive r                         recursive r
              table edges                         table edges

Sound:  every derived row passes if and only if the one recursive row that it is derived from does,
        and so does the first row of each derivation. The condition raises for a derived row if and
        only if it raises for that first row, which the recursion contains, too.
Needs:  each way to derive rows reads one recursive row, and cannot raise. If the condition may
        raise, it has no effects, and no row that it is asked of has a negative weight.
Pays:   rows reached from one place instead of from all: often a thousandth of the rows.
Source: pushing selections through linear recursion: Aho, Ullman, *Universality of Data Retrieval
        Languages*, 1979.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from optimizer import plan
from optimizer.expr import Lifted
from optimizer.expressions.knowledge import is_value, total
from optimizer.plans import clauses
from optimizer.plans.join_lists import forwards, ways_of
from optimizer.plans.properties import free, may_be_negative, shapes


def push_where_into_fixpoint(node: plan.Node) -> plan.Node:
    """Push a condition to the start of a recursion, if every way forwards the tested value."""
    match node:
        case plan.Where(plan.Fixpoint(best=(None,)) as fixpoint, Lifted() as p):
            pass
        case _:
            return node
    if free(fixpoint) or not _may_be_asked_first(p, fixpoint):
        return node
    ways = ways_of(fixpoint.bodies[0])
    if not all(forwards(way, p.body) for way in ways):
        return node
    ways = [plan.Where(way, p) if clauses.is_closed(way) else way for way in ways]
    return replace(fixpoint, bodies=(reduce(plan.Union, ways),))


def _may_be_asked_first(p: Lifted, fixpoint: plan.Fixpoint) -> bool:
    """Return True if a condition raises for the first rows of derivations only if it raises for
    rows of the recursion."""
    of = shapes(fixpoint)
    return total(p.body, of) or (is_value(p.body, of) and not may_be_negative(fixpoint))
