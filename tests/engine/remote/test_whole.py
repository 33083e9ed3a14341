"""Extent of the part of a plan that is one fragment."""

from __future__ import annotations

from typing import Any

from optimizer import plan
from optimizer.plans.explain import headline
from reactive import Count, Database, fixpoint, iterate
from reactive.engine.remote.fragments import Fragment, whole_fragment


def cut(query: Any) -> Fragment | None:
    db: Any = Database()
    rows = db.table(tuple[int, int], name="rows")
    others = db.table(tuple[int, int], name="others")
    return whole_fragment(
        db._engine.queries.optimize(query(rows, others).plan).plan, lambda node: False
    )


def names(found: Fragment | None) -> list[str]:
    assert found is not None
    return [headline(node) for node in found.inputs]


def joined(rows: Any, others: Any) -> Any:
    return rows.join(others, on=lambda a, b: a[0] == b[0])


def test_a_chain_of_joins_and_groups_is_one_fragment() -> None:
    found = cut(lambda r, o: joined(r, o).group_by(lambda a, b: b[1]).aggregate(Count()))
    assert names(found) == ["table rows", "table others"]
    assert found is not None and found.is_by_group
    assert [type(node) for node in found.of] == [plan.Aggregate, plan.Join]


def test_tests_of_a_table_are_made_before_its_rows_are_sent() -> None:
    found = cut(lambda r, o: joined(r.where(lambda a: a[1] > 3), o))
    assert names(found) == ["where r0[1] > 3", "table others"] or len(names(found)) == 2
    assert found is not None and not any(isinstance(n, plan.Where) for n in found.of)


def test_a_table_that_is_read_twice_is_one_input() -> None:
    found = cut(lambda r, o: r.join(r, on=lambda a, b: a[0] == b[1]))
    assert names(found) == ["table rows"]


def test_what_keeps_nothing_needs_no_fragment() -> None:
    assert cut(lambda r, o: r.where(lambda a: a[0] > 3).select(lambda a: a[1])) is None


def test_a_recursion_is_inside_and_so_is_a_loop_of_many_rounds() -> None:
    found = cut(lambda r, o: _closed(r).group_by(lambda a: a[0]).aggregate(Count()))
    assert found is not None and names(found) == ["table rows"]
    assert [type(n).__name__ for n in found.of] == ["Aggregate", "Fixpoint"]
    assert cut(lambda r, o: _same_generation(r)) is not None
    loop = cut(lambda r, o: iterate(lambda x: x.difference(o).union_all(r), r, times=20))
    assert loop is not None and [type(n) for n in loop.of] == [plan.Iterate]
    assert names(loop) == ["table rows", "table others"]


def test_relations_that_are_defined_together_are_inside_below_one_of_them() -> None:
    found = cut(lambda r, o: iterate(lambda x, y: (y.union(x), x), (r, o), times=5)[1])
    assert found is not None
    assert [type(n).__name__ for n in found.of] == ["Component", "Iterate"]
    assert whole_fragment(found.of[1], lambda node: False) is None


def test_a_loop_over_rows_that_are_not_kept_stays() -> None:
    db: Any = Database()
    passing = db.table(tuple[int, int], name="passing", stored=False)
    loop = iterate(lambda x: x.union_all(x), passing, times=9)
    assert whole_fragment(db._engine.queries.optimize(loop.plan).plan, lambda node: False) is None


def _same_generation(rows: Any) -> Any:
    return fixpoint(
        lambda same: rows.union(
            rows.join(same, on=lambda a, s: a[0] == s[0])
            .join(rows, on=lambda a, s, b: s[1] == b[0])
            .select(lambda a, s, b: (a[1], b[1]))
        )
    )


def _closed(edges: Any) -> Any:
    return fixpoint(
        lambda paths: edges.union(
            paths.join(edges, on=lambda a, b: a[1] == b[0]).select(lambda a, b: (a[0], b[1]))
        )
    )


def test_an_order_with_a_limit_is_inside_and_one_without_is_not() -> None:
    found = cut(lambda r, o: joined(r, o).order_by(lambda a, b: a[1]).limit(2, offset=3))
    assert found is not None
    assert [type(node) for node in found.of] == [plan.OrderBy, plan.Join]
    assert headline(found.node).endswith("limit 5")
    assert cut(lambda r, o: joined(r, o).order_by(lambda a, b: a[1])) is None


def test_the_first_rows_of_groups_are_inside() -> None:
    found = cut(lambda r, o: r.group_by(lambda a: a[0]).top(2, by=lambda a: a[1]).distinct())
    assert found is not None
    assert {type(node) for node in found.of} >= {plan.Top}
