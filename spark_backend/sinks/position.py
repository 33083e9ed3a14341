"""The note that stands beside data: which batch it is of, and of which query.

    {"format": 1, "batch": 12, "version": 340, "plan": "4b1c738cb36b..."}

Nothing in it is executed. One that is of another format is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reactive.borders.sinks.target import ChangeBatch, Position
from reactive.errors import OffloadError

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Note:
    """What is noted of a batch."""

    position: Position
    plan: str

    def check(self, plan: str, where: str) -> None:
        """Raise `OffloadError` if the batches are of another query, and are kept."""
        if plan != self.plan:
            raise OffloadError(
                f"{where} has the changes of another query, up to batch {self.position.batch}\n"
                "  give the view a new target: changes that were written cannot be taken back"
            )


def noted(batch: ChangeBatch) -> dict[str, Any]:
    """The note of a batch."""
    position = batch.position
    return {
        "format": FORMAT,
        "batch": position.batch,
        "version": position.version,
        "plan": batch.plan,
    }


def note_of(found: Mapping[str, Any]) -> Note:
    """A note again.

    Raises
    ------
    KeyError, TypeError, ValueError: it is none.
    """
    if found["format"] != FORMAT:
        raise ValueError(f"its format is {found['format']!r}, not {FORMAT}")
    return Note(Position(int(found["batch"]), int(found["version"])), str(found["plan"]))


def read_json(files: Any, path: str) -> Any:
    """What a small file says.

    Raises
    ------
    FileNotFoundError: there is none.
    ValueError: it is no JSON.
    """
    with files.open_input_stream(path) as stream:
        return json.loads(stream.read())


def write_json(files: Any, path: str, found: Any) -> None:
    """Write a small file, which is there when this returns."""
    with files.open_output_stream(path) as stream:
        stream.write(json.dumps(found).encode())


def plain_name(name: Any) -> str:
    """The name of a file in the folder of its note.

    Raises
    ------
    ValueError: it is that of a file elsewhere.
    """
    if not isinstance(name, str) or "/" in name or name.startswith("."):
        raise ValueError(f"it names {name!r}, which is not in its folder")
    return name


def unreadable(path: str, error: Exception) -> OffloadError:
    """The error of a note that is none."""
    return OffloadError(
        f"{path} is none that a sink has written: {error}\n"
        "  give the view a new target, or restore the file"
    )
