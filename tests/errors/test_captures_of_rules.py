"""A changed captured variable is reported, whatever the optimizer made of its readers."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest

from reactive import Database, StaleCaptureError, StaleCaptureWarning

LIMIT = 1


def limit() -> int:
    return LIMIT


def above(number: int) -> bool:
    return number > limit()


def warned(act: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", StaleCaptureWarning)
        act()
    return [str(w.message) for w in caught]


def test_a_variable_of_a_condition_that_was_dropped_is_reported() -> None:
    db, debug = Database(), True
    table = db.table(int, name="t")
    view = table.where(lambda n: debug or n > 3).materialize()
    assert "where" not in str(view.explain(analyze=True))
    table.add(1)
    debug = False
    (message,) = warned(lambda: table.add(2))
    assert "'debug', captured by" in message
    assert warned(lambda: table.add(3)) == []
    view.close()
    assert db._engine.graph._sources[0].watchers == ()


def test_a_variable_of_a_condition_that_emptied_the_view_is_reported() -> None:
    enabled = False
    db = Database(strict=True)
    table = db.table(int, name="t")
    view = table.where(lambda n: enabled).materialize()
    table.add(1)
    enabled = True
    with pytest.raises(StaleCaptureError, match="enabled"):
        table.add(2)
    assert list(table) == [1]
    assert list(view) == []


def test_a_variable_of_a_function_that_a_function_calls_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    db = Database()
    table = db.table(int, name="t")
    view = table.where(lambda n: above(n)).materialize()
    table.add(2)
    monkeypatch.setitem(globals(), "LIMIT", 5)
    (message,) = warned(lambda: table.add(3))
    assert "'LIMIT', read by limit, called by" in message
    assert sorted(view) == [2, 3]
