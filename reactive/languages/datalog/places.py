"""Where something stands in the text of a program, and errors that show it.

PlanError: line 3, column 15: there is no relation 'pth'
  path(x, z) :- pth(x, y), edge(y, z).
                ^^^
  did you mean 'path'?
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field

from optimizer.errors import PlanError
from optimizer.record import record

BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|[()\[\]{}]', re.DOTALL)
"""A bracket, or a text or comment, in which brackets are none."""
WIDEST = 100
"""Characters of a line that an error shows."""


@record
class Span:
    """Some characters of a text, from `start` to `end`."""

    text: str = field(repr=False)
    start: int
    end: int

    def to(self, other: Span) -> Span:
        """From the beginning of this one to the end of another."""
        return Span(self.text, self.start, max(self.end, other.end))

    @property
    def line(self) -> int:
        """The number of the line, from 1 on."""
        return self.text.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """The number of the column, from 1 on."""
        return self.start - self.text.rfind("\n", 0, self.start)

    def words(self) -> str:
        """The characters themselves."""
        return self.text[self.start : self.end]


def wrong(at: Span, what: str, remedy: str = "") -> PlanError:
    """The error of something in a text, with its line and what to do.

    >>> print(wrong(Span("a(x) :- b(y).", 8, 9), "there is no relation 'b'", "declare it"))
    line 1, column 9: there is no relation 'b'
      a(x) :- b(y).
              ^
      declare it
    """
    first = at.start - at.column + 1
    line = at.text[first:].partition("\n")[0].replace("\t", " ").rstrip()
    begin = max(len(line) - len(line.lstrip()), at.column - WIDEST)
    width = max(1, min(at.end, first + len(line), at.start + WIDEST) - at.start)
    shown = [
        f"line {at.line}, column {at.column}: {what}",
        f"  {line[begin : begin + 2 * WIDEST]}",
        f"  {' ' * (at.column - 1 - begin)}{'^' * width}",
        f"  {remedy}" if remedy else "",
    ]
    return PlanError("\n".join(part for part in shown if part))


def too_deep(text: str) -> PlanError:
    """Return the error of a text that even a large stack is too small for, at its deepest place."""
    depth, most, place = 0, 0, 0
    for found in BRACKET.finditer(text):
        depth += 1 if found[0] in "([{" else -1 if found[0] in ")]}" else 0
        if depth > most:
            most, place = depth, found.start()
    remedy = "about 1,000 levels, or 10,000 terms of one operator, can be read; write it in parts"
    return wrong(Span(text, place, place + 1), "the program is nested too deeply", remedy)


def near(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """The name that is meant, perhaps; else all there are, after some words.

    >>> near("pth", ["path", "edge"]), near("x", ["path", "edge"], "there are")
    ("did you mean 'path'?", 'there are path, edge')
    """
    from difflib import get_close_matches  # takes longer than most modules here

    every = list(dict.fromkeys(known))
    found = get_close_matches(name, [each for each in every if each != name], n=1)
    if found:
        return f"did you mean {found[0]!r}?"
    return f"{otherwise} {', '.join(every)}" if otherwise and every else ""
