"""Definitions of SQL in the file of a durable database: tables, their constraints, and views.

    "table t"    {"texts": ["create table t (a int)", "alter table ..."], ...}
    "view v"     {"texts": ["create view v as ..."], ...}

A database that is opened again makes a table of its stored definition when a statement first names
it; CREATE TABLE makes it by its own words.

A definition is written after the table is in the file, and one without a table is discarded. So a
process that is killed leaves the table as it was before or after the statement:

    create     table, definition                    killed between: a table to be declared again
    drop       table, definition                    a definition without a table
    alter      both definitions, rows, the new one  the one that the columns in the file are of
               (if the columns stay: the rows and the new definition in one write)
    rename     "is_new", new table, both names in   a new table that is deleted, or an old one
               one write, old table

A database that is open for reading alone makes no tables of them.

State:  the texts.
Cost:   one write for each statement that defines something.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from optimizer.errors import PlanError
from optimizer.record import record
from reactive.languages.sql.statements.constraints import enforce, index
from reactive.languages.sql.statements.definitions import declare, unmake
from reactive.languages.sql.statements.table_definition import TableDefinition
from reactive.languages.sql.statements.views import ViewText, read_view, set_view
from reactive.languages.sql.terms.common_types import DIALECTS
from reactive.languages.sql.terms.errors import peek
from reactive.languages.sql.text.read import parse_statements

ALTERS = re.compile(r"\s*(alter|drop)\b", re.IGNORECASE)


@record
class StoredEntry:
    """A definition in the file.

    place: its place in the order of creation.
    state: "" for a complete one; "next" if ALTER TABLE may not have converted the rows: the last
        text counts if it did; "is_new" for a table that RENAME has not completed; "is_gone" for one
        that RENAME has to delete.
    """

    place: int
    definition: TableDefinition
    state: str = ""

    def text(self) -> str:
        """Return the entry as JSON. Raises `TypeError` for values that have no such text."""
        of = self.definition
        values = [dict(each) for each in of.values]
        return json.dumps([self.place, list(of.texts), values, of.dialect, self.state])


class StoredDefinitions:
    """The definitions in the file of a database, and those that are not made yet."""

    def __init__(self, engine: Any, scope_of: Callable[..., Any]) -> None:
        self._engine = engine
        self._scope_of = scope_of
        self._entries: dict[str, StoredEntry] = {}
        self._waiting: dict[str, set[str]] = {}
        """Folded names of tables and views that are not made, with the names that they read."""
        self._repeatable: dict[str, str] = {}
        """Texts that were run, as a program that starts again runs them; with what they define."""
        self.schemas: list[str] = []
        """The folded names of the schemas in the file."""
        with engine.inside():
            self._texts = engine.journal.named_texts()
            self._load()

    def _load(self) -> None:
        """Read the definitions, and complete or undo a change that was cut off."""
        for name, text in self._texts.texts.items():
            place, texts, values, dialect, state = json.loads(text)
            definition = TableDefinition(tuple(texts), tuple(values), dialect)
            self._entries[name] = StoredEntry(place, definition, state)
        for name, entry in list(self._entries.items()):
            self._complete(name, entry)
        for name, entry in sorted(self._entries.items(), key=lambda item: item[1].place):
            kind, _, called = name.partition(" ")
            if kind == "schema":
                self.schemas.append(called.casefold())
                self._repeatable |= dict.fromkeys(entry.definition.texts, name.casefold())
            else:
                self._waiting[f"{kind} {called.casefold()}"] = _names_read(entry.definition)

    def _complete(self, name: str, entry: StoredEntry) -> None:
        """Complete or undo the change of a table that was cut off."""
        kind, _, called = name.partition(" ")
        if kind != "table":
            return
        if entry.state in ("is_new", "is_gone"):
            self._texts.drop(called)
            self.write({name: None})
        elif called not in self._texts.tables():
            self.write({name: None})
        elif entry.state == "next":
            of = entry.definition
            earlier = TableDefinition(of.texts[:-1], of.values[:-1], of.dialect)
            folded = of.folded()
            declared = declare(folded.create, folded.name, self._scope(of, 0))
            self.write({name: of if self.has_form(called, declared) else earlier})

    def _scope(self, definition: TableDefinition, place: int) -> Any:
        return self._scope_of(
            definition.texts[place], DIALECTS[definition.dialect], definition.values[place]
        )

    # Writing.

    def write(self, changes: Mapping[str, TableDefinition | None], state: str = "") -> None:
        """Write definitions by their names with their kinds; None deletes one."""
        self.write_entries({name: (of, state) for name, of in changes.items()})

    def write_with_rows(
        self, changes: Mapping[str, TableDefinition | None], rows: Sequence[Any]
    ) -> None:
        """Write definitions by their names, and changes of rows, in one write."""
        self.write_entries({name: (of, "") for name, of in changes.items()}, rows)

    def write_entries(
        self, changes: Mapping[str, tuple[TableDefinition | None, str]], rows: Sequence[Any] = ()
    ) -> None:
        """Write definitions with their states, and changes of rows, in one write."""
        texts, entries = dict[str, str | None](), dict[str, StoredEntry]()
        for name, (definition, state) in changes.items():
            earlier = self._entries.get(name)
            texts[name] = None
            if definition is None:
                continue
            last = max((each.place for each in self._entries.values()), default=0)
            place = last + 1 if earlier is None else earlier.place
            entries[name] = StoredEntry(place, definition, state)
            try:
                texts[name] = entries[name].text()
            except TypeError:
                raise PlanError(
                    f"the definition of {name} cannot be stored: a parameter has no plain value\n"
                    "  write the value in the text"
                ) from None
        with self._engine.inside():
            self._texts.write(texts, rows)
        for name in texts:
            self._entries.pop(name, None)
        self._entries |= entries

    def is_kept(self, table: Any) -> bool:
        """Return True if a table is durable."""
        return bool(self._texts.is_kept(table))

    def has_kept(self, name: str) -> bool:
        """Return True if a durable table has the name."""
        return bool(self._texts.has_kept(name))

    def has_form(self, name: str, declared: Any) -> bool:
        """Return True if the stored rows of a table are of the class that is declared."""
        return bool(self._texts.is_of_form(name, declared.row_type, declared.key_fields))

    def define_table(self, table: Any, definition: TableDefinition) -> None:
        """Store the definition of a table, if its rows are stored."""
        if self.is_kept(table):
            self.write({f"table {table.name}": definition})

    def define_view(self, name: str, view: ViewText) -> None:
        """Store the definition of a view; one whose parameters have no plain values is not."""
        definition = TableDefinition((view.text,), (view.values,), view.dialect)
        try:
            StoredEntry(0, definition).text()
        except TypeError:
            return
        self.write({f"view {name.casefold()}": definition})

    def forget(self, name: str) -> None:
        """Delete the definition of a table or view, by its kind and name."""
        folded = name.casefold()
        self._repeatable = {t: of for t, of in self._repeatable.items() if of != folded}
        if name in self._entries:
            self.write({name: None})

    def forget_table(self, name: str) -> None:
        """Delete the definition of a table that was dropped, unless another has taken its place."""
        if not self._texts.has_kept(name):
            self.forget(f"table {name}")

    # Making what is stored.

    def declaring(self, name: str) -> None:
        """Note that CREATE makes the table or view by its own words."""
        for kind in ("table", "view"):
            self._waiting.pop(f"{kind} {name.casefold()}", None)

    def has_run(self, text: str) -> bool:
        """Return True, once, if the statement was run when what it defines was made of the file."""
        return self._repeatable.pop(text, None) is not None

    def names(self) -> list[str]:
        """Return the names of the tables and views that are not made yet."""
        return [name.partition(" ")[2] for name in self._waiting]

    def open(self, kind: str, name: str) -> bool:
        """Make the table or view of a name if it is stored and not made; True if it was."""
        key = f"{kind} {name.casefold()}"
        if key not in self._waiting:
            return False
        del self._waiting[key]
        self._open(key)
        return True

    def open_readers(self, name: str) -> None:
        """Make the stored tables whose constraints read a table."""
        folded = name.casefold()
        for key, read in list(self._waiting.items()):
            if key.startswith("table ") and folded in read:
                self.open("table", key.partition(" ")[2])

    def open_all(self) -> None:
        """Make everything that is stored."""
        for key in list(self._waiting):
            kind, _, name = key.partition(" ")
            self.open(kind, name)

    def _open(self, key: str) -> None:
        """Make a table or view of its definition."""
        kind = key.partition(" ")[0]
        name = next(name for name in self._entries if name.casefold() == key)
        definition = self._entries[name].definition
        try:
            if kind == "view":
                self._open_view(name.partition(" ")[2], definition)
            else:
                self._open_table(definition)
        except Exception as error:
            error.add_note(f"  {name}, as {self._texts.store_name} defines it")
            self._waiting[key] = _names_read(definition)
            raise
        if not any(ALTERS.match(text) for text in definition.texts):
            self._repeatable |= dict.fromkeys(definition.texts, key)

    def _open_view(self, name: str, definition: TableDefinition) -> None:
        around = self._scope(definition, 0)
        dialect, values = DIALECTS[definition.dialect], definition.values[0]
        (tree,) = parse_statements(definition.texts[0], dialect, values)
        set_view(name, read_view(tree, around), around)
        catalog = around.environment.catalog
        catalog.view_texts[name.casefold()] = ViewText(
            definition.texts[0], values, definition.dialect
        )

    def _open_table(self, definition: TableDefinition) -> None:
        folded = definition.folded()
        around = self._scope(definition, 0)
        catalog = around.environment.catalog
        declared = declare(folded.create, folded.name, around)
        table = declared.make(self._engine)
        try:
            enforce(declared.constraints, table, around)
            for statement in folded.indexes.values():
                index(statement, around, is_new=False)
        except BaseException:
            unmake(table)
            raise
        catalog.definitions[table.plan.number] = definition


def _names_read(definition: TableDefinition) -> set[str]:
    """Return the folded names of the tables that the statements of a definition name."""
    folded = definition.folded() if _is_table(definition) else None
    if folded is None:
        return set()
    own = folded.name.casefold()
    found = {node.name.casefold() for node in folded.create.find_all(exp.Table)}
    return found - {own}


def _is_table(definition: TableDefinition) -> bool:
    tree = parse_statements(definition.texts[0], DIALECTS[definition.dialect])[0]
    return str(peek(tree, "kind")).upper() == "TABLE"
