"""Rows of a batch that are left out, and why: those without which it can be committed."""

from __future__ import annotations

from collections.abc import Mapping

from reactive.engine.collections.zset import Row


class LeftOut:
    """Rows that are not to come, and rows that are not to go, each as often as it was noted."""

    __slots__ = ("_coming", "_going")

    def __init__(
        self,
        coming: Mapping[tuple[int, Row], list[Exception]] | None = None,
        going: Mapping[tuple[int, Row], list[Exception]] | None = None,
    ) -> None:
        self._coming: dict[tuple[int, Row], list[Exception]] = dict(coming or {})
        self._going: dict[tuple[int, Row], list[Exception]] = dict(going or {})

    def again(self) -> LeftOut:
        """The same, to be counted down."""
        coming = {row: list(errors) for row, errors in self._coming.items()}
        return LeftOut(coming, {row: list(errors) for row, errors in self._going.items()})

    def note(self, place: tuple[int, Row], error: Exception, *, comes: bool) -> None:
        """Leave a row out once more."""
        (self._coming if comes else self._going).setdefault(place, []).append(error)

    def waits(self, number: int, row: Row) -> Exception | None:
        """Why a row does not come; once for each time that it was noted."""
        return _next(self._coming, (number, row))

    def stays(self, number: int, row: Row) -> Exception | None:
        """Why a row does not go."""
        return _next(self._going, (number, row))


def _next(
    noted: dict[tuple[int, Row], list[Exception]], place: tuple[int, Row]
) -> Exception | None:
    errors = noted.get(place) if noted else None
    return errors.pop(0) if errors else None
