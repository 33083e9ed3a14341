"""Errors of `verify` for a view with callables whose results vary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reactive import Count, Database, Table
from tests.errors.golden import here, refused


class Moody:
    """A callable that returns a settable answer for every row."""

    answer: Any = True

    def __call__(self, row: int) -> Any:
        return self.answer


def numbers(**options: Any) -> Table[int]:
    return Database().table(int, name="numbers", **options)


def test_rows_that_the_query_no_longer_has_are_shown() -> None:
    table, moody = numbers(), Moody()
    view = table.where(moody).materialize("all")
    table.add_all([1, 2])
    moody.answer = False
    with refused(
        """
        VerificationError: view 'all' differs from its query
          missing: none
          not in the query: 1, 2
        """
    ):
        view.verify()


def test_rows_that_the_view_lacks_are_shown_and_many_are_cut() -> None:
    table, moody = numbers(), Moody()
    moody.answer = False
    view, line = table.where(moody).materialize(), here()
    table.add_all(range(7))
    moody.answer = True
    with refused(
        """
        VerificationError: the view made at <line> differs from its query
          missing: 0, 1, 2, 3, 4, ...
          not in the query: none
        """,
        line=line,
    ):
        view.verify()


def test_copies_that_are_too_many_are_shown_as_often() -> None:
    table, moody = numbers(), Moody()
    view = table.select(moody).materialize("answers")
    table.add_all([1, 2])
    moody.answer = None
    with refused(
        """
        VerificationError: view 'answers' differs from its query
          missing: None, None
          not in the query: True, True
        """
    ):
        view.verify()


def test_a_group_that_differs_is_shown_twice() -> None:
    table, moody = numbers(), Moody()
    view = table.where(moody).aggregate(Count()).materialize("count")
    table.add_all([1, 2])
    moody.answer = False
    with refused(
        """
        VerificationError: view 'count' differs from its query
          missing: 0
          not in the query: 2
        """
    ):
        view.verify()


def test_an_ordered_view_in_another_order_is_told() -> None:
    table = numbers()
    sign = [1]

    class Key:
        def __call__(self, row: int) -> int:
            return sign[0] * row

    view = table.order_by(Key()).materialize("sorted")
    table.add_all([1, 2])
    sign[0] = -1
    with refused(
        """
        VerificationError: view 'sorted' has the rows of its query, but not in their order
        """
    ):
        view.verify()


def test_a_view_of_a_table_that_is_not_stored_cannot_be_verified() -> None:
    table = numbers(stored=False)
    identity: Callable[[int], int] = lambda n: n  # noqa: E731
    view = table.select(identity).materialize("copies")
    table.add(1)
    with refused(
        """
        TableError: cannot verify view 'copies': table 'numbers' is not stored
          there are no rows to evaluate the query on
        """
    ):
        view.verify()
