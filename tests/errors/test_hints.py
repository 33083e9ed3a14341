"""Names of other libraries, and methods of the wrong object, get a hint."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import reactive
from reactive import (
    Count,
    Database,
    Delta,
    GroupedView,
    Groups,
    OrderedView,
    PlanError,
    Subscription,
    Table,
    View,
)
from reactive.engine.runtime import foreign_names

WORDS = Database().table(str, name="words")
SUBSCRIPTION = WORDS.subscribe(lambda delta: None)
HINTED: list[tuple[object, Mapping[str, str]]] = [
    (WORDS, foreign_names.OF_TABLES),
    (Database().parameter(1), foreign_names.OF_PARAMETERS),
    (WORDS.distinct(), foreign_names.OF_RELATIONS),
    (WORDS.distinct().materialize(), foreign_names.OF_VIEWS),
    (WORDS.order_by(len).materialize(), foreign_names.OF_VIEWS),
    (WORDS.group_by(len), foreign_names.OF_GROUPS),
    (SUBSCRIPTION, foreign_names.OF_SUBSCRIPTIONS),
    (Delta(1, []), foreign_names.OF_DELTAS),
    (Database(), foreign_names.OF_DATABASES),
    (reactive, foreign_names.OF_MODULE),
]
NAMES = [(thing, name, hint) for thing, hints in HINTED for name, hint in hints.items()]


@pytest.mark.parametrize(("thing", "hints"), HINTED, ids=[type(t).__name__ for t, _ in HINTED])
def test_names_of_other_libraries_say_what_it_is_called_here(
    thing: object, hints: Mapping[str, str]
) -> None:
    for name, hint in hints.items():
        with pytest.raises(AttributeError, match=f"{name}.*\\n  {re.escape(hint)}$"):
            getattr(thing, name)
        assert not hasattr(thing, name) and name not in dir(thing)


def test_hints_name_what_there_is() -> None:
    """A method in a hint, `name(`, must exist on the object, or on one that the hint makes."""
    known = {"lambda", "print", "len", "list", "dict", "key", "desc", "row", "other"}
    for kind in (Table, View, GroupedView, OrderedView, Groups, Database, Subscription, Delta):
        known |= {*dir(kind)}
    known |= {*dir(reactive)} | {*reactive.__all__}
    for _, _, hint in NAMES:
        for called in re.findall(r"(\w+)\(", hint):
            assert called in known, hint
        for named in re.findall(r"names? (?:is|are) (\w+)", hint):
            assert named in known, hint


def test_an_import_of_another_name_says_what_it_is_called_here() -> None:
    with pytest.raises(ImportError, match=r"cannot import name 'Mean' from 'reactive'\n .*Avg$"):
        exec("from reactive import Mean")
    with pytest.raises(ImportError, match=r"cannot import name 'Nonsense' from 'reactive' \("):
        exec("from reactive import Nonsense")


METHODS: dict[str, Callable[[], Any]] = {
    "join": lambda: WORDS.join,
    "order_by": lambda: WORDS.order_by,
    "group_by": lambda: WORDS.group_by,
    "distinct": lambda: WORDS.distinct,
    "limit": lambda: WORDS.order_by(len).limit,
    "table": lambda: Database().table,
    "show": lambda: WORDS.distinct().show,
    "materialize": lambda: WORDS.materialize,
    "subscribe": lambda: WORDS.subscribe,
}


@pytest.mark.parametrize("name", sorted(foreign_names.KEYWORDS))
def test_arguments_of_other_libraries_say_what_they_are_called_here(name: str) -> None:
    for keyword, hint in foreign_names.KEYWORDS[name].items():
        with pytest.raises(TypeError) as caught:
            METHODS[name]()(WORDS, **{keyword: 1})
        assert str(caught.value).endswith(f"{keyword!r}\n  {hint}")


def test_any_other_argument_gets_no_hint() -> None:
    call: Any = WORDS.join
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'wow'$"):
        call(WORDS, wow=1)


def test_a_type_error_of_a_callable_stays_as_it_is() -> None:
    def plain(a: Any, /) -> Any:
        return a

    join: Any = plain

    with pytest.raises(TypeError, match=r"argument 'how'\n  in apply of"):
        Database().table(str).apply(lambda rows: join(rows, how=1)).materialize()


def test_what_nobody_knows_gets_no_hint() -> None:
    relation: Any = Database().table(str).distinct()
    with pytest.raises(AttributeError, match=r"has no attribute 'frobnicate'$"):
        _ = relation.frobnicate


@pytest.mark.parametrize("row_type", ["orders", dict, list])
def test_what_no_row_can_be_of_is_refused_when_the_table_is_made(row_type: Any) -> None:
    with pytest.raises(PlanError):
        Database().table(row_type)


def test_a_grouped_view_has_its_keys_in_it() -> None:
    words = Database().table(str)
    view = words.group_by(len).aggregate(Count()).materialize()
    words.add("to")
    assert 2 in view
    assert (2, 1) in view
    assert 3 not in view


def test_names_that_only_give_hints_are_not_listed_and_not_there() -> None:
    table = Database().table(str)
    assert "filter" not in dir(table) and not hasattr(table, "filter")
    view = table.materialize()
    assert "filter" not in dir(view) and not hasattr(view, "filter")
    assert {"where", "items"} < set(dir(table)) and {"items", "count", "where"} < set(dir(view))
