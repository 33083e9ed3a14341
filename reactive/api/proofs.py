"""Proofs: why a row is in a view, as a finite tree down to rows of tables.

    unused ('os', 'a.py')                                  checks.py:41
    ├─ Import Import(name='os', file='a.py', line=3)       fact
    └─ no Use with (name, file) = ('os', 'a.py')           absent

Inner nodes are views, relations of recursions, groups and orders, with the operators of the query
as written between them; leaves are rows of tables and rows that the query writes out, and what is
not there.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from optimizer.callables.source import Place

Kind: TypeAlias = Literal[
    "fact",
    "value",
    "view",
    "recursion",
    "group",
    "order",
    "past",
    "query",
    "absent",
    "more",
]
WIDTH = 60
LONGEST = 300
LEAVES = frozenset({"fact", "value", "past", "absent", "more"})


@dataclass(eq=False, slots=True, repr=False)
class Proof:
    """Why a row is where it is: it was made by a rule from the rows of the premises.

    It prints as a tree. Proofs that occur several times in a tree are one object, and are printed
    once.

    Parameters
    ----------
    name: the table, view or relation that has the row; else the operator that makes it.
    row: the row; None for what is absent.
    kind: "fact" for a row of a table, "value" for one that the query writes out, "past" for one of
        before the last commit, "absent" for rows that are not there, "more" for the members of a
        group that are not shown; "view", "recursion", "group", "order" or "query" for a row that is
        made of the premises.
    premises: the proofs of the rows that it is made of.
    rule: the operators between the row and the premises, as written, from the outermost on.
    place: the line of code, or of the text, that the rule was written in; None if unknown.
    note: what else there is to say: "third of 5", "12 rows".
    height: the number of rules below each other; 0 for a leaf.
    """

    name: str
    row: Any
    kind: Kind
    premises: tuple[Proof, ...] = ()
    rule: tuple[str, ...] = ()
    place: Place | None = None
    note: str = ""
    height: int = 0
    _checking: Callable[[], int] | None = field(default=None)

    # The tree.

    def __iter__(self) -> Iterator[Proof]:
        """Iterate over the proof and all proofs below, each once, those above first."""
        seen: set[int] = set()
        waiting = [self]
        while waiting:
            proof = waiting.pop()
            if id(proof) not in seen:
                seen.add(id(proof))
                yield proof
                waiting += reversed(proof.premises)

    def facts(self) -> list[tuple[str, Any]]:
        """Return the rows of tables that the proof rests on, each once, with their tables.

        >>> from reactive import Database
        >>> edges = Database().table(tuple[int, int], name="edges")
        >>> edges.add_all([(1, 2), (2, 3)])
        >>> hops = edges.join(edges, on=lambda a, b: a[1] == b[0])
        >>> view = hops.select(lambda a, b: (a[0], b[1])).materialize("hops")
        >>> view.why((1, 3)).facts()
        [('edges', (1, 2)), ('edges', (2, 3))]
        """
        return list(
            {(p.name, repr(p.row)): (p.name, p.row) for p in self if p.kind == "fact"}.values()
        )

    def absences(self) -> list[Proof]:
        """Return what is absent, and has to be so."""
        return [proof for proof in self if proof.kind == "absent"]

    def check(self) -> int:
        """Evaluate each step from scratch; return the number of steps.

        Nothing of the search is used. Cost: for a step with absent rows, a group or an order, the
        evaluation of its inputs.

        Raises
        ------
        VerificationError: a step does not make its row, or the proof contains itself. Also if the
            rows have changed since the proof was made.
        """
        checking = self._checking
        return 0 if checking is None else checking()

    # Texts.

    def __str__(self) -> str:
        lines = list(self._lines())
        width = min(max((len(left) for left, _ in lines), default=0), WIDTH)
        return "\n".join(f"{left:<{width}}   {right}".rstrip() for left, right in lines)

    def __repr__(self) -> str:
        return f"<proof of {self.name} {_short(self.row)}, height {self.height}>"

    def _repr_html_(self) -> str:
        """Return the proof as nested lists that open and close, for notebooks."""
        return "<div>" + "".join(self._html(set())) + "</div>"

    def _html(self, seen: set[int]) -> Iterator[str]:
        left, right = html.escape(self._left()), html.escape(self._right())
        shown = f"<code>{left}</code> <small>{right}</small>"
        if not self.premises or id(self) in seen:
            yield f"<div style='margin-left:1.2em'>{shown}</div>"
            return
        seen.add(id(self))
        yield f"<details open style='margin-left:1.2em'><summary>{shown}</summary>"
        for premise in self.premises:
            yield from premise._html(seen)
        yield "</details>"

    def _lines(self) -> Iterator[tuple[str, str]]:
        """Yield the lines of the tree: its branches with a row, and what is said beside."""
        seen: set[int] = set()
        waiting: list[tuple[Proof, str, str]] = [(self, "", "")]
        while waiting:
            proof, branch, below = waiting.pop()
            is_again = id(proof) in seen and bool(proof.premises)
            yield branch + proof._left(), "see above" if is_again else proof._right()
            if is_again:
                continue
            seen.add(id(proof))
            last = len(proof.premises) - 1
            for place in range(last, -1, -1):
                mark, rest = ("└─ ", "   ") if place == last else ("├─ ", "│  ")
                waiting.append((proof.premises[place], below + mark, below + rest))

    def _left(self) -> str:
        if self.kind == "absent":
            return f"no {self.name} {self.note}".rstrip()
        if self.kind == "more":
            return self.note
        row = _short(self.row)
        return row if row.startswith(f"{self.name}(") else f"{self.name} {row}"

    def _right(self) -> str:
        if self.kind in ("absent", "more", "value", "past", "fact"):
            words = {"value": "written in the query", "past": "before the last commit", "more": ""}
            return words.get(self.kind) or str(self.kind) * (self.kind != "more")
        return ", ".join(each for each in (self.note, str(self.place or "")) if each)

    def to_dict(self) -> dict[str, Any]:
        """Return the proof as nested dictionaries of plain values; rows are texts, by `repr`.

        Proofs that occur several times are written out each time.
        """
        return {
            "name": self.name,
            "row": None if self.kind in ("absent", "more") else repr(self.row),
            "kind": self.kind,
            "rule": list(self.rule),
            "place": None if self.place is None else str(self.place),
            "note": self.note,
            "height": self.height,
            "premises": [premise.to_dict() for premise in self.premises],
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON."""
        return json.dumps(self.to_dict())

    def mermaid(self) -> str:
        """Return the proof as a flow chart of Mermaid, each row once."""
        numbers = {id(proof): f"n{place}" for place, proof in enumerate(self)}
        lines = ["flowchart TD"]
        for proof in self:
            text = f"{proof._left()}<br/>{proof._right()}".replace('"', "#quot;")
            lines.append(f'  {numbers[id(proof)]}["{text}"]')
        for proof in self:
            lines += [f"  {numbers[id(p)]} --> {numbers[id(proof)]}" for p in proof.premises]
        return "\n".join(lines)

    def dot(self) -> str:
        """Return the proof as a graph in the language of Graphviz, each row once."""
        numbers = {id(proof): f"n{place}" for place, proof in enumerate(self)}
        lines = ["digraph proof {", "  node [shape=box];"]
        for proof in self:
            text = json.dumps(f"{proof._left()}\n{proof._right()}", ensure_ascii=False)
            lines.append(f"  {numbers[id(proof)]} [label={text}];")
        for proof in self:
            lines += [f"  {numbers[id(p)]} -> {numbers[id(proof)]};" for p in proof.premises]
        return "\n".join([*lines, "}"])

    def to_sarif(self, location: Callable[[Any], Sequence[Any] | None]) -> dict[str, Any]:
        """Return the proof as a code flow of SARIF 2.1, the facts first and the row last.

        Parameters
        ----------
        location: callable, row -> (file, line), (file, line, column) or None; only the rows with a
            place are in the flow.
        """
        found = []
        for proof in reversed(list(self)):
            at = None if proof.kind in ("absent", "more") else location(proof.row)
            if at is None:
                continue
            file, line, *column = at
            region = {"startLine": line} | ({"startColumn": column[0]} if column else {})
            place = {"artifactLocation": {"uri": str(file)}, "region": region}
            text = {"text": proof._left()}
            found.append({"location": {"message": text, "physicalLocation": place}})
        return {"threadFlows": [{"locations": found}]}


def _short(row: Any) -> str:
    text = repr(row)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
