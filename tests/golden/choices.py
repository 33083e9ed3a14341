"""Golden files of the ways to run a query: a query, and how it runs.

    # Why it is there.
    given: many readers
    students.where(lambda s: s.first_name == "Joe")
    =>
    look up 3
      ...

`given` names the setup of the database. Cases are separated by empty lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reactive import Database, Table
from reactive.engine.compiler.choices import CHOICES
from reactive.engine.compiler.queries import MANY_RANGES, MANY_READERS
from tests.borders.offload.elsewhere import Elsewhere
from tests.golden.tables import NAMES, tables
from tests.written import evaluated

FOLDER = Path(__file__).parent / "choices"
MARKS: dict[str, str | tuple[str, ...]] = {
    "run_offloaded": "elsewhere ",
    "shred_nest": "tree ",
    "scan": "table ",
    "have_values": ("nothing", "values "),
    "run_closure": "closure ",
    "run_fixpoint": "relation ",
    "run_loop": "relation ",
    "sum_beyond": "pipeline ",
    "sum_sides": "groups of sums ",
    "join_cycles": ("count cycles ", "join cycles "),
    "join_multiway": "multiway ",
    "join_intervals": "intervals ",
    "probe_indexes": "probe ",
    "match_rows": "match ",
    "look_up": "look up ",
    "look_up_events": "probe ",
    "read_places": "places ",
    "run_pipeline": "pipeline ",
    "apply_operator": "apply ",
}
"""First words of the line of each choice."""
NAMES_OF_CHOICES = tuple(choice.__name__ for choice in CHOICES)


@dataclass(frozen=True, slots=True)
class Case:
    """A query, and the text of the physical plan that should be chosen for it."""

    choice: str
    line: int
    given: str
    query: str
    expected: str

    def __str__(self) -> str:
        return f"{self.choice}:{self.line}"

    @property
    def is_chosen(self) -> bool:
        """Return True if the choice of the file runs the query, or its top."""
        return self.expected.startswith(MARKS[self.choice])

    def relation(self, kept: list[Any]) -> tuple[Any, dict[str, Table[Any]]]:
        """Return the query and its tables, in a database with the given setup.

        `kept` gets the views that must stay alive.
        """
        db = Database(offload=Elsewhere()) if self.given == "offload" else Database()
        known = tables(db)
        relation = evaluated(self.query, {**NAMES, **known, "db": db})
        if self.given == "many readers":
            for table in (known["students"], known["visits"]):
                others = [table.where(_named(str(n))).materialize() for n in range(MANY_READERS)]
                kept.extend(others)
        elif self.given == "many ranges":
            table = known["students"]
            kept.extend(table.where(_above(str(n))).materialize() for n in range(MANY_RANGES))
        elif self.given == "offload":
            kept.append(relation.materialize())
            kept[-1].offload()
        return relation, known

    def shown(self) -> str:
        """Return the text of the compiled query."""
        kept: list[Any] = []
        text = str(self.relation(kept)[0].explain())
        found = re.search(r"^runs as\n((?:  .*\n?)*)", text, re.MULTILINE)
        assert found is not None
        return re.sub(r"<query \d+>", "<query>", re.sub(r"^  ", "", found[1], flags=re.M)).rstrip()


def cases(choice: str) -> Iterator[Case]:
    """The cases of a way's golden file."""
    text = (FOLDER / f"{choice}.txt").read_text()
    for match in re.finditer(r"(?:.+\n)+", text):
        line = text.count("\n", 0, match.start()) + 1
        lines = [part for part in match[0].splitlines() if not part.startswith("#")]
        given = lines.pop(0).removeprefix("given: ") if lines[0].startswith("given: ") else ""
        arrow = lines.index("=>")
        yield Case(choice, line, given, "\n".join(lines[:arrow]), "\n".join(lines[arrow + 1 :]))


def _named(name: str) -> Any:
    return lambda s: s.first_name == name


def _above(name: str) -> Any:
    return lambda s: s.first_name > name
