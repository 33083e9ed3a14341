"""Rows that `replace_where` replaces are found by an index, and are those that a scan finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database, Sum, Table, TableError
from reactive.engine.transactions import rows_by_field, statements
from reactive.engine.transactions.followers import followers_of
from reactive.engine.transactions.rows_by_field import FIRST, SMALL, equations_of
from tests.budget import examples


class Named(NamedTuple):
    file: Any
    caller: Any
    line: Any = 0


@dataclass(frozen=True, slots=True)
class Plain:
    file: Any
    caller: Any
    line: Any = 0


class Odd:
    """A value that equals every other, or refuses to be compared with "f1"."""

    def __init__(self, refuses: bool) -> None:
        self.refuses = refuses

    def __eq__(self, other: object) -> bool:
        if self.refuses and isinstance(other, str) and other == "f1":
            raise ZeroDivisionError
        return not self.refuses

    def __hash__(self) -> int:
        return 7


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = vars(statements)["rows_by_field"]  # or the module; it keeps what it has read
    for read in (rows_by_field, stand_in):
        monkeypatch.setattr(read, "SMALL", 0)


CONDITIONS: list[Callable[[Any, Any], Callable[[Any], object]]] = [
    lambda f, g: lambda c: c.file == f,
    lambda f, g: lambda c: f == c.file and c.caller == g,
    lambda f, g: lambda c: c.file in (f, g),
    lambda f, g: lambda c: c.file in {f, g} and c.line,
    lambda f, g: lambda c: c.file == f or c.file == g,
    lambda f, g: lambda c: c.file == f or c.caller == g,
    lambda f, g: lambda c: not (c.file != f),  # noqa: SIM202
    lambda f, g: lambda c: c.line < 2 and c.file == f,
    lambda f, g: lambda c: c.file == f and c.line < 2,
    lambda f, g: lambda c: c.file == c.caller,
]
VALUES = st.sampled_from([0, 1, 1.0, True, None, "a", "b", float("nan")])
ROWS = st.tuples(VALUES, st.sampled_from(["a", "b"]), st.sampled_from([0, 1, 2, None, "x"]))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["add", "remove"]), ROWS),
        st.tuples(st.sampled_from(["add_all"]), st.lists(ROWS, max_size=3)),
        st.tuples(st.sampled_from(range(len(CONDITIONS))), st.tuples(VALUES, VALUES, ROWS)),
    ),
    max_size=6,
)


def apply(table: Table[Any, Any], what: Any, given_: Any, *, finds: bool) -> str:
    """Run a step, with an index or by a scan; return the text of its error, or an empty string."""
    kind = table.row_type
    try:
        if what == "add_all":
            table.add_all([kind(*row) for row in given_])
        elif isinstance(what, str):
            getattr(table, what)(kind(*given_))
        else:
            first, second, row = given_
            predicate = CONDITIONS[what](first, second)
            new = [each for each in [kind(first, *row[1:]), kind(*row)] if predicate(each)]
            table.replace_where(predicate if finds else partial(predicate), new)
    except (TableError, TypeError) as error:
        return type(error).__name__
    return ""


@pytest.mark.parametrize("kind", [Named, Plain])
@given(st.lists(ROWS, max_size=6), st.lists(st.tuples(st.booleans(), STEPS), max_size=5))
@examples(150)
def test_the_rows_are_those_of_a_scan(kind: Any, before: Any, histories: Any) -> None:
    sides = []
    for _ in range(2):
        db = Database()
        table = db.table(kind, name="calls")
        table.add_all([kind(*row) for row in before])
        view = table.group_by(lambda c: c.caller).aggregate(Sum(lambda c: 1)).materialize()
        sides.append((db, table, view))
    for number in range(3):
        histories = [(False, [(0, (value, value, (value, "a", 0)))]) for value in (1, "a")][
            :number
        ] + histories
    for fails, steps in histories:
        says: list[list[str]] = []
        for finds, (db, table, view) in zip((True, False), sides, strict=True):
            says.append([])
            with suppress(ZeroDivisionError), db.transaction():
                for what, values in steps[1:]:
                    says[-1].append(apply(table, what, values, finds=finds))
                if fails:
                    raise ZeroDivisionError
            for what, values in steps[:1]:
                says[-1].append(apply(table, what, values, finds=finds))
            view.verify()
        assert says[0] == says[1]
        assert Counter(map(repr, sides[0][1])) == Counter(map(repr, sides[1][1]))


def calls(size: int, key: Any = None) -> Table[Plain, Any]:
    table = Database().table(Plain, name="calls", key=key)
    table.add_all([Plain(f"f{n // 4}", n, n % 3) for n in range(size)])
    return table


class Counted:
    """A function of a row that counts how often it is called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, row: Any) -> bool:
        self.calls += 1
        return True


