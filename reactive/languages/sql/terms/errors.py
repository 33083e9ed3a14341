"""Errors of a SQL text: what is wrong, at which line and column, with the line itself.

PlanError: there is no column 'amonut' at line 2, column 8; did you mean 'amount'?
  where amonut > 3
        ^
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

from optimizer.errors import PlanError

if TYPE_CHECKING:
    from sqlglot import exp


OPENED = re.compile(r"(\w+)\s*\(\s*(?:distinct\s+)?$", re.IGNORECASE)
"""The name of a function before its first argument."""
LONGEST = 100
"""Letters that are searched for the name of a function."""
PARAMETER = re.compile(r"[\s<>=!+*/%|(-]+[:$]\w+")

BRACKET = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|[()\[\]]")
"""Texts and names, in which brackets do not count; and brackets."""


def sql_error(text: str, node: exp.Expr | None, message: str, remedy: str = "") -> PlanError:
    """The error about a node of a parsed text. Only its tokens know where they are."""
    return error_at(text, None if node is None else start_of(node), message, remedy)


def error_at(text: str, start: int | None, message: str, remedy: str = "") -> PlanError:
    """The error about the character at an offset."""
    lines = [] if start is None else _pointed(text, start)
    where = "" if start is None else " at line {}, column {}".format(*line_and_column(text, start))
    more = [f"  {line}" for line in (*lines, remedy) if line]
    head, _, rest = message.partition("\n")
    return PlanError("\n".join([head + where, *([rest] if rest else []), *more]))


def too_deep(text: str, node: exp.Expr | None) -> PlanError:
    """Return the error about a text that even a large stack is too small for."""
    message = "the text is nested too deeply"
    remedy = "about 1,000 levels, or 10,000 terms of one operator, can be read; write it in parts"
    start = _deepest(text) if node is None else start_of(node)
    return error_at(text, start, message, remedy)


def _deepest(text: str) -> int | None:
    """Return the offset of the bracket that most others are around."""
    depth, most, place = 0, 0, None
    for found in BRACKET.finditer(text):
        depth += 1 if found[0] in "([" else -1 if found[0] in ")]" else 0
        if depth > most:
            most, place = depth, found.start()
    return place


def line_and_column(text: str, start: int) -> tuple[int, int]:
    """Of an offset, both from 1 on.

    >>> line_and_column("select\\n  x", 9)
    (2, 3)
    """
    before = text[:start]
    return before.count("\n") + 1, start - (before.rfind("\n") + 1) + 1


def start_of(node: exp.Expr) -> int | None:
    """Where the first token of a node is."""
    found = [each.meta["start"] for each in node.walk() if "start" in each.meta]
    return min(found, default=None) if found else _above(node)


def _above(node: exp.Expr) -> int | None:
    """What knows no place of its own is near what is around it."""
    parent = node.parent
    return None if parent is None else start_of(parent)


def source_of(text: str, node: exp.Expr) -> str:
    """The text of a node from its first to its last token, on one line."""
    found = [each.meta for each in node.walk() if "start" in each.meta]
    if not found:
        return ""
    first, last = min(m["start"] for m in found), max(m["end"] for m in found)
    first = _with_names(text, first, node)
    parameter = PARAMETER.match(text, last + 1)  # which knows no place of its own
    end = last + 1 if parameter is None else parameter.end()
    return " ".join(_closed(text, first, end).split())


def _with_names(text: str, first: int, node: exp.Expr) -> int:
    """The begin of a text with the names of its functions before it, which some releases of sqlglot
    give no place."""
    from sqlglot import exp

    calls = [each for each in node.walk() if isinstance(each, exp.Func) and not each.meta]
    names = {name.lower() for call in calls for name in call.sql_names()}
    while names and (found := OPENED.search(text[:first][-LONGEST:])) is not None:
        if found[1].lower() not in names:
            break
        first -= len(found[0])
    return first


def _closed(text: str, first: int, last: int) -> str:
    """The part of a text, with the brackets around it that belong to its own."""
    for opening, closing in ("()", "[]"):
        missing = text.count(opening, first, last) - text.count(closing, first, last)
        while missing > 0 and last < len(text):
            missing += (text[last] == opening) - (text[last] == closing)
            last += 1
        while missing < 0 and first > 0:
            first -= 1
            missing += (text[first] == opening) - (text[first] == closing)
    return text[first:last]


def nearest(name: str, candidates: Iterable[str]) -> str:
    """A question that names the most similar candidate, if there is one.

    >>> nearest("amonut", ["id", "amount"])
    "; did you mean 'amount'?"
    """
    by_folded = {each.casefold(): each for each in candidates if each != name}
    found = get_close_matches(name.casefold(), by_folded, n=1)
    return f"; did you mean {by_folded[found[0]]!r}?" if found else ""


def _pointed(text: str, start: int) -> list[str]:
    """The line, and a caret below the character."""
    line, column = line_and_column(text, start)
    shown = text.split("\n")[line - 1].replace("\t", " ")
    return [shown, " " * (column - 1) + "^"]
