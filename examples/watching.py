"""Files that change on disk, and what a change does to findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from examples.terminal import duration

F = TypeVar("F")


class MissingExtra(Exception):
    """A package that is needed for one thing only is not installed."""

    def __init__(self, package: str, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs the package {package}\n  .venv/bin/python -m pip install {package}"
        )


@dataclass(frozen=True, slots=True)
class Change(Generic[F]):
    """Some files changed: what it did to the findings, and the seconds that it took."""

    files: tuple[str, ...]
    added: tuple[F, ...]
    removed: tuple[F, ...]
    seconds: float
    problems: tuple[str, ...] = ()
    """The problems of reading them."""
    solved: tuple[str, ...] = ()
    """The files that could not be read before, and can now."""

    @property
    def is_news(self) -> bool:
        """Return True if the change did more than change files."""
        return any((self.added, self.removed, self.problems, self.solved))

    @property
    def headline(self) -> str:
        """All of it in a line."""
        counts = f"+{len(self.added)} -{len(self.removed)}"
        return f"{_names(self.files)}: {counts} findings in {duration(self.seconds)}"


def file_watching() -> Any:
    """Return the function that watches files, of the package `watchfiles`.

    Raises
    ------
    MissingExtra: the package is not installed.
    """
    try:
        from watchfiles import watch as file_changes
    except ImportError as error:
        raise MissingExtra("watchfiles", "--watch") from error
    return file_changes


def unmoved(
    findings: Iterable[F], others: Iterable[F], anywhere: Callable[[F], object]
) -> tuple[F, ...]:
    """Return the findings without those that the others have, too, at another place.

    Parameters
    ----------
    anywhere: a finding -> the finding without its place.
    """
    moved = Counter(map(anywhere, others))
    left = []
    for finding in findings:
        key = anywhere(finding)
        moved[key] -= 1
        if moved[key] < 0:
            left.append(finding)
    return tuple(left)


def _names(files: tuple[str, ...]) -> str:
    """Return the first files, and how many more there are."""
    more = [f"{len(files) - 5:,} more"] if len(files) > 6 else []
    return ", ".join([*(files[:5] if more else files), *more])
