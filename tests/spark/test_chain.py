"""Chains of where, select, unnest and select_many on Spark give what they give in the process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark")
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from optimizer import plan
from optimizer.rewriting.optimize import optimize
from reactive import Count, Database, OffloadError, Relation
from reactive.engine.collections.zset import canonical
from reactive.engine.reference.evaluate import evaluate
from reactive.engine.remote.fragments import offloaded_fragment
from spark_backend.codec.arrow import to_arrow
from spark_backend.codec.codec import Codec, loads
from spark_backend.codec.schema import Pickled, kept_as
from spark_backend.tables.chain import Chain, Weighted, collect_pairs

NAN = float("nan")


@dataclass(frozen=True)
class Order:
    number: int
    customer: str | None
    price: float
    tags: str


class Line(NamedTuple):
    number: int
    total: float


ROWS = [
    (Order(1, "anna", 2.5, "a,b"), 1),
    (Order(2, None, NAN, ""), 2),
    (Order(2**63 - 1, "bert", -0.0, "b"), -1),
    (Order(3, "anna", 1e308, "c,c"), 3),
    (Order(-4, "", 0.0, "a"), 1),
]
PATHS = [str(Path(__file__).parent.parent.parent)]


def slow(order: Order) -> bool:
    """A callable that cannot be lifted."""
    for _ in range(1):
        pass
    return order.price > 1


def words(order: Order) -> list[str]:
    return order.tags.split(",")


@pytest.fixture
def given(spark: SparkSession, tmp_path: Path) -> Weighted:
    file = tmp_path / "orders.parquet"
    kept = kept_as(Order)
    assert not isinstance(kept, Pickled)
    rows, weights = zip(*ROWS, strict=True)
    pq.write_table(pa.table({"row": to_arrow(kept, rows), "weight": pa.array(weights)}), file)
    return Weighted(spark.read.parquet(str(file)), kept)


def chain_of(relation: Any) -> tuple[tuple[plan.Node, ...], plan.Node]:
    root = optimize(relation.plan).plan
    found, node = [], root
    while not isinstance(node, plan.Table):
        found.append(node)
        node = node.inputs()[0]
    return tuple(found[::-1]), root


def alone(node: plan.Node, row: Order) -> Counter[Any]:
    """Return the result of a plan for one row."""
    return evaluate(node, lambda table: [(canonical(row), 1)])


def expected(root: plan.Node) -> Counter[Any]:
    """In process, of positive and negative rows each for themselves: a chain is linear."""
    out: Counter[Any] = Counter()
    for row, weight in ROWS:
        for made, times in alone(root, row).items():
            out[made] += times * weight
    return Counter({row: n for row, n in out.items() if n})


Build = Callable[[Relation[Order]], Any]
CHAINS: list[tuple[str, Build, list[str], bool]] = [
    ("where", lambda o: o.where(lambda o: o.price > 1), ["columns"], False),
    ("opaque where", lambda o: o.where(slow), ["Python"], False),
    ("select", lambda o: o.select(lambda o: (o.customer, o.number * 2)), ["columns"], False),
    (
        "record",
        lambda o: o.select(lambda o: Line(o.number, o.price * 3)).where(
            lambda line: line.total < 9
        ),
        ["columns", "columns"],
        False,
    ),
    (
        "where in Python between columns",
        lambda o: o.where(lambda o: o.number > -9).where(slow).select(lambda o: o.number),
        ["columns", "Python", "columns"],
        False,
    ),
    (
        "select in Python, and all after it",
        lambda o: o.select(lambda o: o.tags.upper()).where(lambda t: t > "A"),
        ["Python", "Python"],
        True,
    ),
    (
        "unnest written out",
        lambda o: o.unnest(lambda o: (o.number, 7)).where(lambda o, n: n != 7),
        ["columns", "columns"],
        False,
    ),
    (
        "unnest in Python",
        lambda o: o.unnest(words).where(lambda o, w: w > ""),
        ["Python", "Python"],
        True,
    ),
    (
        "select_many",
        lambda o: o.select_many(lambda o: [o.customer, "x"]).where(lambda c: c is not None),
        ["columns", "columns"],
        False,
    ),
    ("select_many in Python", lambda o: o.select_many(words), ["Python"], True),
    (
        "extend",
        lambda o: o.extend(lambda o: o.number * 2, lambda o: o.customer),
        ["columns"],
        False,
    ),
    (
        "bind",
        lambda o: o.unnest(lambda o: (1, 2)).bind(lambda o, n: n, lambda o, n: o.tags),
        ["columns", "columns"],
        False,
    ),
    (
        "extend in Python",
        lambda o: o.extend(lambda o: o.number, lambda o: words(o)[0]),
        ["Python"],
        True,
    ),
    (
        "two unnests",
        lambda o: (
            o.unnest(lambda o: (1, 2))
            .unnest(lambda o, n: (o.tags, "y"))
            .select(lambda o, n, t: (o.number + n, t))
        ),
        ["columns"] * 3,
        False,
    ),
]


@pytest.mark.parametrize(("name", "build", "where", "pickled"), CHAINS, ids=lambda v: str(v)[:40])
def test_a_chain_gives_what_it_gives_in_the_process(
    given: Weighted, name: str, build: Build, where: list[str], pickled: bool
) -> None:
    nodes, root = chain_of(build(Database().table(Order)))
    made = Chain(PATHS).run(nodes, given)
    out: Counter[Any] = Counter()
    for row, weight in collect_pairs(made):
        out[row] += weight
    assert Counter({row: n for row, n in out.items() if n}) == expected(root)
    assert {type(row) for row in out} == {type(row) for row in expected(root)}
    assert ["Python" if s.reason else "columns" for s in made.steps] == where
    assert isinstance(made.kept, Pickled) == pickled


def test_explain_says_which_step_runs_where_and_why(given: Weighted) -> None:
    orders = Database().table(Order)
    query = orders.where(lambda o: o.number > 0).where(slow).select(lambda o: o.tags.upper())
    made = Chain(PATHS).run(chain_of(query)[0], given)
    lines = made.explain().splitlines()
    assert lines[0] == "where o.number > 0: Spark columns"
    assert lines[1].startswith("where slow")
    assert lines[1].endswith("Python workers (not lifted: 'for' statement at line 1)") or (
        "Python workers (not lifted" in lines[1]
    )
    assert lines[2] == "select o.tags.upper(): Python workers (.upper() is not Spark's)"
    assert lines[3] == (
        "rows: pickled in a binary column (what a callable returns has no known type)"
    )


def test_what_may_raise_raises_in_a_worker_and_says_on_which_row(given: Weighted) -> None:
    query = Database().table(Order).where(lambda o: o.customer > "a")  # type: ignore[operator]
    made = Chain(PATHS).run(chain_of(query)[0], given)
    assert "an order may raise for None" in made.explain()
    with pytest.raises(
        OffloadError, match=r"TypeError: '>' not .*in where .*on row Order\(number=2"
    ):
        collect_pairs(made)


BY_POLICY: list[tuple[str, Build, set[str]]] = [
    ("where", lambda o: o.where(lambda o: o.number * 2 > 5), {"columns"}),
    ("where of None", lambda o: o.where(lambda o: o.customer > "a"), {"Python"}),  # type: ignore[operator]
    ("select", lambda o: o.select(lambda o: (o.customer, o.number + 1)), {"columns"}),
    ("select of zero", lambda o: o.select(lambda o: 6 // (o.number - 3)), {"Python"}),
    ("unnest", lambda o: o.unnest(lambda o: [o.tags][o.number - 1]), {"Python"}),
]


@pytest.mark.parametrize("policy", ["drop", "null"])
@pytest.mark.parametrize(("name", "build", "where"), BY_POLICY, ids=lambda v: str(v)[:20])
def test_rows_that_raise_go_by_their_policy(
    given: Weighted, name: str, build: Build, where: set[str], policy: Any
) -> None:
    view = build(Database().table(Order)).materialize(on_error=policy)
    nodes, root = chain_of(view.relation)
    made = Chain(PATHS).run(nodes, given)
    out: Counter[Any] = Counter()
    for row, weight in collect_pairs(made):
        out[row] += weight
    assert Counter({row: n for row, n in out.items() if n}) == expected(root)
    assert {"Python" if s.reason else "columns" for s in made.steps} == where


def test_a_later_step_does_not_see_what_an_earlier_one_dropped(given: Weighted) -> None:
    orders = Database().table(Order)
    query = orders.where(lambda o: o.customer is not None).where(lambda o: o.customer > "a")  # type: ignore[operator]
    nodes = tuple(chain_of(query)[0])
    assert sum(weight for _, weight in collect_pairs(Chain(PATHS).run(nodes, given))) == 3


def kinds() -> list[tuple[str, Any, int]]:
    """Stateful nodes over a chain, and which of their inputs the chain is."""
    db = Database()
    orders, names = db.table(Order), db.table(str)
    some = orders.where(lambda o: o.number != 3)
    return [
        ("distinct", some.distinct(), 0),
        ("difference", names.difference(some.select(lambda o: o.tags)), 1),
        ("join", some.join(names, lambda o, n: o.customer == n), 0),
        ("aggregate", some.group_by(lambda o: o.customer).aggregate(Count()), 0),
        ("opaque chain", orders.where(slow).distinct(), 0),
    ]


@pytest.mark.quick
@pytest.mark.parametrize(("name", "relation", "place"), kinds(), ids=lambda v: str(v)[:20])
def test_entries_are_those_that_the_process_would_make(
    given: Weighted, name: str, relation: Any, place: int
) -> None:
    onto = optimize(relation.plan).plan
    below, nodes = onto.inputs()[place], []
    while not isinstance(below, plan.Table):
        nodes.append(below)
        below = below.inputs()[0]
    frame = Chain(PATHS).entries(nodes[::-1], given, onto, place, stable=True)
    found = Counter[Any]()
    for entry in frame.toArrow().to_pylist():
        assert entry["side"] == place
        found[entry["bucket"], loads(entry["row"])] += entry["weight"]
    codec, prepare, wanted = (
        Codec(stable=True),
        offloaded_fragment(onto).prepare[place],
        Counter[Any](),
    )
    for row, weight in ROWS:
        for made, times in alone(onto.inputs()[place], row).items():
            prepared = prepare(made)
            if prepared is not None:
                wanted[codec.bucket(prepared[0]), prepared[1]] += weight * times
    assert found == wanted
    assert wanted
