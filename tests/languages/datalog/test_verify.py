"""`verify()` of a Datalog relation evaluates the rules as written, not as optimized."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from optimizer import plan
from optimizer.rewriting.phases import PHASES
from reactive import Database, VerificationError
from reactive.engine.compiler import queries

INPUTS = (
    ".decl e(x:number,y:number)\n.input e\n.decl b(x:number)\n.input b\n"
    ".decl p(x:number,y:number)\np(x,y) :- e(x,y).\np(x,z) :- p(x,y), e(y,z), !b(z).\n"
)
EDGES = ((1, 2), (2, 3), (3, 1), (4, 2), (2, 5), (5, 5), (6, 1))
BLOCKED = (2, 5, 6)
Break = Callable[[plan.Node], plan.Node]


def _lose_negation(node: plan.Node) -> plan.Node:
    return node.left if isinstance(node, plan.AntiJoin) else node


def _lose_tests(node: plan.Node) -> plan.Node:
    return node.input if isinstance(node, plan.Where) else node


def _lose_sets(node: plan.Node) -> plan.Node:
    return node.input if isinstance(node, plan.Distinct) else node


def _lose_groups_of_no_rows(node: plan.Node) -> plan.Node:
    is_outer = isinstance(node, plan.OuterJoin)
    return plan.Join(node.left, node.right, node.match) if is_outer else node  # type: ignore[attr-defined]


BROKEN: tuple[tuple[str, Break], ...] = (
    ("q(x,y) :- e(x,y), !b(x).", _lose_negation),
    ("q(x,x) :- e(x,_), !e(_,x), !b(x).", _lose_negation),
    ("q(x,n) :- b(x), n = sum y : { e(x,y), !b(y) }.", _lose_negation),
    ("q(x,n) :- b(x), n = sum y : { e(x,y), !b(y) }.", _lose_groups_of_no_rows),
    ("q(x,n) :- e(x,_), n = count : { e(_,x) }.", _lose_sets),
    ("q(x,n) :- e(x,_), n = min y : { e(x,y), y > x }.", _lose_tests),
    ("q(x,n) :- e(x,_), n = min y : { e(x,y), y > x }.", _lose_sets),
    ("q(x,n) :- e(x,_), n = count : { p(x,_) }.", _lose_negation),
    ("q(x,n) :- e(x,_), n = max y : { p(x,y) }.", _lose_negation),
    ("q(x,y) :- e(x,_), e(_,y), !p(x,y).", _lose_negation),
)


def _view(rule: str) -> Any:
    db = Database()
    program = db.datalog(f"{INPUTS}.decl q(x:number,y:number)\n{rule}\n.output q")
    view = program["q"].materialize()
    program.tables["e"].add_all([program.row("e")(*edge) for edge in EDGES])
    program.tables["b"].add_all([program.row("b")(x) for x in BLOCKED])
    return view


@pytest.mark.parametrize(("rule", "break_it"), BROKEN)
def test_verify_finds_a_broken_rule_of_the_optimizer(
    rule: str, break_it: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = _view(rule)
    right.verify()
    monkeypatch.setattr(queries, "PHASES", (*PHASES, (break_it,)))
    wrong = _view(rule)
    assert sorted(map(tuple, wrong)) != sorted(map(tuple, right))
    with pytest.raises(VerificationError):
        wrong.verify()
