"""Every option of a function that imports or exports rows is read, or refused if unused."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reactive import (
    Database,
    PlanError,
    PostgresSource,
    Relation,
    Table,
    View,
    files,
    iterate,
    mirror,
    tracked,
)
from reactive.borders.sources.files.formats import NAMES, READ, USUAL

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "watch": Database.watch,
    "files": files,
    "ingest": Database.ingest,
    "table": Database.table,
    "parameter": Database.parameter,
    "stream": Database.stream,
    "feedback": Database.feedback,
    "table_from": Database.table_from,
    "datalog": Database.datalog,
    "transaction": Database.transaction,
    "journal": Database.journal,
    "changes": Table.changes,
    "subscribe": View.subscribe,
    "sync": Table.sync,
    "write_to": View.write_to,
    "changes_to": View.changes_to,
    "to_spark": View.to_spark,
    "load": Table.load,
    "patch": Table.patch,
    "observe": View.observe,
    "materialize": Relation.materialize,
    "offload": View.offload,
    "read": View.read,
    "verify": View.verify,
    "spark_stream": Database.spark_stream,
    "spark_table": Database.spark_table,
    "PostgresSource": PostgresSource,
    "mirror": mirror,
    "tracked": tracked,
    "iterate": iterate,
}
TESTS = Path(__file__).parents[1]


class Row(NamedTuple):
    id: int
    value: int


@cache
def texts() -> tuple[str, ...]:
    """Return the text of each file of tests."""
    return tuple([path.read_text() for path in TESTS.rglob("*.py")])


ALIKE: Mapping[str, tuple[str, ...]] = {"watch": ("watch", "files"), "files": ("watch", "files")}
"""Functions that have their options from one."""


def options() -> list[tuple[str, str]]:
    """Return each option of each function."""
    return [
        (name, option.name)
        for name, function in FUNCTIONS.items()
        for option in inspect.signature(function).parameters.values()
        if option.kind is option.KEYWORD_ONLY
    ]


@pytest.mark.parametrize(("function", "option"), options())
def test_an_option_is_given_in_a_test(function: str, option: str) -> None:
    """A new option needs a test that uses it; the failure names it."""
    names = "|".join(ALIKE.get(function, (function,)))
    given = re.compile(rf"\b{option}=|[\"']{option}[\"']")
    if not any(re.search(rf"\b({names})\(", text) and given.search(text) for text in texts()):
        pytest.fail(f"no test calls {function}(..., {option}=...)")


OTHERS: Mapping[str, Any] = {
    "format": "csv",
    "encoding": "latin-1",
    "delimiter": ";",
    "header": False,
    "max_line": 1000,
    "max_bytes": 1000,
    "max_ratio": 7,
}


@pytest.mark.parametrize("option", [name for name in USUAL if name != "format"])
@pytest.mark.parametrize("format", NAMES)
def test_an_option_that_a_format_does_not_read_is_refused(
    format: str, option: str, tmp_path: Path
) -> None:
    given = {option: OTHERS[option]}
    if option in READ[format]:
        assert files(tmp_path / "*", Row, format=format, **given)
        return
    with pytest.raises(PlanError, match=f"{option}=.* is not read by the format '{format}'"):
        files(tmp_path / "*", Row, format=format, **given)
    with pytest.raises(PlanError, match="is not read by"):
        Database().watch(tmp_path / "*", Row, format=format, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("option", USUAL)
def test_a_reader_reads_for_itself(option: str, tmp_path: Path) -> None:
    given = {option: OTHERS[option]}
    with pytest.raises(PlanError, match=f"{option}=.* is not read by a reader of yours"):
        files(tmp_path / "*", reader=lambda path: [], **given)


def _database() -> tuple[Any, Any]:
    db = Database()
    table = db.table(Row, name="rows")
    return table, table.where(lambda r: r.value > 0).materialize("some")


class Anything:
    """A target that takes everything."""

    def open(self, plan: str) -> None: ...
    def difference(self, rows: Any) -> list[Any]:
        return list(rows)

    def stage(self, batch: Any) -> None: ...
    def deliver(self) -> None: ...


def _tell(*given: Any) -> None: ...


UNREAD: Mapping[str, tuple[Callable[[Any, Any], object], str]] = {
    "maxsize without on": (lambda t, v: v.subscribe(_tell, maxsize=3), "maxsize="),
    "when_full without on": (lambda t, v: v.subscribe(_tell, when_full="close"), "when_full="),
    "latest and maxsize": (lambda t, v: v.changes(latest=True, maxsize=3), "latest=True"),
    "row_type in the process": (lambda t, v: v.changes_to(_tell, row_type=Row), "row_type="),
    "key of changes": (lambda t, v: v.write_to("x", mode="changes", key="id"), "key="),
    "key beside a target": (lambda t, v: v.write_to(Anything(), key="id"), "beside a Target"),
    "mode beside a target": (lambda t, v: v.write_to(Anything(), mode="changes"), "beside a"),
    "norm without tolerance": (
        lambda t, v: iterate(lambda r: r, t, times=2, norm="sum").materialize(),
        "norm=",
    ),
    "contraction without tolerance": (
        lambda t, v: iterate(lambda r: r, t, times=2, contraction=0.5),
        "contraction=",
    ),
    "rounds of rounds": (lambda t, v: iterate(lambda r: r, t, times=2, max_rounds=9), "max_rounds"),
    "only and exclude": (lambda t, v: tracked(only=["a"], exclude=["b"])(_kind()), "only="),
    "a timeout of nobody": (
        lambda t, v: Database().transaction(deliver="background", deliver_timeout=1.0),
        "deliver_timeout=",
    ),
    "durable in memory": (lambda t, v: Database().table(int, durable=True), "durable"),
    "codec in memory": (lambda t, v: Database().table(int, codec=object()), "codec="),
    "migrate in memory": (lambda t, v: Database().table(int, migrate=str), "migrate="),
    "a key that is not stored": (
        lambda t, v: Database().table(Row, key="id", stored=False),
        "stored",
    ),
}


def _kind() -> type:
    class Thing:
        a: int
        b: int

    return Thing


@pytest.mark.parametrize("what", UNREAD)
def test_an_option_that_nothing_reads_beside_others_is_refused(what: str) -> None:
    act, says = UNREAD[what]
    with pytest.raises(PlanError, match=re.escape(says)):
        act(*_database())


def test_the_functions_are_those_that_have_options() -> None:
    found = {
        name
        for of in (Database, Table, View)
        for name, function in inspect.getmembers(of, inspect.isfunction)
        if not name.startswith("_")
        and any(
            each.kind is each.KEYWORD_ONLY
            for each in inspect.signature(function).parameters.values()
        )
    }
    assert found - OF_QUERIES <= set(FUNCTIONS)


OF_QUERIES = frozenset(
    {
        *("aggregate", "anti_join", "asof_join", "drop", "explain", "full_join", "join"),
        *(
            "left_asof_join",
            "left_join",
            "left_lookup",
            "lookup",
            "materialize",
            "order_by",
            "over",
            "right_join",
            "semi_join",
        ),
    }
)
"""Methods that make queries; each of their options has tests of its own."""
