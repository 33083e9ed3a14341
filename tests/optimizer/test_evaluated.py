"""What constants decide, and what looks as if it could be simplified."""

from __future__ import annotations

from typing import Any

from reactive import Database


class Odd:
    """Its order is no truth value."""

    def __gt__(self, other: object) -> Any:
        return "greater"

    def __ge__(self, other: object) -> Any:
        return ""


def test_not_not_of_an_order_gives_a_truth_value_and_not_what_the_order_gave() -> None:
    db = Database()
    odd = db.table(Odd, name="odd")
    view = odd.select(lambda o: (not not o > 1, not not o >= 1)).materialize()  # noqa: SIM208
    odd.add(Odd())
    assert list(view) == [(True, False)]
    view.verify()
