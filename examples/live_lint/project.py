"""A project: the facts of its files in tables, and the findings of all checks over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from examples.live_lint.checks import CHECKS, findings, name_of
from examples.live_lint.facts import Fact, Known
from examples.live_lint.finding import Finding
from examples.live_lint.tables import Tables
from reactive import Batch, Database, Ingestion, View

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
        self.source: Ingestion[Fact] = self.db.ingest(None, self.tables.by_kind, name="files")
        """Each file is an origin, and what it states are its rows."""

    def put(self, changes: Mapping[str, Facts]) -> None:
        """Replace the facts of some files, in one transaction; a file without facts is gone.

        Only facts that differ from the earlier ones are changes. The cost is that of comparing the
        facts of these files, and of the effects of the changed ones.
        """
        self.source.take(Batch(origins=changes))

    @property
    def files(self) -> list[str]:
        """The files that there are."""
        return sorted(map(str, self.source.origins))

    def facts(self, file: str) -> Facts:
        """Return the facts of a file."""
        return frozenset(self.source.origins.get(file, ()))

    def count(self) -> int:
        """Return the number of all facts."""
        return sum(map(len, self.source.origins.values()))

    def findings(self) -> list[Finding]:
        """Return the findings of all checks, by file and line."""
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
