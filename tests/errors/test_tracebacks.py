"""A traceback shows the user's frames: the call that was made, and the callable that raised."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optimizer.callables.source import FOLDERS
from reactive import (
    Aggregate,
    Count,
    Database,
    GroupedRelation,
    GroupedView,
    Groups,
    OrderedRelation,
    OrderedView,
    Relation,
    Sum,
    Table,
    View,
    desc,
    fixpoint,
)

VARIABLE = "REACTIVE_TRACEBACK"


@pytest.fixture(autouse=True)
def usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def functions(error: BaseException) -> list[str]:
    """Return the names of the functions in a traceback, except those of this test."""
    frames = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    return [code.co_name for code in frames if code.co_name != "raised_by"]


def raised_by(call: Callable[[], object]) -> BaseException:
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def is_ours(file: str) -> bool:
    return file.startswith((*FOLDERS, "<reactive"))


def divide(number: int) -> float:
    return 12 / number


class Shop:
    """Tables and views of all kinds, where the row 0 makes every callable raise."""

    def __init__(self, *, optimize: bool = True) -> None:
        self.db = Database(optimize=optimize)
        self.numbers: Any = self.db.table(int, name="numbers")
        self.keyed: Any = self.db.table(int, name="keyed", key=lambda n: n)
        self.other: Any = self.db.table(int, name="other")
        self.views = self._views()

    def _views(self) -> dict[str, Any]:
        n, o = self.numbers, self.other
        return {
            "where": n.where(lambda x: divide(x) > 3),
            "select": n.select(lambda x: divide(x)),
            "inline": n.select(lambda x: 12 / x),
            "many": n.select_many(lambda x: [divide(x)]),
            "join": n.join(o, on=lambda a, b: divide(a) == b),
            "keys": n.join(o, left_key=lambda a: divide(a), right_key=lambda b: b),
            "groups": n.group_by(lambda x: divide(x)).aggregate(Count()),
            "sum": n.aggregate(Sum(lambda x: divide(x))),
            "own": n.aggregate(Aggregate(0.0, lambda s, x: s + divide(x), lambda s, x: s)),
            "order": n.order_by(lambda x: divide(x)),
            "recursion": fixpoint(lambda r: n.union(r.where(lambda x: divide(x) > 3))),
        }


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("name", Shop().views)
def test_an_exception_of_a_callable_shows_the_call_and_the_callable(
    name: str, optimize: bool
) -> None:
    shop = Shop(optimize=optimize)
    view = shop.views[name].materialize()
    shop.other.add(3)
    error = raised_by(lambda: shop.numbers.add(0))
    assert isinstance(error, ZeroDivisionError)
    inner = ["divide"] if name != "inline" else []
    assert functions(error) == ["<lambda>", "<lambda>", *inner]
    assert "  transaction rolled back: no table or view changed" in error.__notes__
    view.close()
    shop.numbers.add(0)
    assert functions(raised_by(shop.views[name].materialize)) == ["<lambda>", *inner]


STATEMENTS: dict[str, Callable[[Shop], object]] = {
    "add": lambda s: s.numbers.add(0),
    "add twice": lambda s: s.numbers.add(0, 2),
    "add_all": lambda s: s.numbers.add_all([1, 0]),
    "update": lambda s: s.numbers.update(7, 0),
    "replace_all": lambda s: s.numbers.replace_all([0]),
    "replace_where": lambda s: s.numbers.replace_where(lambda n: n != 7, [0]),
    "upsert": lambda s: s.keyed.upsert(0),
    "upsert_all": lambda s: s.keyed.upsert_all([0]),
    "in a transaction": lambda s: in_transaction(s),
    "in an async transaction": lambda s: asyncio.run(in_async_transaction(s)),
    "+=": lambda s: s.numbers.__iadd__(0),
    "materialize": lambda s: late(s).materialize(),
    "subscribe": lambda s: late(s).subscribe(print, snapshot=True),
}


def in_transaction(shop: Shop) -> None:
    with shop.db.transaction():
        shop.numbers.add(0)


async def in_async_transaction(shop: Shop) -> None:
    async with shop.db.transaction():
        shop.numbers.add(0)


def late(shop: Shop) -> Any:
    shop.other.add(0)
    return shop.other.where(lambda n: divide(n) > 3)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_whatever_makes_a_callable_run_is_hidden(statement: str) -> None:
    shop = Shop()
    shop.numbers.add(7)
    views = [t.where(lambda n: divide(n) > 3).materialize() for t in (shop.numbers, shop.keyed)]
    error = raised_by(lambda: STATEMENTS[statement](shop))
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    assert not any(map(is_ours, files)) and functions(error)[-2:] == ["<lambda>", "divide"]
    assert not any("contextlib" in file for file in files)
    assert [list(view) for view in views] == [[], []]


REFUSED: dict[str, Callable[[Shop], object]] = {
    "remove": lambda s: s.numbers.remove(5),
    "remove_all": lambda s: s.numbers.remove_all([5]),
    "add": lambda s: s.numbers.add("x"),
    "-=": lambda s: s.numbers.__isub__(5),
    "update": lambda s: s.numbers.update(5, 6),
    "delete": lambda s: s.keyed.delete(5),
    "not keyed": lambda s: s.numbers.delete(5),
    "upsert": lambda s: s.numbers.upsert(5),
    "key": lambda s: s.keyed[5],
    "group": lambda s: s.views["groups"].materialize()[5],
    "position": lambda s: s.views["order"].materialize()[5],
    "index": lambda s: s.views["order"].materialize().index(5),
    "value": lambda s: s.views["where"].materialize().value,
    "where": lambda s: s.numbers.where(3),
    "join": lambda s: s.numbers.join(3),
    "operator": lambda s: s.numbers | 3,
    "iteration": lambda s: list(s.views["where"]),
    "limit": lambda s: s.views["order"].limit(-1),
    "field": lambda s: s.numbers.group_by("id"),
    "aggregate": lambda s: s.numbers.aggregate(Count),
    "groups": lambda s: s.numbers.group_by(lambda n: n).where(lambda n: n),
    "other name": lambda s: s.numbers.filter(lambda n: n),
    "of another name": lambda s: s.views["where"].materialize().filter(len),
    "head": lambda s: s.views["where"].head(-1),
    "table": lambda s: s.db.table(int, name="numbers"),
    "recursion": lambda s: fixpoint(lambda r: r),
    "desc": lambda s: desc(lambda n: n, nulls="somewhere"),  # type: ignore
    "own aggregate": lambda s: Aggregate(0, 1, 2),  # type: ignore
    "closed view": lambda s: closed(s.views["where"].materialize()).snapshot(),
    "closed rows": lambda s: list(closed(s.views["where"].materialize())),
    "closed database": lambda s: closed(s.db).table(str),
    "closed table": lambda s: [closed(s.db), s.numbers.add(3)],
    "subscription": lambda s: s.numbers.subscribe(in_async_transaction),
    "changes": lambda s: s.numbers.changes(maxsize=0),
    "pickle": lambda s: __import__("pickle").dumps(s.numbers),
    "copy": lambda s: __import__("copy").copy(s.numbers),
}


def closed(what: Any) -> Any:
    what.close()
    return what


@pytest.mark.parametrize("call", REFUSED)
def test_a_refusal_shows_the_call_alone(call: str) -> None:
    error = raised_by(lambda: REFUSED[call](Shop()))
    frames = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    assert not any(is_ours(code.co_filename) for code in frames)
    assert frames[-1].co_filename == __file__ or call == "copy"
    shown = "".join(traceback.format_exception(error))
    assert not any(folder in shown for folder in FOLDERS), shown


def test_all_frames_are_shown_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "full")
    shown = functions(raised_by(lambda: Shop().numbers.remove(5)))
    assert {"remove", "write"} <= {*shown}


def test_what_can_only_be_a_mistake_of_the_library_shows_where() -> None:
    impossible: Any = OrderedRelation(Database()._engine, Database().table(int).plan)
    error = raised_by(lambda: impossible.limit(3))
    assert isinstance(error, AssertionError) and functions(error)[-1] == "limit"


def test_the_log_of_a_subscriber_that_raised_shows_the_subscriber(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shop = Shop()

    def fails(delta: object) -> None:
        divide(0)

    with caplog.at_level(logging.ERROR, "reactive"), shop.numbers.subscribe(fails) as watching:
        shop.numbers.add(5)
    assert isinstance(watching.error, ZeroDivisionError)
    assert functions(watching.error) == ["fails", "divide"]
    assert not any(folder in caplog.text for folder in FOLDERS)


def test_frames_of_other_libraries_between_the_users_stay() -> None:
    import json

    numbers = Database().table(str)
    numbers.add("{")
    error = raised_by(lambda: numbers.select(json.loads).materialize())
    assert functions(error)[:3] == ["<lambda>", "loads", "decode"]


def test_an_exception_that_was_being_handled_is_still_told() -> None:
    shop = Shop()

    def careless() -> None:
        try:
            divide(0)
        except ZeroDivisionError:
            shop.numbers.where(5)

    error = raised_by(careless)
    assert isinstance(error.__context__, ZeroDivisionError) and not error.__suppress_context__
    assert functions(error.__context__) == ["careless", "divide"]


PUBLIC = [
    *(Database, Table, Relation, GroupedRelation, OrderedRelation, Groups),
    *(View, GroupedView, OrderedView),
]


@pytest.mark.parametrize("kind", PUBLIC, ids=lambda kind: kind.__name__)
def test_every_public_method_is_a_boundary(kind: type) -> None:
    for name, method in vars(kind).items():
        if inspect.isfunction(method) and not name.startswith("_"):
            names = method.__code__.co_names + method.__code__.co_freevars
            assert {"hide", "take_out"} & {*names}, f"{kind.__name__}.{name}"


SCRIPT = """
from reactive import Database
numbers = Database().table(int, name="numbers")
half = numbers.select(lambda n: 12 / n).materialize("half")
numbers.add(0)
"""


def test_a_script_shows_its_own_two_lines(tmp_path: Path) -> None:
    script = tmp_path / "shop.py"
    script.write_text(SCRIPT)
    run = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=60, check=False
    )
    lines = [line.strip() for line in run.stderr.splitlines() if "^" not in line and line.strip()]
    assert lines == [
        "Traceback (most recent call last):",
        f'File "{script}", line 5, in <module>',
        "numbers.add(0)",
        f'File "{script}", line 4, in <lambda>',
        'half = numbers.select(lambda n: 12 / n).materialize("half")',
        "ZeroDivisionError: division by zero",
        "in select of view 'half' (shop.py:4), on row 0",
        "transaction rolled back: no table or view changed",
    ]


def test_a_notebook_shows_its_own_cells() -> None:
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell: Any = InteractiveShell()  # type: ignore[no-untyped-call]
    with capture_output() as shown:
        for cell in SCRIPT.strip().splitlines():
            shell.run_cell(cell, store_history=True)
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown.stdout)
    assert "ZeroDivisionError" in text and "numbers.add(0)" in text and "12 / n" in text
    assert not any(folder in text for folder in FOLDERS) and "<reactive" not in text