@pytest.mark.parametrize("key", [None, "caller"])
@pytest.mark.parametrize("size", [400, 4_000])
def test_a_call_tests_the_rows_of_the_value_only(size: int, key: Any) -> None:
    table, counted = calls(size, key), Counted()
    for number in range(FIRST + 4):
        before, file = counted.calls, f"f{number}"
        new = [Plain(file, -number - 1, 5), Plain(file, 4 * number, 7)]
        table.replace_where(lambda c: c.file == file and counted(c), new)
        assert Counter(c for c in table if c.file == file) == Counter(new)
        if number >= FIRST:
            table.replace_where(lambda c: c.file in ("f1", file) and counted(c), new)
            assert counted.calls - before <= 4 + 2 + 2 + 2 + 2
    assert "file" in followers_of(table).by_field.indexes


def test_captured_variables_are_read_at_each_call() -> None:
    table, file = calls(400), "f0"

    def of_file(c: Plain) -> bool:
        return bool(c.file == file)

    for number in range(FIRST + 3):
        file = f"f{number}"
        table.replace_where(of_file, [])
    assert {c.file for c in table} == {f"f{n}" for n in range(FIRST + 3, 100)}


@pytest.mark.parametrize("value", [Odd(False), Odd(True), (1, 2), b"f1"])
def test_other_values_are_compared_with_every_row(value: Any) -> None:
    table = calls(400)
    for _ in range(FIRST + 1):
        table.replace_where(lambda c: c.file == "f1", [])
    table.add(Plain(value, -1))
    if isinstance(value, Odd) and value.refuses:
        with pytest.raises(ZeroDivisionError):
            table.replace_where(lambda c: c.file == "f1", [])
        return
    table.replace_where(lambda c: c.file == "f1", [])
    assert table.count(Plain(value, -1)) == (0 if isinstance(value, Odd) else 1)


def test_an_exception_names_the_first_row_that_raises() -> None:
    table = calls(400)
    for _ in range(FIRST + 1):
        table.replace_where(lambda c: c.file == "f1", [])
    with pytest.raises(ZeroDivisionError) as found:
        table.replace_where(lambda c: c.file == "f2" and 1 / (c.caller - 9), [])
    assert "caller=9" in found.value.__notes__[0]
    with pytest.raises(ZeroDivisionError):
        table.replace_where(lambda c: 1 / (c.caller - 9) and c.file == "f7", [])
    assert len(table) == 396


def test_it_is_dropped_when_more_changes_wait_than_rows() -> None:
    table = calls(SMALL)
    for _ in range(FIRST):
        table.replace_where(lambda c: c.file == "f1", [])
    index = followers_of(table).by_field
    assert index is not None and index.indexes
    for number in range(SMALL + 2):
        table.add(Plain("new", -number))
        table.remove(Plain("new", -number))
    assert not index.indexes and not index._deltas


def conditions() -> Iterator[tuple[Any, Any]]:
    f, g, names, odd = "f", "g", {"f"}, Odd(False)
    yield lambda c: c.file == f, [("file", ("f",))]
    yield lambda c: c.file in names, [("file", ("f",))]
    yield lambda c: c[0] == f and c[2] == 1, [(0, ("f",)), (2, (1,))]
    yield lambda c: c.file == f or g == c.file, [("file", ("f", "g"))]
    yield lambda c: c.file == odd, []
    yield lambda c: c.file in "abc", []
    yield lambda c: c.file.name == f, []
    yield lambda c: c[-1] == f, []
    yield lambda c: c.line > 2 and c.file == f, []
    yield lambda c: c.missing == unknown, []  # type: ignore[name-defined]  # noqa: F821
    yield len, []


def test_the_first_equations_of_a_condition_are_found() -> None:
    for predicate, expected in conditions():
        assert equations_of(predicate) == expected
