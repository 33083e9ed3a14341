"""A call that is written several times is made once per row, if no result can differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from reactive import Count, Database, Sum
from tests.written import executed


class Log:
    """A counter of calls."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def note(self, name: str) -> None:
        self.calls[name] += 1


LOG = Log()


@dataclass(frozen=True, slots=True)
class Row:
    a: Any
    b: Any

    def score(self) -> Any:
        LOG.note("score")
        return self.a


# Functions of several statements are called, not read.


def f(row: Row) -> Any:
    LOG.note("f")
    return row.a


def g(row: Row) -> Any:
    LOG.note("g")
    return 12 // row.b


def many(row: Row) -> Any:
    LOG.note("many")
    return [row.a, row.b]


def numbers(row: Row) -> Iterator[Any]:
    LOG.note("numbers")
    yield row.a
    yield row.b


NAMES: dict[str, Any] = {function.__name__: function for function in (f, g, many, numbers)}
NAMES |= {"Count": Count, "Sum": Sum}


def calls(query: Callable[[Any], Any], *rows: Row) -> dict[str, int]:
    """Return the number of calls of each function when these rows are added."""
    table = Database().table(Row)
    view = query(table).materialize()
    LOG.calls.clear()
    table.add_all(rows)
    found = dict(LOG.calls)
    view.verify()
    return found


def test_tests_of_a_row_share_a_call() -> None:
    assert calls(lambda t: t.where(lambda r: f(r) > 1 and f(r) < 9), Row(3, 1)) == {"f": 1}
    assert calls(lambda t: t.where(lambda r: f(r) > 1).where(lambda r: f(r) < 9), Row(3, 1)) == {
        "f": 1
    }
    assert calls(lambda t: t.where(lambda r: r.score() > 1 and r.score() < 9), Row(3, 1)) == {
        "score": 1
    }


def test_a_test_and_a_row_share_a_call() -> None:
    def query(table: Any) -> Any:
        return table.where(lambda r: f(r) is not None).select(lambda r: (f(r), f(r) + 1))

    assert calls(query, Row(3, 1), Row(4, 1)) == {"f": 2}


def test_a_group_and_what_is_summed_share_a_call() -> None:
    def query(table: Any) -> Any:
        groups = table.where(lambda r: f(r) > 1).group_by(lambda r: f(r))
        return groups.aggregate(Count(), Sum(lambda r: f(r) * 2))

    assert calls(query, Row(3, 1)) == {"f": 1}


def test_a_pair_shares_a_call() -> None:
    def query(table: Any) -> Any:
        return table.join(table, on=lambda x, y: x.a == y.a and f(x) + y.b > 3 and f(x) - y.b < 9)

    assert calls(query, Row(3, 1)) == {"f": 1}


def test_what_comes_later_in_a_condition_is_not_called_for_what_comes_before() -> None:
    def query(table: Any) -> Any:
        return table.select(lambda r: r.b and (g(r) > 2 and g(r) < 5))

    assert calls(query, Row(1, 0)) == {}
    assert calls(lambda t: t.where(lambda r: r.b and g(r) > 2 and g(r) < 5), Row(1, 0)) == {}
    assert calls(lambda t: t.select(lambda r: g(r) + g(r) if r.b else 0), Row(1, 0)) == {}
    assert calls(lambda t: t.select(lambda r: 1 if g(r) > 3 else g(r)), Row(1, 6)) == {"g": 1}
    assert calls(lambda t: t.where(lambda r: f(r) == 1 or f(r) == 3), Row(3, 0)) == {"f": 1}


def test_what_may_be_used_up_or_kept_twice_is_called_twice() -> None:
    assert calls(lambda t: t.select(lambda r: (f(r), f(r))), Row(1, 1)) == {"f": 2}
    assert calls(lambda t: t.where(lambda r: 3 in many(r) or 4 in many(r)), Row(1, 1)) == {
        "many": 2
    }
    assert calls(lambda t: t.where(lambda r: sum(numbers(r)) > max(numbers(r))), Row(1, 1)) == {
        "numbers": 2
    }
    assert calls(lambda t: t.where(lambda r: many(r).pop() == 1 or many(r) == []), Row(2, 2)) == {
        "many": 2
    }
    assert calls(lambda t: t.where(lambda r: many(r) == many(r)), Row(1, 1)) == {"many": 2}
    assert calls(lambda t: t.where(lambda r: f(r) is f(r)), Row(1, 1)) == {"f": 2}


