"""Datalog programs: text in, live relations out.

db.datalog(text)  ->  definitions  ->  rules  ->  strata  ->  plans  ->  program["path"]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from optimizer import plan
from optimizer.errors import PlanError
from reactive.api.relation import AnyRelation, Relation
from reactive.api.table import Table
from reactive.engine.runtime.large_stack import call_with_any_stack
from reactive.languages.datalog.analysis import Analysis, analysed
from reactive.languages.datalog.definitions import Definitions, definitions_of
from reactive.languages.datalog.inputs import as_rows
from reactive.languages.datalog.kinds import class_of
from reactive.languages.datalog.places import near, too_deep
from reactive.languages.datalog.translation import Translation

MakeTable = Callable[[Any, str], Table[Any]]
"""Makes a table of rows of a class, with a name."""


class Program(Mapping[str, AnyRelation]):
    """The relations of a Datalog program, by name: made by `Database.datalog`.

    Its items are the relations that are declared `.output`; `program[name]` is any relation that
    the program declares. Rows are named tuples with the columns of the declaration.

    >>> from reactive import Database
    >>> program = Database().datalog('''
    ...     .decl edge(x: number, y: number) .input edge
    ...     .decl path(x: number, y: number) .output path
    ...     path(x, y) :- edge(x, y).
    ...     path(x, z) :- path(x, y), edge(y, z).
    ... ''')
    >>> paths = program["path"].materialize()
    >>> program.tables["edge"].add_all([program.row("edge")(1, 2), program.row("edge")(2, 3)])
    >>> sorted(paths), list(program)
    ([path(x=1, y=2), path(x=1, y=3), path(x=2, y=3)], ['path'])
    """

    def __init__(
        self,
        definitions: Definitions,
        relations: Mapping[str, AnyRelation],
        tables: Mapping[str, Table[Any]],
    ) -> None:
        self._definitions = definitions
        self._relations = relations
        self.tables = dict(tables)
        """The tables of the relations that are declared `.input`, by name."""

    def __getitem__(self, name: str) -> AnyRelation:
        if name not in self._relations:
            known = ", ".join(self._relations)
            raise KeyError(f"no relation {name!r}; {near(name, self._relations) or known}")
        return self._relations[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._definitions.outputs)

    def __len__(self) -> int:
        return len(self._definitions.outputs)

    def row(self, name: str) -> Any:
        """The class of the rows of a relation, which takes a value for each column.

        >>> from reactive import Database
        >>> Database().datalog(".decl edge(x: number, y: number)").row("edge")(1, 2)
        edge(x=1, y=2)
        """
        self[name]
        return class_of(name, self._definitions.relations[name].fields)

    def __repr__(self) -> str:
        return f"Program({', '.join(self._definitions.outputs)})"


def program_of(
    engine: Any,
    text: str,
    inputs: Mapping[str, AnyRelation],
    bits: int | None,
    make_table: MakeTable,
) -> Program:
    """The program that a text is; tables that it needs and that are not there are made.

    Raises
    ------
    PlanError: the text is no program; or what it is given does not fit it.
    """
    if not isinstance(text, str):
        raise PlanError(f"datalog takes the text of a program, not {text!r:.60}")
    if bits not in (None, 32, 64):
        raise PlanError(f"bits is 32, 64 or None, not {bits!r:.60}")
    try:
        definitions, analysis = call_with_any_stack(lambda: _analysis_of(text))
        reader = _Inputs(definitions, engine, inputs, make_table)
        given = {name: reader.node(name) for name in definitions.relations}
        nodes = call_with_any_stack(lambda: Translation(analysis, engine, given.get, bits).nodes)
    except RecursionError:
        raise too_deep(text) from None
    relations: dict[str, AnyRelation] = {
        name: Relation(engine, node) for name, node in nodes.items()
    }
    return Program(definitions, relations, reader.tables)


def _analysis_of(text: str) -> tuple[Definitions, Analysis]:
    definitions = definitions_of(text)
    return definitions, analysed(definitions)


class _Inputs:
    """The rows that a program begins with."""

    def __init__(
        self,
        definitions: Definitions,
        engine: Any,
        given: Mapping[str, AnyRelation],
        make_table: MakeTable,
    ) -> None:
        self._definitions = definitions
        self._engine = engine
        self._given = given
        self._make_table = make_table
        self.tables: dict[str, Table[Any]] = {}
        for name, relation in given.items():
            self._check(name, relation)

    def node(self, name: str) -> plan.Node | None:
        """The rows of a relation that is an input, or is given."""
        if name not in self._definitions.inputs and name not in self._given:
            return None
        fields = self._definitions.relations[name].fields
        kind = class_of(name, fields)
        return as_rows(self._relation(name, kind).plan, name, fields, kind)

    def _relation(self, name: str, kind: Any) -> AnyRelation:
        if name in self._given:
            return self._given[name]
        known = (table for table in self._engine.tables.values() if table.name == name)
        found = next(known, None)
        self.tables[name] = self._make_table(kind, name) if found is None else found
        return self.tables[name]

    def _check(self, name: str, relation: Any) -> None:
        if name not in self._definitions.relations:
            hint = near(name, self._definitions.relations, "there are")
            raise PlanError(f"inputs: the program has no relation {name!r}\n  {hint}")
        if not isinstance(relation, Relation) or relation._engine is not self._engine:
            raise PlanError(f"inputs: {name!r} is no relation of this database")
