"""Golden files of rules: a query, and the plan that a rule makes of it.

    # Why it is there.
    after: split_where
    students.where(lambda s: s.age > 30)
    =>
    where s.age > 30
      table students

`after` names rules that run before it; `=> unchanged` says that the rule has nothing to do. Cases
are separated by empty lines. All callables are read first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from optimizer import plan
from optimizer.plans.explain import explain
from optimizer.rewriting.optimize import optimize
from optimizer.rewriting.phases import PHASES
from optimizer.traverse import Rule
from reactive import Database
from tests.golden.tables import NAMES, tables
from tests.written import evaluated

FOLDER = Path(__file__).parent / "rules"
RULES: dict[str, Rule] = {rule.__name__: rule for phase in PHASES for rule in phase}
UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Case:
    """A query, and the text of the plan that a rule should make of it."""

    rule: str
    line: int
    after: tuple[str, ...]
    query: str
    expected: str

    def __str__(self) -> str:
        return f"{self.rule}:{self.line}"

    @property
    def is_positive(self) -> bool:
        return self.expected != UNCHANGED

    def written(self) -> plan.Node:
        """The plan as written."""
        db = Database()
        node: plan.Node = evaluated(self.query, {**NAMES, **tables(db), "db": db}).plan
        return node

    def before(self) -> plan.Node:
        """The plan that the rule is given."""
        names = self.after if self.rule == "read_callables" else ("read_callables", *self.after)
        phases = tuple((RULES[name],) for name in names)
        return optimize(self.written(), phases).plan

    def apply(self, node: plan.Node) -> plan.Node:
        """The plan that the rule makes of a plan."""
        return optimize(node, ((RULES[self.rule],),)).plan


def cases(rule: str) -> Iterator[Case]:
    """The cases of a rule's golden file."""
    text = (FOLDER / f"{rule}.txt").read_text()
    for match in re.finditer(r"(?:.+\n)+", text):
        line = text.count("\n", 0, match.start()) + 1
        lines = [part for part in match[0].splitlines() if not part.startswith("#")]
        if lines:
            yield _case(rule, line, lines)


def shown(node: plan.Node) -> str:
    """The text of a plan, without the numbers that queries have."""
    return re.sub(r"<query \d+>", "<query>", explain(node))


def _case(rule: str, line: int, lines: list[str]) -> Case:
    after: tuple[str, ...] = ()
    if lines[0].startswith("after: "):
        after = tuple(lines.pop(0).removeprefix("after: ").split(", "))
    arrow = next(i for i, part in enumerate(lines) if part.startswith("=>"))
    own = lines[arrow].removeprefix("=>").strip()
    expected = own or "\n".join(lines[arrow + 1 :])
    return Case(rule, line, after, "\n".join(lines[:arrow]), expected)
