"""A project: the facts of its files in tables, and the findings of all checks over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from examples.live_lint.checks import CHECKS, findings, name_of
from examples.live_lint.facts import Fact, Known
from examples.live_lint.finding import Finding
from examples.live_lint.tables import Tables
from reactive import Database, View

Facts = frozenset[Fact]
NONE: Facts = frozenset()


class Project:
    """All files of a project as facts, with one view per check.

    Parameters
    ----------
    known: names of modules that may be imported although they are not analysed.

    >>> from examples.live_lint.extract import extract
    >>> project = Project()
    >>> project.put({"a.py": extract("a.py", "a", b"import b")})
    >>> for finding in project.findings():
    ...     print(finding)
    a.py:1: there is no module b [missing-module]
    a.py:1: b is imported, not used [unused-import]
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        self.db = Database()
        self.tables = Tables(self.db)
        self.tables.known.add_all(map(Known, sorted(set(known))))
        self.views: dict[str, View[Finding]] = {
            name_of(check): findings(check, self.tables).materialize(name_of(check))
            for check in CHECKS
        }
        self._facts: dict[str, Facts] = {}

    def put(self, changes: Mapping[str, Facts]) -> None:
        """Replace the facts of some files, in one transaction; a file without facts is gone.

        Only the facts that differ from those of before are changes, so the cost is that of
        comparing the facts of these files, and of what the differing ones affect.
        """
        old = {file: self._facts.get(file, NONE) for file in changes}
        with self.db.transaction():
            for file, facts in changes.items():
                for kind, rows in _by_kind(old[file] - facts).items():
                    self.tables.of(kind).remove_all(rows)
                for kind, rows in _by_kind(facts - old[file]).items():
                    self.tables.of(kind).add_all(rows)
        self._facts.update(changes)
        for file in [file for file, facts in changes.items() if not facts]:
            del self._facts[file]

    @property
    def files(self) -> list[str]:
        """The files that there are."""
        return sorted(self._facts)

    def facts(self, file: str) -> Facts:
        """What a file states."""
        return self._facts.get(file, NONE)

    def count(self) -> int:
        """How many facts there are in all."""
        return sum(map(len, self._facts.values()))

    def findings(self) -> list[Finding]:
        """What all checks find, by file and line."""
        return sorted(finding for view in self.views.values() for finding in view)

    def verify(self, tick: Callable[[str], object] = str) -> None:
        """Evaluate every check from scratch, and compare; `tick` is called with its name before.

        Raises
        ------
        VerificationError: a view differs from its query.
        """
        for name, view in self.views.items():
            tick(name)
            view.verify()


def _by_kind(rows: Iterable[Fact]) -> dict[type[Any], list[Fact]]:
    kinds: dict[type[Any], list[Fact]] = {}
    for row in rows:
        kinds.setdefault(type(row), []).append(row)
    return kinds
