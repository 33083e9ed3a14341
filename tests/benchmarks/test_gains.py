"""Benchmarks of the optimizer measure the right thing: queries are rewritten, operators are ten."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from asv_benchmarks.engine import Engine, tables_of
from asv_benchmarks.figures import HELD, Measured
from asv_benchmarks.gain import index_figures, product_figures
from asv_benchmarks.making import made, making_figures, other_query
from asv_benchmarks.measure import AS_WRITTEN, ENGINE, Ear, side_of
from asv_benchmarks.report import report
from asv_benchmarks.rows import Customer, Item, Order, customer, order
from asv_benchmarks.sections import costs
from asv_benchmarks.start import import_figures
from asv_benchmarks.table import BEGIN, END, put
from asv_benchmarks.workload import Workload
from asv_benchmarks.workloads import REWRITTEN, WORKLOADS, product_where, ten_operators
from optimizer import plan
from optimizer.plans.properties import nodes
from reactive import Database
from reactive.api.view import AnyView
from tests.budget import cases

SIZE = 300


def best_sellers(*, optimize: bool) -> AnyView:
    db = Database(optimize=optimize)
    tables = db.table(Order), db.table(Customer), db.table(Item)
    view = ten_operators.query(*tables).materialize()
    random = Random(3)
    tables[0].add_all([order(n, random, customers=20) for n in range(5_000)])
    tables[1].add_all([customer(n) for n in range(20)])
    tables[2].add_all([Item(n, n % 2) for n in range(500)])
    return view


def test_ten_operators_are_ten_and_no_two_are_one() -> None:
    view = best_sellers(optimize=True)
    operators = [n for n in nodes(view.relation.plan) if not isinstance(n, plan.Table)]
    assert len(operators) == 10


def test_ten_operators_give_the_same_as_written() -> None:
    optimized, written = best_sellers(optimize=True), best_sellers(optimize=False)
    assert len(optimized) > 10
    assert dict(optimized.zset().items()) == dict(written.zset().items())
    optimized.verify()


def test_another_query_is_of_other_functions() -> None:
    first, second = other_query(1), other_query(2)
    assert len({f.__code__ for f in (first, second, ten_operators.query)}) == 3
    assert made(first) > 0


def test_the_optimizer_reads_all_ten_operators() -> None:
    report = str(best_sellers(optimize=True).explain())
    assert "rules: none" not in report
    assert "opaque" not in report


def filled(workload: Workload, *, optimize: bool) -> AnyView:
    tables = tables_of(workload, Database(optimize=optimize))
    view = workload.query(*tables).materialize()
    for table, rows in zip(tables, workload.rows(SIZE, Random(4)), strict=True):
        table.add_all(rows)
    return view


@pytest.mark.parametrize("workload", REWRITTEN, ids=lambda w: w.name)
def test_the_optimizer_leaves_no_where_above_the_join(workload: Workload) -> None:
    view = filled(workload, optimize=True)
    written, optimized = str(view.explain()).split("optimized")
    assert written.splitlines()[1].strip().startswith("where")
    assert optimized.splitlines()[1].strip().startswith("join")
    assert dict(view.zset().items()) == dict(filled(workload, optimize=False).zset().items())
    view.verify()


def test_only_the_product_as_written_looks_at_every_pair() -> None:
    touched = [
        filled(product_where.WORKLOAD, optimize=optimize).stats().touched
        for optimize in (True, False)
    ]
    assert touched[0] < 10 * SIZE < SIZE * SIZE < touched[1]


@pytest.mark.parametrize("workload", [*WORKLOADS, *REWRITTEN], ids=lambda w: w.name)
def test_the_side_as_written_runs_no_generated_code(workload: Workload) -> None:
    side = side_of(workload, AS_WRITTEN, Ear())
    assert isinstance(side, Engine)
    assert "no generated code" in str(side.view.explain(code=True))


def test_a_product_is_measured_and_its_sides_agree() -> None:
    figures = product_figures(SIZE)
    assert all(figures[side][name] > 0 for side in figures for name in ("load", "typical"))


def test_a_selective_where_leaves_less_state() -> None:
    state = {side: index_figures(SIZE * 10, side)["state"] for side in (ENGINE, AS_WRITTEN)}
    assert 10 * state[ENGINE] < state[AS_WRITTEN]


@pytest.mark.long
@pytest.mark.parametrize("figures", [lambda: making_figures(4), lambda: import_figures(1)])
def test_what_is_paid_once_takes_time(figures: Callable[[], dict[str, float]]) -> None:
    assert all(value > 0 for value in figures().values())


@pytest.mark.long
def test_the_report_has_a_section_for_all_that_is_asked_for(tmp_path: Path) -> None:
    rewritten = cases(*(w.name for w in REWRITTEN))  # `test_twins` measures all of them
    text = report(["group_sum", *rewritten], size=500, runs=1)
    titles = [line for line in text.splitlines() if line.startswith("###")]
    assert titles == [
        "### Targets",
        "### Engine and twin",
        "### One change at 500 and at 500 rows",
        "### The effect of optimization",
        "### Queries that were not written for speed",
    ]
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    put(text, page)
    assert page.read_text() == f"before\n{BEGIN}\n\n{text}\n\n{END}\nafter\n"


def test_a_process_that_did_not_grow_has_a_ratio() -> None:
    sides = {ENGINE: {"held": 0.0}, AS_WRITTEN: {"held": 8.0}}
    assert Measured("", "", [sides]).gain(HELD) == 8.0
    assert Measured("", "", [sides]).ratio(HELD, ENGINE, AS_WRITTEN) == 0.125


def test_what_costs_more_than_its_target_is_marked() -> None:
    figures = {"warm": 6.0, "new": 7.0, "cold": 8.0, "import": 100.0}
    figures |= {"import_processor": 90.0, "bare": 20.0}
    figures |= {"view_change_few": 0.01, "view_change_many": 0.02, "view_more": 0.3}
    verdicts = [line.split("|")[-2].strip() for line in costs([figures])[4:]]
    assert verdicts == ["**missed**", "", "", "met", "", "", "", "", ""]
