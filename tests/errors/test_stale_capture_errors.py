"""A captured variable that changes after the relation was made is reported by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from reactive import Database, StaleCaptureWarning, Table, View
from tests.errors.golden import expected, place, refused, told

least = 3


def numbers(*, strict: bool = False) -> Table[int]:
    return Database(strict=strict).table(int, name="numbers")


def caught_while(change: Callable[[], object]) -> list[str]:
    """Return the texts of the warnings that a change causes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        change()
    assert all(warning.category is StaleCaptureWarning for warning in caught)
    return [str(warning.message) for warning in caught]


def test_a_changed_variable_is_warned_about_once_and_the_old_value_kept() -> None:
    table = numbers()
    limit = 30
    above: Callable[[int], bool] = lambda n: n > limit  # noqa: E731
    view = table.where(above).materialize()
    assert caught_while(lambda: table.add(20)) == []
    limit = 10
    text = expected(
        """
        'limit', captured by <lambda> (<above>), has changed since the relation was made; \
its views keep the value of then, 30
          make the relation again, or bind the value: `lambda row, limit=limit: ...`
        """,
        above=place(above),
    )
    assert caught_while(lambda: table.add(20)) == [text]
    assert caught_while(lambda: table.add(40)) == []
    assert list(view) == [40]


@pytest.mark.parametrize("optimize", [True, False])
def test_callables_that_share_a_variable_are_warned_about_once(optimize: bool) -> None:
    table: Table[int] = Database(optimize=optimize).table(int, name="numbers")
    views = [table.where(lambda n: n == last).materialize() for last in range(30)]
    (text,) = caught_while(lambda: table.add_all(range(40)))
    assert "'last', captured by <lambda>" in text
    assert text.endswith("\n  28 other callables that were made there are concerned too")
    assert caught_while(lambda: table.add_all(range(40))) == []
    assert [list(view) for view in views] == [[n, n] for n in range(30)]


def test_a_strict_database_refuses_the_commit() -> None:
    table = numbers(strict=True)
    limit = 30
    above: Callable[[int], bool] = lambda n: n > limit  # noqa: E731
    view = table.where(above).materialize()
    table.add(40)
    limit = 10
    for _ in range(2):
        with refused(
            """
            StaleCaptureError: 'limit', captured by <lambda> (<above>), has changed since the \
relation was made; its views keep the value of then, 30
              make the relation again, or bind the value: `lambda row, limit=limit: ...`
            """,
            above=place(above),
        ):
            table.add(20)
    assert (list(table), list(view)) == ([40], [40])
    limit = 30
    table.add(50)
    assert sorted(view) == [40, 50]


def test_a_warning_that_is_an_error_refuses_the_commit_like_any_exception() -> None:
    table = numbers()
    limit = 30
    view = table.where(lambda n: n > limit).materialize("above")
    limit = 10
    with pytest.raises(StaleCaptureWarning) as caught:
        table.add(40)
    assert told(caught.value).endswith("transaction rolled back: no table or view changed")
    assert (list(table), list(view)) == ([], [])


def test_a_changed_global_is_told() -> None:
    global least
    table = numbers()
    above: Callable[[int], bool] = lambda n: n > least  # noqa: E731
    view = table.where(above).materialize()
    least = 4
    try:
        assert caught_while(lambda: table.add(4)) == [
            expected(
                """
                'least', captured by <lambda> (<above>), has changed since the relation was \
made; its views keep the value of then, 3
                  make the relation again, or bind the value: `lambda row, least=least: ...`
                """,
                above=place(above),
            )
        ]
    finally:
        least = 3
    assert list(view) == [4]


def test_a_set_that_is_changed_in_place_is_told() -> None:
    table = numbers()
    allowed = {1}
    ok: Callable[[int], bool] = lambda n: n in allowed  # noqa: E731
    view = table.where(ok).materialize()
    allowed.add(2)
    assert caught_while(lambda: table.add(2)) == [
        expected(
            """
            'allowed', captured by <lambda> (<ok>), was changed in place; \
its views keep the value of then, {1}
              make the relation again, or bind the value, copied: \
`lambda row, allowed=frozenset(allowed): ...`
            """,
            ok=place(ok),
        )
    ]
    assert list(view) == []


def test_the_advice_that_is_given_works() -> None:
    """Binding the value ends the warnings."""
    table = numbers()
    allowed = {1}
    bound: Any = lambda n, allowed=frozenset(allowed): n in allowed  # noqa: E731
    view = table.where(bound).materialize()
    allowed.add(2)
    assert caught_while(lambda: table.add_all([1, 2])) == []
    assert list(view) == [1]


def test_the_warning_points_at_the_line_that_made_the_change() -> None:
    """The warning does not point into this library."""
    table = numbers()
    limit = 30
    view: View[int] = table.where(lambda n: n > limit).materialize()
    limit = 10
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table.add(20)
    assert [warning.filename for warning in caught] == [__file__]
    assert list(view) == []


def test_every_operator_notices_what_its_callables_capture() -> None:
    limit = 1
    db = Database()
    table = db.table(int, name="numbers")
    key: Callable[[int], int] = lambda n: n % limit if limit else n  # noqa: E731
    pair: Callable[[int, int], bool] = lambda a, b: a < b + limit  # noqa: E731
    views = [
        table.select(key).materialize(),
        table.select_many(lambda n: [n, limit]).materialize(),
        table.unnest(lambda n: [n, limit]).materialize(),
        table.order_by(key).materialize(),
        table.join(table, left_key=key, right_key=lambda n: n - limit).materialize(),
        table.semi_join(table, left_key=lambda n: n - limit, right_key=key).materialize(),
        table.full_join(table, on=pair).materialize(),
        table.anti_join(table, on=pair).materialize(),
    ]
    limit = 2
    for view in views[1:]:
        view.close()
        del view
    told_once = caught_while(lambda: table.add(1))
    assert len(told_once) == 1
    views = [
        table.select_many(lambda n: [n, limit]).materialize(),
        table.unnest(lambda n: [n, -limit]).materialize(),
        table.order_by(lambda n: n - limit).materialize(),
        table.join(table, left_key=lambda n: n - limit, right_key=abs).materialize(),
        table.semi_join(table, left_key=abs, right_key=lambda n: n * limit).materialize(),
        table.full_join(table, on=lambda a, b: a < b + limit).materialize(),
        table.anti_join(table, on=lambda a, b: a < b - limit).materialize(),
    ]
    limit = 3
    assert len(caught_while(lambda: table.add(2))) == len(views)
