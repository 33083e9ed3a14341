"""Obstacles in the way of a row: the answer of `view.why_not`."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

LONGEST = 200


@dataclass(frozen=True, slots=True, repr=False)
class Obstacle:
    """One way to a row that is not there: what holds, and what fails.

    Parameters
    ----------
    holds: rows that are there and would be used, with the names of what has them.
    missing: rows that are not there, with the names of their tables.
    reason: why the way fails besides; empty if adding `missing` makes the row.

    >>> print(Obstacle(holds=(("edges", (8, 9)),), missing=(("edges", (1, 8)),), reason=""))
    edges (1, 8) is missing; edges (8, 9) holds
    """

    holds: tuple[tuple[str, Any], ...]
    missing: tuple[tuple[str, Any], ...]
    reason: str

    @property
    def is_complete(self) -> bool:
        """True if the row is there once the missing rows are added."""
        return not self.reason

    def __str__(self) -> str:
        said = [f"{_named(*each)} is missing" for each in self.missing]
        said += [self.reason] * bool(self.reason)
        said += [f"{_named(*each)} holds" for each in self.holds]
        return "; ".join(said)

    def __repr__(self) -> str:
        return f"<{self}>"


@dataclass(frozen=True, slots=True, repr=False)
class WhyNot:
    """Why a row is not in a view: the ways to it, those of which most is satisfied first.

    It prints as a list, and iterates over the ways.

    >>> from reactive import Database
    >>> words = Database().table(str, name="words")
    >>> long = words.where(lambda w: len(w) > 3).materialize("long")
    >>> print(long.why_not("that"))
    'that' is not there
      1. words 'that' is missing
    """

    asked: str
    ways: tuple[Obstacle, ...]

    def __iter__(self) -> Iterator[Obstacle]:
        return iter(self.ways)

    def __len__(self) -> int:
        return len(self.ways)

    def __getitem__(self, place: int) -> Obstacle:
        return self.ways[place]

    def __str__(self) -> str:
        lines = [f"{number}. {way}" for number, way in enumerate(self.ways, 1)]
        return "\n".join([f"{self.asked} is not there", *(f"  {line}" for line in lines)])

    def __repr__(self) -> str:
        return f"<{self.asked} is not there, {len(self.ways)} ways to it>"

    def _repr_html_(self) -> str:
        """Return the ways as a list, for notebooks."""
        items = "".join(f"<li>{html.escape(str(way))}</li>" for way in self.ways)
        return f"<p>{html.escape(self.asked)} is not there</p><ol>{items}</ol>"


def _named(name: str, row: Any) -> str:
    text = f"{row!r:.{LONGEST}}"
    return text if text.startswith(f"{name}(") else f"{name} {text}"
