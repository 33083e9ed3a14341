"""Which part of a plan is one fragment."""

from __future__ import annotations

from typing import Any

from optimizer import plan
from optimizer.plans.explain import headline
from reactive import Count, Database, fixpoint
from reactive.remote.fragments import Fragment
from reactive.remote.whole import whole_of


def cut(query: Any) -> Fragment | None:
    db: Any = Database()
    rows = db.table(tuple[int, int], name="rows")
    others = db.table(tuple[int, int], name="others")
    return whole_of(db._engine.queries.optimized(query(rows, others).plan).plan, lambda node: False)


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


def test_a_recursion_is_inside_if_it_keeps_a_column() -> None:
    found = cut(lambda r, o: _closed(r).group_by(lambda a: a[0]).aggregate(Count()))
    assert found is not None and names(found) == ["table rows"]
    assert [type(n).__name__ for n in found.of] == ["Aggregate", "Fixpoint"]
    assert cut(lambda r, o: _same_generation(r)) is None


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
