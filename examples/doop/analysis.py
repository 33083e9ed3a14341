"""The points-to analyses of `logic/` over a program of class files, live.

    class files --findbugs reader--> facts --extract--> tables --logic/main.dl--> views

A class that changes replaces its facts in one commit, and the call graph, the points-to sets and
the answers of every analysis follow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from examples.doop.extract import Facts, extract
from examples.findbugs.archives import archived
from examples.findbugs.classfile import read
from reactive import Database, Relation

LOGIC = Path(__file__).parent / "logic"
SHAPES = Path(__file__).parent / "program" / "shapes.jar"
ANALYSES = ("insensitive", "callSite", "twoObjects")


def classes(jar: Path) -> dict[str, Facts]:
    """Return the facts of each class in a jar, by its place in it."""
    return {each.place: extract(read(each.read(), each.place)) for each in archived(jar)}


def merge(facts: Iterable[Facts]) -> Facts:
    """Return the facts of several classes as one program."""
    found: Facts = defaultdict(set)
    for each in facts:
        for relation, rows in each.items():
            found[relation] |= rows
    return dict(found)


class PointsTo:
    """The facts of a program, and its analyses.

    >>> analysis = PointsTo(Database())
    >>> casts = analysis.relation("twoObjects", "MayFail").materialize()
    >>> analysis.replace({}, merge(classes(SHAPES).values()))
    >>> len(casts)
    0
    """

    def __init__(self, db: Database) -> None:
        self.db = db
        self.program = db.datalog(LOGIC / "main.dl")

    def relation(self, analysis: str, name: str) -> Relation[Any]:
        """Return a relation of an analysis, as `relation("twoObjects", "VarPointsTo")`."""
        return self.program[f"{analysis}.{name}"]

    def replace(self, before: Facts, after: Facts) -> None:
        """Delete facts and insert others in one commit; those in both stay.

        Two classes may state one fact, such as the type of an array: give the facts of all.
        """
        with self.db.transaction():
            for name in {*before, *after}:
                old, new = before.get(name, set()), after.get(name, set())
                row, table = self.program.row(name), self.program.tables[name]
                table.remove_all([row(*each) for each in old - new])
                table.add_all([row(*each) for each in new - old])
