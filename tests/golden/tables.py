"""The tables of the golden queries, with few rows.

Some rows make a condition raise: the age of Ann is None, and one pair is short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from reactive import Avg, Collect, Count, Database, Max, Min, Sum, Table, fixpoint, iterate


@dataclass(frozen=True, slots=True)
class Student:
    """A row of `students`, `alumni` and `visits`."""

    first_name: str
    last_name: str
    age: Any


@dataclass(frozen=True, slots=True)
class Member:
    """A row of `council` and `staff`."""

    last_name: str
    role: str
    since: Any


class Unreadable:
    """A callable that stays opaque."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *row: Any) -> Any:
        return self._function(*row)


SALLY, JOE, ANN = (
    Student("Sally", "Fields", 31),
    Student("Joe", "Doe", 17),
    Student("Ann", "Fields", None),
)
CHAIR, CLERK, GUEST = (
    Member("Fields", "chair", 31),
    Member("Doe", "clerk", 17),
    Member("Fields", "guest", None),
)

NAMES: dict[str, Any] = {
    "Student": Student,
    "Member": Member,
    "Unreadable": Unreadable,
    "limit": 30,
    "Avg": Avg,
    "Count": Count,
    "Sum": Sum,
    "Max": Max,
    "Min": Min,
    "Collect": Collect,
    "fixpoint": fixpoint,
    "iterate": iterate,
}
CALM: dict[str, Sequence[Any]] = {
    "students": (SALLY, JOE),
    "alumni": (JOE, SALLY),
    "visits": (SALLY, JOE),
    "council": (CHAIR, CLERK),
    "staff": (CHAIR, CLERK),
    "pairs": ((1, 2), (2, 1)),
    "least": (30, 17),
}
RAISING: dict[str, Sequence[Any]] = {
    "students": (JOE, ANN),
    "alumni": (SALLY, ANN),
    "visits": (SALLY, ANN),
    "council": (CLERK, GUEST),
    "staff": (CLERK, GUEST),
    "pairs": ((1, 2), (1,)),
    "least": (17, 30),
}


def tables(db: Database) -> dict[str, Table[Any]]:
    """All tables of the golden queries, by their names."""
    return {
        "students": db.table(Student, name="students"),
        "alumni": db.table(Student, name="alumni"),
        "visits": db.table(Student, name="visits", stored=False),
        "council": db.table(Member, name="council"),
        "staff": db.table(Member, name="staff", key="last_name"),
        "pairs": db.table(tuple, name="pairs"),
        "least": db.parameter(30, name="least"),
    }
