"""The measurements of the example, by their names on the command line of `run.py`."""

from __future__ import annotations

from collections.abc import Mapping

from asv_benchmarks.findbugs.alone import alone_figures, published_figures
from asv_benchmarks.findbugs.bases import base_figures
from asv_benchmarks.findbugs.held import held_figures
from asv_benchmarks.findbugs.reading import reading_figures
from asv_benchmarks.findbugs.replays import HISTORIES, changes_of, replay_figures

REPLAY, BASES, READING, ALONE, PUBLISHED, HELD = (
    "replay",
    "bases",
    "reading",
    "alone",
    "published",
    "held",
)
PAPER = HISTORIES[0]
"""The history that the paper replays."""


def findbugs_figures(what: str, *arguments: str) -> Mapping[str, object]:
    """Run a measurement.

    Raises
    ------
    ValueError: there is none of that name.
    """
    match what, *arguments:
        case "replay", name, mode:
            return replay_figures(changes_of(name), mode)
        case ["bases"]:
            return base_figures()
        case ["reading"]:
            return reading_figures()
        case ["alone"]:
            return alone_figures(changes_of(PAPER))
        case ["published"]:
            return published_figures(changes_of(PAPER))
        case "held", name:
            return held_figures(name)
    raise ValueError(f"no measurement: {what} {' '.join(arguments)}")
