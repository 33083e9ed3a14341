"""Histories of a table: the 17 scenarios, as initial rows and later events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reactive import Table
from tests.scenarios.rows import A, B, C, D, Item


@dataclass(frozen=True)
class Add:
    """One more copy of a row."""

    row: Item

    def do(self, table: Table[Item]) -> None:
        table.add(self.row)

    def model(self, rows: list[Item]) -> None:
        rows.append(self.row)


@dataclass(frozen=True)
class Remove:
    """One copy less; refused if there is none."""

    row: Item

    def do(self, table: Table[Item]) -> None:
        table.remove(self.row)

    def model(self, rows: list[Item]) -> None:
        rows.remove(self.row)


@dataclass(frozen=True)
class Update:
    """One copy of a row becomes another row."""

    old: Item
    new: Item

    def do(self, table: Table[Item]) -> None:
        table.update(self.old, self.new)

    def model(self, rows: list[Item]) -> None:
        rows.remove(self.old)
        rows.append(self.new)


@dataclass(frozen=True)
class Clear:
    """All rows go."""

    def do(self, table: Table[Item]) -> None:
        table.clear()

    def model(self, rows: list[Item]) -> None:
        rows.clear()


Event = Add | Remove | Update | Clear


@dataclass(frozen=True)
class History:
    """Rows that are present when the view is made, and the later events."""

    name: str
    start: Sequence[Item]
    events: Sequence[Event]


HISTORIES = (
    History("empty_then_a", (), (Add(A),)),
    History("empty_then_b", (), (Add(B),)),
    History("a_then_b", (), (Add(A), Add(B))),
    History("b_then_a", (), (Add(B), Add(A))),
    History("update_enters_the_filter", (A,), (Update(A, B),)),
    History("update_leaves_the_filter", (B,), (Update(B, A),)),
    History("update_stays_in_the_filter", (B,), (Update(B, C),)),
    History("update_stays_out_of_the_filter", (A,), (Update(A, D),)),
    History("update_to_itself", (A,), (Update(A, A),)),
    History("remove_the_only_row", (A,), (Remove(A),)),
    History("a_twice", (), (Add(A), Add(A))),
    History("a_twice_update_one", (A, A), (Update(A, B),)),
    History("b_twice_update_one", (B, B), (Update(B, A),)),
    History("a_twice_remove_one", (A, A), (Remove(A),)),
    History("ab_remove_a", (A, B), (Remove(A),)),
    History("ab_remove_b", (A, B), (Remove(B),)),
    History("aab_update_a_to_b", (A, A, B), (Update(A, B),)),
    History("aab_remove_a", (A, A, B), (Remove(A),)),
    History("remove_all_one_by_one", (A, A, B), (Remove(A), Remove(B), Remove(A))),
    History("remove_all_at_once", (A, A, B, C), (Clear(),)),
    History("remove_and_add_again", (A, B), (Remove(A), Add(A))),
    History("add_and_remove_again", (A,), (Add(B), Remove(B))),
    History("add_to_a_group", (A, B), (Add(C),)),
    History("remove_from_a_group", (A, B, C), (Remove(C),)),
    History("update_within_a_group", (A, B), (Update(A, C),)),
    History("update_across_groups", (A, C, B), (Update(C, D),)),
    History("last_member_leaves_its_group", (A, C, B), (Remove(A), Remove(C))),
    History("groups_swap", (A, B), (Update(A, D), Update(B, C))),
    History("comes_goes_and_comes", (), (Add(A), Remove(A), Add(A), Add(B), Update(A, C))),
)
