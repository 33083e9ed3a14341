"""Rows that raise at the n-th time they are hashed or compared."""

from __future__ import annotations

from typing import ClassVar


class Moods:
    """A number with moods: a class of them defines its hash, and its other moods."""

    calls: ClassVar[int] = 0
    at: ClassVar[int] = 0

    def __init__(self, value: int) -> None:
        self.value = value

    def mood(self) -> None:
        kind = type(self)
        kind.calls += 1
        if kind.calls == kind.at:
            raise ValueError("moody")

    def __hash__(self) -> int:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        self.mood()
        return isinstance(other, type(self)) and other.value == self.value