def test_each_row_of_a_loop_has_a_result_of_its_own() -> None:
    """Otherwise three rows would have one iterator."""

    def query(table: Any) -> Any:
        rows = table.where(lambda r: numbers(r) is not None).unnest(lambda r: (1, 2, 3))
        return rows.select(lambda r, number: (number, numbers(r)))

    table = Database().table(Row)
    view = query(table).materialize()
    table.add(Row(5, 6))
    assert sorted((number, *found) for number, found in view) == [(n, 5, 6) for n in (1, 2, 3)]


def test_what_a_call_raises_is_raised_where_it_is_written() -> None:
    table = Database().table(Row)
    view = table.where(lambda r: r.b is None or (g(r) > 2 and g(r) < 5)).materialize()
    table.add(Row(1, None))
    with pytest.raises(ZeroDivisionError):
        table.add(Row(1, 0))
    table.add(Row(1, 4))
    assert sorted(row.a for row in view) == [1, 1]


def test_the_code_shows_it() -> None:
    view = Database().table(Row).where(lambda r: f(r) > 1 and f(r) < 9).materialize()
    code = str(view.explain(code=True))
    assert "value = f(row)\n        if not value > 1: continue\n        if not value < 9" in code


FORMS = (
    *("f(r) > {0} and f(r) < {1}", "f(r) == {0} or f(r) == {1}", "g(r) > {0} and g(r) + f(r) != 4"),
    *("r.b != 0 and g(r) > {0} and g(r) < 9", "{0} in numbers(r) or {1} in numbers(r)"),
    *("many(r)[0] == {0} or many(r)[1] == {1}", "many(r) == many(r) and f(r)"),
    *("sum(numbers(r)) > {0} and max(numbers(r)) > {1}", "len(many(r)) == 2 and many(r)[0] != {0}"),
    *("r.score() == {0} or r.score() < r.b", "f(r) if r.b > 1 else f(r) + f(r) > {0}"),
    *("str(f(r)) == '{0}' or str(f(r)) == '{1}'", "f'{{f(r)}}' == '{0}' or f(r) is None"),
)
MADE = (
    *("(f(r), f(r) + 1)", "(f(r), f(r), r.b)", "(g(r), g(r) * f(r) if f(r) else 0)"),
    *("(tuple(many(r)), many(r) == [1, 1])", "(sum(numbers(r)), max(numbers(r)), f(r))"),
    *("(r.score() > 1 and r.score(), r.score())", "f(r) + f(r)", "(f(r) or g(r), f(r))"),
)


def written(random: Random) -> str:
    """A query that calls the same for a row again and again."""
    query = "t"
    for _ in range(random.choice((1, 1, 2))):
        test = random.choice(FORMS).format(random.randrange(3), random.randrange(4))
        query += f".where(lambda r: {test})"
    match random.choice(("select", "select", "group_by", "unnest", "join", "where")):
        case "select":
            query += f".select(lambda r: {random.choice(MADE)})"
        case "group_by":
            query += ".group_by(lambda r: f(r)).aggregate(Count(), Sum(lambda r: f(r) + r.b))"
        case "unnest":
            query += ".unnest(lambda r: many(r)).select(lambda r, x: (x, f(r), f(r) == x))"
        case "join":
            on = "r.a == s.b and f(r) + f(s) > 1 and f(r) - f(s) < 2"
            query += f".join(t, on=lambda r, s: {on}).select(lambda r, s: (f(r), f(s), f(r) + 1))"
    return f"def query(t):\n    return {query}\n"


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_rows_and_exceptions_are_those_of_the_query_as_written(part: int) -> None:
    for seed in range(part, 160, 4):
        random = Random(seed)
        text = written(random)
        query = executed(text, NAMES)["query"]
        tables = [Database(optimize=optimize).table(Row) for optimize in (True, False)]
        views = [query(table).materialize() for table in tables]
        held: list[Row] = []
        for _ in range(12):
            row, weight = Row(random.randrange(4), random.choice((0, 1, 1, 2, 3))), 1
            if held and random.random() < 0.3:
                row, weight = held.pop(random.randrange(len(held))), -1
            raised = [_raised(table, row, weight) for table in tables]
            assert raised[0] == raised[1], text
            if weight > 0 and raised[0] is None:
                held.append(row)
            assert Counter(dict(views[0].zset().items())) == Counter(
                dict(views[1].zset().items())
            ), text
        views[0].verify()


def _raised(table: Any, row: Row, weight: int) -> type[Exception] | None:
    try:
        if weight > 0:
            table.add(row)
        else:
            table.remove(row)
    except Exception as error:
        return type(error)
    return None
