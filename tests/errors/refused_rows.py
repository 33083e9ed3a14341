"""Rows of sources that tables refuse: their outcome, by the way in and the policy.

    failure x way in   -->   the outcome by "raise" and by "drop"

Each is played: one good row, then a batch of another origin with a good row and a bad one.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from reactive import Batch, Database, OffloadError

Policy = Literal["raise", "drop"]
POLICIES: tuple[Policy, ...] = ("raise", "drop")
STOPS = "the source stops before the batch"
LEFT_OUT = "left out, in `.errors`"
IN_VIEW = "is taken; in `view.errors`"
NONE = "there is none"
FAILS = "is taken; reading the view raises, and shows the row"
REPLACES = "takes the place of the row with its key"


class Reading(NamedTuple):
    id: int
    amount: float


GOOD, NEXT = Reading(1, 2.0), Reading(2, 4.0)
FAILURES = (
    "a value of another class",
    "None where the field does not admit it",
    "a line that is no row",
    "a value without a hash",
    "a key that another origin has",
    "a view without a policy raises",
    'a view with `on_error="drop"` raises',
)
VIEWS = FAILURES[-2:]
BAD: dict[str, tuple[Any, str, str]] = {
    "a value of another class": ("odd", "3,odd", '{"id": 3, "amount": "odd"}'),
    "None where the field does not admit it": (
        Reading(3, None),  # type: ignore[arg-type]
        "3,",
        '{"id": 3, "amount": null}',
    ),
    "a line that is no row": (None, "3,1.0,2.0", '{"id": 3, "amount":'),
    "a value without a hash": (Reading(3, []), "", ""),  # type: ignore[arg-type]
    "a key that another origin has": (Reading(1, 3.0), "1,3.0", '{"id": 1, "amount": 3.0}'),
}
"""The bad row of a failure, as an object, a line of CSV, and a line of JSON."""
OF_VIEWS: tuple[Any, str, str] = (Reading(3, 0.0), "3,0.0", '{"id": 3, "amount": 0.0}')


def _outcome(table: Any, source: Any, view: Any, policy: Policy, stops: Callable[[], bool]) -> str:
    """Return the outcome, after the batch was given to the source."""
    if stops():
        assert list(table) == [GOOD] and policy == "raise"
        return STOPS
    assert {GOOD, NEXT} <= {*table}
    if len(table) == 3:
        assert len(view.errors) == 1
        view.verify()
        return IN_VIEW
    assert policy == "drop" and len(source.errors) == 1
    return LEFT_OUT


def of_ingest(failure: str, policy: Policy) -> str:
    """Return the outcome of batches that are pushed."""
    if failure == "a line that is no row":
        return NONE
    with Database() as db:
        table = db.table(Reading, key="id", name="readings")
        view = _view(table, failure)
        reading = db.ingest(None, table, name="pushed", on_error=policy)
        reading.take(Batch(origins={"first": [GOOD]}))
        bad = OF_VIEWS[0] if failure in VIEWS else BAD[failure][0]

        def stops() -> bool:
            try:
                reading.take(Batch(origins={"second": [NEXT, bad]}))
            except Exception as error:
                assert policy == "raise", error
                return True
            return False

        return _outcome(table, reading, view, policy, stops)


def of_files(suffix: Literal["csv", "jsonl"]) -> Callable[[str, Policy], str]:
    """Return a function that plays a failure by watched files."""
    place = 1 if suffix == "csv" else 2

    def played(failure: str, policy: Policy) -> str:
        bad = (OF_VIEWS if failure in VIEWS else BAD[failure])[place]
        if not bad:
            return NONE
        with tempfile.TemporaryDirectory() as folder, Database() as db:
            _write(Path(folder) / f"1.{suffix}", [GOOD], "")
            pattern = Path(folder) / f"*.{suffix}"
            table: Any = db.watch(
                pattern, Reading, name="readings", key="id", on_error=policy, poll=0.01
            )
            view = _view(table, failure)
            _write(Path(folder) / f"2.{suffix}", [NEXT], bad)

            def stops() -> bool:
                try:
                    table.catch_up(timeout=60)
                except Exception as error:
                    assert policy == "raise", error
                return bool(table.source.state == "failed")

            return _outcome(table, table.source, view, policy, stops)

    return played


def of_stream(offload: Any) -> Callable[[str, Policy], str]:
    """Return a function that plays a failure by a Spark stream of JSON lines."""

    def played(failure: str, policy: Policy) -> str:
        bad = (OF_VIEWS if failure in VIEWS else BAD[failure])[2]
        if not bad:
            return NONE
        with tempfile.TemporaryDirectory() as folder, Database(offload=offload) as db:
            pattern = Path(folder) / "in"
            pattern.mkdir()
            _write(pattern / "1.json", [GOOD], "")
            table: Any = db.spark_stream(
                str(pattern),
                Reading,
                name="readings",
                key="id",
                format="json",
                on_error=policy,
                trigger="100 milliseconds",
            )
            _until(lambda: len(table) == 1 or table.source.state == "failed")
            view = _view(table, failure)
            _write(pattern / "2.json", [NEXT], bad)
            _until(lambda: len(table) > 1 or table.source.state == "failed")
            if failure == "a key that another origin has" and table.source.state != "failed":
                assert {*table} == {Reading(1, 3.0), NEXT}
                return REPLACES
            if failure == VIEWS[0] and len(table) == 3:
                try:
                    list(view)
                except OffloadError as error:
                    assert "id=3" in str(error)
                    return FAILS
            return _outcome(
                table, table.source, view, policy, lambda: table.source.state == "failed"
            )

    return played


def _until(is_so: Callable[[], bool]) -> None:
    """Wait at most two minutes."""
    until = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)


WAYS: dict[str, Callable[[str, Policy], str]] = {
    "`ingest`": of_ingest,
    "`watch`, CSV": of_files("csv"),
    "`watch`, JSON lines": of_files("jsonl"),
}


def _view(table: Any, failure: str) -> Any:
    """Make the view that a failure is about."""
    if failure not in VIEWS:
        return None
    policy: Any = "raise" if failure == VIEWS[0] else "drop"
    return table.select(lambda r: 8 // r.amount).materialize(on_error=policy)


def _write(path: Path, rows: Sequence[Reading], bad: str) -> None:
    if path.suffix == ".csv":
        lines = ["id,amount", *(f"{row.id},{row.amount}" for row in rows)]
    else:
        lines = [json.dumps(row._asdict()) for row in rows]
    part = path.with_suffix(".part")
    part.write_text("\n".join([*lines, *([bad] if bad else [])]) + "\n")
    part.rename(path)


def cell(played: Callable[[str, Policy], str], failure: str) -> str:
    """Return the outcomes of a failure by both policies, as a cell of the table."""
    outcomes = [played(failure, policy) for policy in POLICIES]
    if len({*outcomes}) == 1:
        return outcomes[0]
    return f"{outcomes[0]}; drop: {outcomes[1]}"


def page(of_spark: Sequence[str]) -> str:
    """Return the table; `of_spark` is its last column."""
    names = [*WAYS, "`spark_stream`, JSON lines"]
    lines = [f"| a row | {' | '.join(names)} |", f"|{'---|' * (len(names) + 1)}"]
    for failure, spark in zip(FAILURES, of_spark, strict=True):
        cells = [cell(played, failure) for played in WAYS.values()]
        lines.append(f"| {failure} | {' | '.join([*cells, spark])} |")
    return "\n".join(lines) + "\n"
