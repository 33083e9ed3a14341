"""The last commits in a file of SQLite, for `Store.history`.

State:  a line per commit, and one per row that it changes.
Cost:   of a commit, that of its rows once more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from reactive.borders.durable.rows.values import tree, untree
from reactive.borders.durable.store import Logged, Record

Run = Callable[..., Any]


def note(run: Run, many: Callable[[str, Sequence[Any]], None], record: Record) -> None:
    """Keep a commit."""
    run("insert into reactive_commits values (?, ?)", (record.version, record.time))
    lines = [
        (record.version, change.table, weight, json.dumps(tree(values, {})["tuple"]))
        for change in record.changes
        for values, weight in change.weights()
    ]
    many("insert into reactive_changes values (?, ?, ?, ?)", lines)


def forget(run: Run, keep: int) -> None:
    """Keep the last commits only."""
    last = run(
        "select version from reactive_commits order by version desc limit 1 offset ?", (keep,)
    ).fetchone()
    if last is not None:
        run("delete from reactive_commits where version <= ?", last)
        run("delete from reactive_changes where version <= ?", last)


def history(run: Run, since: int) -> list[Logged]:
    """The commits after a version."""
    commits = run(
        "select version, time from reactive_commits where version > ? order by version", (since,)
    ).fetchall()
    found = {version: Logged(version, time, {}) for version, time in commits}
    lines = run(
        'select version, "table", weight, row from reactive_changes where version > ? '
        "order by version, rowid",
        (since,),
    )
    for version, table, weight, row in lines:
        changes: Any = found[version].changes
        values = tuple(untree(value, {}) for value in json.loads(row))
        changes.setdefault(table, []).append((values, weight))
    return list(found.values())
