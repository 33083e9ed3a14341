"""What a statement that is written as text may write to: by its words.

    update orders set total = 0          the tables whose names are in it
    call close_the_year()                any table: it names none that is known
    truncate customers cascade           those that refer to one that is named, too
    select * from orders                 none

A text that only reads has none of the words that write. That a function which it calls does write,
nobody can see: say so by the option `mirror_touches` of the statement.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from sqlalchemy import Table

WRITES = re.compile(
    r"\b(insert|update|delete|merge|replace\s+into|truncate|copy|call|do|exec|execute|alter|drop"
    r"|create|load|import|attach|vacuum|restore)\b",
    re.IGNORECASE,
)
LOCKS = re.compile(r"\bfor\s+(no\s+key\s+)?update\b", re.IGNORECASE)
"""What has the word of a writer, and does not write."""
CASCADES = re.compile(r"\btruncate\b.*\bcascade\b", re.IGNORECASE | re.DOTALL)
LITERALS = re.compile(r"'(?:[^']|'')*'")
COMMENTS = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
WORD = re.compile(r"\w+")


def tables_written(text: str, known: Collection[Table]) -> set[Table] | None:
    """The tables that a text may write to; None if it may be any.

    Parameters
    ----------
    known: the tables that there are, whose names are looked for.
    """
    if not WRITES.search(bare(text)):
        return set()
    without = COMMENTS.sub(" ", text)
    words = {word.lower() for word in WORD.findall(without)}
    found = {table for table in known if words.issuperset(WORD.findall(table.name.lower()))}
    if CASCADES.search(without):
        found = _with_referring(found, known)
    return found or None


def bare(text: str) -> str:
    """Return a text without comments, quoted texts, and the words that lock rows."""
    return LOCKS.sub(" ", LITERALS.sub(" ", COMMENTS.sub(" ", text)))


def _with_referring(tables: set[Table], known: Collection[Table]) -> set[Table]:
    """Tables, and those whose foreign keys lead to them."""
    found, size = tables, -1
    while len(found) != size:
        size, names = len(found), {table.fullname for table in found}
        found = found | {
            table
            for table in known
            for key in table.foreign_keys
            if key.target_fullname.rpartition(".")[0] in names
        }
    return found
