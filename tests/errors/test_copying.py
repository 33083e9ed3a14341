"""Objects bound to a database cannot be copied or pickled; the error names alternatives."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from reactive import Count, Database, Delta, MissingKeyError
from tests.errors.golden import refused, told

COPIES: list[Callable[[Any], Any]] = [copy.copy, copy.deepcopy]


class Given:
    """One of each kind."""

    def __init__(self) -> None:
        self.db = Database()
        self.table = self.db.table(str, name="words")
        self.view = self.table.group_by(len).aggregate(Count()).materialize("lengths")
        self.subscription = self.view.subscribe(lambda delta: None)
        self.changes = self.view.changes()
        self.transaction = self.db.transaction()


REFUSED = {
    "view": (
        "view 'lengths'",
        "view.snapshot() has the rows of now, view.relation is the query",
        "pickle view.snapshot(), the rows of now",
    ),
    "table": (
        "table 'words'",
        "make another one with db.table(...), and add_all(rows)",
        "pickle list(table), its rows",
    ),
    "db": (
        "a database of 1 tables",
        "make another one; its tables take list(table) by add_all",
        "pickle the rows of its tables, list(table) of each of db.tables()",
    ),
    "subscription": (
        "a subscription of view 'lengths'",
        "subscribe once more",
        "subscribe where the database is; a Delta can be pickled",
    ),
    "changes": (
        "the changes of view 'lengths'",
        "each call of changes() makes another one",
        "a Delta can be pickled",
    ),
    "transaction": (
        "a transaction",
        "each call of db.transaction() makes another one",
        "pickle the rows of its tables, list(table) of each of db.tables()",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_copy_is_refused_with_what_to_do(name: str) -> None:
    thing = getattr(Given(), name)
    called, instead, _ = REFUSED[name]
    for made in COPIES:
        with pytest.raises(TypeError) as caught:
            made(thing)
        assert told(caught.value) == (
            f"TypeError: cannot copy {called}: it lives with its database\n  {instead}"
        )
    with pytest.raises(TypeError):
        copy.deepcopy({"inside": [thing]})


@pytest.mark.parametrize("name", REFUSED)
def test_pickling_is_refused_with_what_to_do(name: str) -> None:
    thing = getattr(Given(), name)
    called, _, instead = REFUSED[name]
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError) as caught:
            pickle.dumps([thing], protocol)
        assert told(caught.value) == (
            f"TypeError: cannot pickle {called}: it lives with its database\n  {instead}"
        )


def test_a_closed_view_says_the_same() -> None:
    given = Given()
    given.view.close()
    with pytest.raises(TypeError, match="cannot pickle view 'lengths'"):
        pickle.dumps(given.view)


def test_a_query_is_data_that_never_changes_and_is_its_own_copy() -> None:
    given = Given()
    queries: list[Any] = [
        given.view.relation,
        given.table.where(str.islower),
        given.table.order_by(len),
        given.table.group_by(len),
    ]
    for query in queries:
        assert copy.copy(query) is query
        assert copy.deepcopy([query])[0] is query
        with pytest.raises(TypeError, match=r"cannot pickle the (relation|groups)") as e:
            pickle.dumps(query)
        assert str(e.value).endswith("materialize().snapshot()")


def test_what_can_be_pickled_is_what_is_said() -> None:
    given = Given()
    given.table.add_all(["to", "be", "not"])
    assert sorted(pickle.loads(pickle.dumps(given.view.snapshot()))) == [(2, 2), (3, 1)]
    assert sorted(pickle.loads(pickle.dumps(list(given.table)))) == ["be", "not", "to"]


def test_a_delta_can_be_pickled_whatever_the_key_of_its_rows_is() -> None:
    db = Database()
    prices = db.table(tuple, key=lambda p: p[0])
    heard: list[Delta[Any]] = []
    held = [
        query.subscribe(heard.append, snapshot=True)
        for query in (prices, prices.order_by(lambda p: p[1]), prices.aggregate(Count()))
    ]
    prices.upsert_all([("tea", 3), ("milk", 1)])
    prices.upsert(("tea", 4))
    assert len(heard) > 6
    for delta in heard:
        twin = pickle.loads(pickle.dumps(delta))
        assert twin == delta
        assert (twin.added, twin.removed, twin.updated) == (
            *(delta.added, delta.removed),
            delta.updated,
        )
        assert (twin.edits, twin.items(), str(twin)) == (delta.edits, delta.items(), str(delta))
    assert copy.copy(heard[0]) == heard[0]
    del held


# What is not in a view.


def test_a_group_that_is_not_there_names_the_view() -> None:
    view = Given().view
    with refused(
        """
        MissingKeyError: view 'lengths' has no group 7
          view.get(key) gives None for one
        """
    ):
        view[7]
    with pytest.raises(KeyError) as caught:
        view[7]
    assert isinstance(caught.value, MissingKeyError)
    assert caught.value.key == 7
    same = pickle.loads(pickle.dumps(caught.value))
    assert (str(same), same.key) == (str(caught.value), 7)


def test_a_long_key_is_cut() -> None:
    view: Any = Given().view
    with pytest.raises(MissingKeyError) as caught:
        view["x" * 1000]
    assert len(str(caught.value)) < 200


def test_a_view_without_a_name_is_named_by_its_place() -> None:
    words = Database().table(str)
    view = words.group_by(len).aggregate(Count()).materialize()
    with pytest.raises(MissingKeyError, match=r"the view made at test_copying.py:\d+ has no group"):
        view[1]
