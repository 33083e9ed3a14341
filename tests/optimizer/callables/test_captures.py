"""Captured variables keep the value that they had when the relation was made."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from optimizer.callables.captures import freeze, meaning
from reactive import Aggregate, Database, PlanError, StaleCaptureError, StaleCaptureWarning, Table

LIMIT = 2
SETTINGS = {"limit": 2}


def longer_than(limit: Any) -> tuple[Callable[[str], bool], Callable[[Any], None]]:
    """A predicate that captures `limit`, and a way to change it."""

    def change(value: Any) -> None:
        nonlocal limit
        limit = value

    return lambda w: len(w) > limit, change


@pytest.fixture
def words() -> Table[str]:
    return Database().table(str, name="words")


def test_a_changed_closure_is_reported_once_and_keeps_its_meaning(words: Table[str]) -> None:
    predicate, change = longer_than(2)
    view = words.where(predicate).materialize()
    words.add("four")
    change(10)
    with pytest.warns(StaleCaptureWarning, match="'limit', captured by <lambda>"):
        words.add("five")
    words.add("six")
    assert sorted(view) == ["five", "four", "six"]
    view.verify()


def test_a_changed_global_is_reported(words: Table[str], monkeypatch: pytest.MonkeyPatch) -> None:
    view = words.where(lambda w: len(w) > LIMIT).materialize()
    monkeypatch.setitem(globals(), "LIMIT", 10)
    with pytest.warns(StaleCaptureWarning, match="'LIMIT'"):
        words.add("four")
    assert list(view) == ["four"]


def test_a_container_changed_in_place_is_reported(
    words: Table[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    view = words.where(lambda w: len(w) > SETTINGS["limit"]).materialize()
    monkeypatch.setitem(SETTINGS, "limit", 10)
    with pytest.warns(StaleCaptureWarning, match="'SETTINGS'"):
        words.add("four")
    assert list(view) == ["four"]


def test_a_strict_database_refuses_the_commit() -> None:
    words = Database(strict=True).table(str, name="words")
    predicate, change = longer_than(2)
    view = words.where(predicate).materialize()
    change(3)
    with pytest.raises(StaleCaptureError):
        words.add("four")
    assert (list(words), list(view)) == ([], [])


def test_an_equal_value_is_no_change(words: Table[str]) -> None:
    predicate, change = longer_than(1000)
    view = words.where(predicate).materialize()
    change(int("1000"))
    words.add("a")
    assert list(view) == []


def test_another_type_of_an_equal_value_is_a_change(words: Table[str]) -> None:
    predicate, change = longer_than(1)
    view = words.where(predicate).materialize()
    change(True)
    with pytest.warns(StaleCaptureWarning):
        words.add("ab")
    assert list(view) == ["ab"]


def test_a_default_argument_binds_the_value(words: Table[str]) -> None:
    predicates: list[Any] = [lambda w, n=n: len(w) == n for n in (1, 2)]
    views = [words.where(predicate).materialize() for predicate in predicates]
    words.add_all(["a", "to"])
    assert [list(view) for view in views] == [["a"], ["to"]]


def test_only_operators_that_run_are_checked() -> None:
    db = Database()
    words, other = db.table(str, name="words"), db.table(str, name="other")
    predicate, change = longer_than(2)
    view = words.where(predicate).materialize()
    change(3)
    other.add("unrelated")
    assert list(view) == []


def test_freezing_keeps_what_a_function_is() -> None:
    def function(a: int, b: int = 2, *, c: int = 3) -> int:
        """Doc."""
        return a + b + c + LIMIT

    frozen, captures = freeze(function)
    assert [c.name for c in captures] == ["LIMIT"]
    assert frozen(1) == 8
    assert (frozen.__name__, frozen.__qualname__) == (function.__name__, function.__qualname__)


def test_functions_without_variables_and_other_callables_are_left_alone() -> None:
    plain = eval("lambda row: row.x + 1", {})
    for function in (plain, len, str.upper, functools.partial(int, base=2), SimpleNamespace):
        assert freeze(function) == (function, ())


def test_a_function_that_names_itself_still_works(words: Table[str]) -> None:
    def depth(word: str) -> int:
        return 0 if not word else 1 + depth(word[1:])

    view = words.select(depth).materialize()
    words.add("four")
    assert list(view) == [4]


def test_meaning_tells_types_and_signs_apart() -> None:
    values: list[Any] = [1, True, 1.0, 0.0, -0.0, "1", b"1", None, (1,), (True,)]
    assert len({meaning(v) for v in values}) == len(values)
    assert meaning((1, ("a",))) == meaning((1, ("a",)))


class Settings:
    limit = 2

    def __init__(self) -> None:
        self.least = 2
        self.tags = ["a"]


SETTINGS_OBJECT = Settings()


def test_a_changed_attribute_of_a_captured_object_is_reported(
    words: Table[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    view = words.where(lambda w: len(w) >= SETTINGS_OBJECT.least).materialize()
    monkeypatch.setattr(SETTINGS_OBJECT, "least", 3)
    with pytest.warns(StaleCaptureWarning, match=r"SETTINGS_OBJECT\.least.*results of both"):
        words.add("ab")
    assert len(view) == 0


def test_a_strict_database_refuses_before_an_attribute_is_read_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = Database(strict=True).table(str, name="words")
    view = words.where(lambda w: w in SETTINGS_OBJECT.tags).materialize()
    monkeypatch.setattr(SETTINGS_OBJECT, "tags", ["b"])
    with pytest.raises(StaleCaptureError):
        words.add("b")
    assert len(view) == 0


def test_a_table_behind_an_attribute_is_an_input() -> None:
    db = Database()
    words, stop = db.table(str, name="words"), db.table(str, name="stop")
    words.add_all(["a", "b"])

    class Holder:
        table = stop

    view = words.where(lambda w: w in Holder.table).materialize()
    assert list(view) == []
    stop.add("a")
    assert list(view) == ["a"]
    stop.update("a", "b")
    assert list(view) == ["b"]
    view.verify()


def test_a_table_behind_an_attribute_of_what_cannot_be_read_is_refused(words: Table[str]) -> None:
    class Holder:
        table = words

    combine: Any = lambda a, b: a + b * len(Holder.table)  # noqa: E731
    with pytest.raises(PlanError, match=r"reads 'Holder\.table', which is a Table"):
        words.group_by(len).aggregate(Aggregate(0, combine, combine))
    unread: dict[str, Any] = {"Holder": Holder}
    exec("def is_there(w): return w in Holder.table", unread)
    with pytest.raises(PlanError, match="reads relations, and cannot be read: there is no source"):
        words.where(unread["is_there"])


def test_an_asynchronous_callable_is_refused(words: Table[str]) -> None:
    async def slow(word: str) -> bool:
        return True

    with pytest.raises(PlanError, match="asynchronous"):
        words.where(slow)
