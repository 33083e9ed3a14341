"""A text as the statements in it: each ends with a semicolon, a command that begins with a point
with its line."""

from __future__ import annotations

import re
from collections.abc import Iterator

PARTS = re.compile(
    r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/|;|^[ \t]*\.\w[^\n]*(?=\n|\Z)|.",
    re.DOTALL | re.MULTILINE,
)
"""Texts, names and remarks, in which a semicolon means nothing; ends of statements; commands."""


def statements(text: str) -> Iterator[str]:
    """The statements, without their semicolons.

    >>> list(statements("select ';'; -- one; two\\n.tables\\nselect 2"))
    ["select ';'", '.tables', 'select 2']
    """
    waiting: list[str] = []
    for part in PARTS.finditer(text):
        found = part[0]
        is_command = found.lstrip().startswith(".") and len(found) > 1 and not _has(waiting)
        if found == ";" or is_command:
            if _has(waiting):
                yield "".join(waiting).strip()
            waiting = []
            if is_command:
                yield found.strip().rstrip(";")
        elif not found.startswith(("--", "/*")) or _has(waiting):
            waiting.append(found)
    if _has(waiting):
        yield "".join(waiting).strip()


def _has(waiting: list[str]) -> bool:
    return any(part.strip() for part in waiting)
