"""The definition of a table: its CREATE TABLE, as ALTER TABLE and CREATE INDEX have changed it.

    create table t (a int)                       create table t (a int, b int default 1)
    alter table t add column b int default 1     -->
    create index i on t (b)                      index i

A definition is stored as the texts of its statements. Folding them gives the tree of a CREATE TABLE
with the columns and constraints that hold now, and the trees of the indexes.

State:  the texts, a few for each table.
Cost:   O(texts) for each ALTER TABLE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from sqlglot import exp

from optimizer.record import record
from reactive.engine.runtime.sql_names import DialectName
from reactive.languages.sql.terms.common_types import DIALECTS
from reactive.languages.sql.terms.errors import peek, put, take_all
from reactive.languages.sql.text.read import parse_statements

Fail: TypeAlias = Callable[..., Exception]
"""Makes the error of a node: node, message, remedy."""
CHECKED, UNIQUE = exp.CheckColumnConstraint, exp.UniqueColumnConstraint
IS_KEY = (exp.PrimaryKey, exp.PrimaryKeyColumnConstraint)
MADE = (exp.ComputedColumnConstraint, exp.GeneratedAsIdentityColumnConstraint)
SUFFIXES = {CHECKED: "check", UNIQUE: "key", exp.ForeignKey: "fkey", exp.Reference: "fkey"}
"""Ends of the names that constraints have in Postgres."""
CONSTRAINTS: Any = (*SUFFIXES, *IS_KEY)


@record
class TableDefinition:
    """The statements that define a table, the values of their parameters, and their dialect."""

    texts: tuple[str, ...]
    values: tuple[Mapping[str, Any], ...]
    dialect: DialectName

    def extended(self, text: str, values: Mapping[str, Any]) -> TableDefinition:
        """Return the definition with one more statement."""
        return TableDefinition((*self.texts, text), (*self.values, dict(values)), self.dialect)

    def folded(self) -> DefinitionTree:
        """Return the trees of the table and its indexes as they are now."""
        made: DefinitionTree | None = None
        for text, values in zip(self.texts, self.values, strict=True):
            (tree,) = parse_statements(text, DIALECTS[self.dialect], values)
            for node in tree.walk():
                node.meta.clear()  # a place in another text than that of messages
            with_values(tree, values)
            if made is None:
                made = DefinitionTree(tree, self.dialect)
            else:
                made.apply(tree, lambda node, told, *remedy: AssertionError(told))
        assert made is not None
        return made


def with_values(tree: exp.Expr, values: Mapping[str, Any]) -> None:
    """Write the values of parameters in their places."""
    for node in list(tree.find_all(exp.Placeholder, exp.Parameter)):
        if node.name in values:
            node.replace(exp.convert(values[node.name]))


@record
class NamedConstraint:
    """A constraint of a table, with its name, or the name that Postgres would give it."""

    name: str
    node: Any
    columns: tuple[str, ...]
    holder: Any
    """The column behind which it stands, or the node in the list of the table."""


class DefinitionTree:
    """The tree of CREATE TABLE and those of the indexes, which ALTER TABLE edits."""

    def __init__(self, create: Any, dialect: str) -> None:
        self.create = create
        self.indexes: dict[str, Any] = {}
        """Statements by the folded names of indexes."""
        self.sources: dict[str, str | None] = {}
        """The folded names of columns with their names before; None of a new column."""
        self.casts: dict[str, Any] = {}
        """The expressions of columns whose type has changed, by folded names."""
        self._dialect = dialect
        self.begin()

    def begin(self) -> None:
        """Note the columns as those before the next statement."""
        self.sources = {name.casefold(): name for name in map(_name, self.columns())}
        self.casts = {}

    @property
    def name(self) -> str:
        """The name of the table."""
        return str(self._target().name)

    def _target(self) -> Any:
        return peek(peek(self.create, "this"), "this")

    @property
    def parts(self) -> list[Any]:
        """The columns and constraints."""
        return list(peek(peek(self.create, "this"), "expressions"))

    def columns(self) -> list[Any]:
        """Return the nodes of the columns; of SQLite also names without a type."""
        return [part for part in self.parts if isinstance(part, exp.ColumnDef | exp.Identifier)]

    def constraints(self) -> list[NamedConstraint]:
        """Return the constraints with their names, those of the key too."""
        found = list[NamedConstraint]()
        names = set[str]()
        for node, columns, holder, given in self._constraints():
            if not isinstance(node, CONSTRAINTS):
                continue
            kind = "pkey" if isinstance(node, IS_KEY) else SUFFIXES[type(node)]
            shown = () if kind == "pkey" else columns
            if kind == "check":
                read = dict.fromkeys(c.name for c in node.find_all(exp.Column))
                shown = tuple(read) if len(read) == 1 else ()
            base = name = given or "_".join((self.name, *shown, kind))
            number = 0
            while not given and name.casefold() in names:
                number += 1
                name = f"{base}{number}"
            names.add(name.casefold())
            found.append(NamedConstraint(name, node, columns, holder))
        return found

    def _constraints(self) -> Iterator[tuple[Any, tuple[str, ...], Any, str | None]]:
        """Yield the nodes of constraints, their columns, their holders, and the given names."""
        for part in self.parts:
            if isinstance(part, exp.ColumnDef):
                for each in peek(part, "constraints") or ():
                    kind, given = peek(each, "kind"), peek(each, "this")
                    if isinstance(kind, CONSTRAINTS):
                        yield kind, (_name(part),), part, None if given is None else given.name
            elif not isinstance(part, exp.Identifier):
                is_named = isinstance(part, exp.Constraint)
                for inner in part.expressions if is_named else [part]:
                    columns = tuple(str(_name(each)) for each in _own_names(inner))
                    yield inner, columns, part, peek(part, "this").name if is_named else None

    # Edits.

    def apply(self, statement: Any, fail: Fail) -> None:
        """Change the trees by CREATE INDEX, DROP INDEX or ALTER TABLE."""
        self.begin()
        match statement:
            case exp.Create():
                self.indexes[peek(statement, "this").name.casefold()] = statement
            case exp.Drop():
                for target in peek(statement, "tables"):
                    self.indexes.pop(target.name.casefold(), None)
            case exp.Alter():
                for action in statement.args.get("actions") or ():
                    self._edit(action, fail)

    def _edit(self, action: Any, fail: Fail) -> None:
        match action:
            case exp.ColumnDef() | exp.Identifier():
                self._add_column(action)
            case exp.Drop() if (action.args.get("kind") or "").upper() == "COLUMN":
                self._drop_column(action, fail)
            case exp.Drop() if (action.args.get("kind") or "").upper() == "CONSTRAINT":
                self._drop_constraint(action, fail)
            case exp.RenameColumn():
                self._rename_column(action, fail)
            case exp.AlterRename():
                self._rename(action)
            case exp.AlterColumn():
                self._alter_column(action, fail)
            case exp.AddConstraint():
                self._put([*self.parts, *action.expressions])
                put(action, "expressions", None)  # whoever reads the table reads them
            case _:
                raise fail(action, f"ALTER TABLE {action.sql()[:40]} is not supported")

    def _put(self, parts: list[Any]) -> None:
        put(peek(self.create, "this"), "expressions", parts)

    def _add_column(self, node: Any) -> None:
        may_exist = isinstance(node, exp.ColumnDef) and bool(node.args.get("exists"))
        folded = _name(node).casefold()
        if may_exist and folded in self.sources:
            take_all(node)
            return
        self._put([*self.parts, node])
        self.sources.setdefault(folded, None)

    def _column(self, named: Any, fail: Fail) -> Any:
        """Return the node of a column."""
        folded = named.name.casefold()
        for node in self.columns():
            if _name(node).casefold() == folded:
                return node
        names = ", ".join(map(_name, self.columns()))
        raise fail(named, f"there is no column {named.name!r}", f"there are {names}")

    def _drop_column(self, action: Any, fail: Fail) -> None:
        named = (action.args.get("tables") or [action.this])[0]
        folded = named.name.casefold()
        _ = action.args.get("cascade"), action.args.get("restrict")
        if action.args.get("exists") and folded not in self.sources:
            return
        column = self._column(named, fail)
        if len(self.columns()) == 1:
            raise fail(named, f"{named.name!r} is the only column of {self.name!r}", "drop it")
        doomed = list[Any]()
        for each in self.constraints():
            if not self._names(each, folded) or (
                each.holder is column and not isinstance(each.node, IS_KEY)
            ):
                continue
            if self._dialect != "postgres" or isinstance(each.node, IS_KEY):
                raise fail(
                    named,
                    f"column {named.name!r} is read by the constraint {each.name!r}",
                    f"alter table {self.name} drop constraint {each.name}",
                )
            doomed.append(each)
        for other in self.columns():
            kinds = [peek(each, "kind") for each in peek(other, "constraints") or ()]
            for kind in kinds if other is not column else ():
                if isinstance(kind, MADE) and _reads(kind, folded):
                    raise fail(named, f"column {_name(other)!r} is computed from {named.name!r}")
        for each in doomed:
            self._remove(each)
        for name, index in list(self.indexes.items()):
            if _reads(index, folded):
                if self._dialect != "postgres":
                    raise fail(named, f"index {name!r} reads {named.name!r}", f"drop index {name}")
                del self.indexes[name]
        self._put([part for part in self.parts if part is not column])
        del self.sources[folded]
        self.casts.pop(folded, None)

    def _names(self, constraint: NamedConstraint, folded: str) -> bool:
        """Return True if a constraint reads a column."""
        if isinstance(constraint.node, CHECKED):
            return any(c.name.casefold() == folded for c in constraint.node.find_all(exp.Column))
        return folded in map(str.casefold, constraint.columns)

    def _drop_constraint(self, action: Any, fail: Fail) -> None:
        named = (action.args.get("tables") or [action.this])[0]
        _ = action.args.get("cascade"), action.args.get("restrict")
        every, may_miss = self.constraints(), action.args.get("exists")
        found = next((e for e in every if e.name.casefold() == named.name.casefold()), None)
        if found is not None:
            self._remove(found)
        elif not may_miss:
            names = ", ".join(each.name for each in every) or "none"
            raise fail(
                named, f"{self.name!r} has no constraint {named.name!r}", f"there are {names}"
            )

    def _remove(self, constraint: NamedConstraint) -> None:
        """Take a constraint out of the tree."""
        holder = constraint.holder
        if isinstance(holder, exp.ColumnDef):
            kept = [
                c for c in peek(holder, "constraints") if peek(c, "kind") is not constraint.node
            ]
            put(holder, "constraints", kept)
            return
        if isinstance(holder, exp.Constraint) and len(holder.expressions) > 1:
            put(holder, "expressions", [e for e in holder.expressions if e is not constraint.node])
            return
        self._put([part for part in self.parts if part is not holder])

    def _rename_column(self, action: Any, fail: Fail) -> None:
        old, new = action.this, action.args["to"]
        folded = old.name.casefold()
        if action.args.get("exists") and folded not in self.sources:
            return
        column = self._column(old, fail)
        if new.name.casefold() != folded and new.name.casefold() in self.sources:
            raise fail(new, f"there is a column {new.name!r} already")
        made = new.this if isinstance(new, exp.Column) else new
        for tree in (self.create, *self.indexes.values()):
            for each in list(tree.find_all(exp.Column)):
                if each.name.casefold() == folded and self._is_own(each, tree):
                    put(each, "this", made.copy())
        for each in list(self.create.find_all(*IS_KEY, UNIQUE, exp.ForeignKey, exp.Reference)):
            for name in _own_names(each) if not isinstance(each, exp.Reference) else ():
                _rename_identifier(name, folded, made)
            target = peek(each, "this")
            is_own = isinstance(each, exp.Reference) and isinstance(target, exp.Schema)
            if is_own and target.this.name.casefold() == self.name.casefold():
                for name in target.expressions:
                    _rename_identifier(name, folded, made)
        if isinstance(column, exp.Identifier):
            put(column, "this", new.name)
        else:
            put(column, "this", made.copy())
        self.sources = {
            new.name.casefold() if name == folded else name: before
            for name, before in self.sources.items()
        }

    def _is_own(self, column: Any, tree: Any) -> bool:
        """Return True if a column of CHECK or of an index is one of the table."""
        if column.table:
            return bool(column.table.casefold() == self.name.casefold())
        return column.find_ancestor(exp.Query) is None

    def _rename(self, action: Any) -> None:
        new, folded = action.this, self.name.casefold()
        _ = new.name
        for each in self.create.find_all(exp.Column):
            if each.table.casefold() == folded:
                put(each, "table", new.this.copy())
        for each in self.create.find_all(exp.Reference):
            target = each.this.this if isinstance(each.this, exp.Schema) else each.this
            if target.name.casefold() == folded:
                put(target, "this", new.this.copy())
        for index in self.indexes.values():
            put(peek(index, "this").args["table"], "this", new.this.copy())
        put(self._target(), "this", new.this.copy())

    def _alter_column(self, action: Any, fail: Fail) -> None:
        column = self._column(action.this, fail)
        _ = action.args.get("exists"), action.args.get("collate")
        default, is_dropped = action.args.get("default"), action.args.get("drop")
        allow_null, kind = action.args.get("allow_null"), action.args.get("dtype")
        if isinstance(column, exp.Identifier):
            made = exp.ColumnDef(this=column.copy())
            self._put([made if part is column else part for part in self.parts])
            column = made
        kept = list(peek(column, "constraints") or ())
        if kind is not None:
            put(column, "kind", kind)
            using = action.args.get("using")
            put(action, "using", None)  # whoever converts the rows reads it
            own = exp.Column(this=column.this.copy())
            self.casts[_name(column).casefold()] = using or exp.Cast(this=own, to=kind.copy())
        elif default is not None or (is_dropped and allow_null is None):
            kept = [c for c in kept if not isinstance(peek(c, "kind"), exp.DefaultColumnConstraint)]
            if default is not None:
                kept.append(exp.ColumnConstraint(kind=exp.DefaultColumnConstraint(this=default)))
        elif allow_null is not None:
            kept = [c for c in kept if not isinstance(peek(c, "kind"), exp.NotNullColumnConstraint)]
            if not allow_null:
                kept.append(exp.ColumnConstraint(kind=exp.NotNullColumnConstraint()))
        else:
            raise fail(action, f"{action.sql()[:40]} is not supported")
        put(column, "constraints", kept)


def usual_names(create: Any, around: Any) -> list[str]:
    """Return the names of CHECK, UNIQUE and REFERENCES, those of columns first."""
    if not isinstance(peek(create, "this"), exp.Schema):
        return []
    found = [
        each
        for each in DefinitionTree(create, around.dialect.name).constraints()
        if not isinstance(each.node, IS_KEY)
    ]
    found.sort(key=lambda each: not isinstance(each.holder, exp.ColumnDef))
    return [each.name for each in found]


def _name(node: Any) -> str:
    """Return the name of a column, or of a part of a key."""
    return str(node.name if isinstance(node, exp.Identifier) else peek(node, "this").name)


def _own_names(node: Any) -> list[Any]:
    """Return the names of the columns that a constraint of a table lists."""
    if isinstance(node, UNIQUE):
        inner = peek(node, "this")
        listed = [] if inner is None else peek(inner, "expressions")
    else:
        listed = peek(node, "expressions")
    return [each.this if isinstance(each, exp.Ordered) else each for each in listed or ()]


def _rename_identifier(node: Any, folded: str, made: Any) -> None:
    """Give a name of a list another name, if it is that of the column."""
    inner = peek(node, "this") if isinstance(node, exp.Column) else node
    if isinstance(inner, exp.Identifier) and inner.name.casefold() == folded:
        put(inner, "this", made.name)
        put(inner, "quoted", peek(made, "quoted"))


def _reads(index: Any, folded: str) -> bool:
    """Return True if an index reads a column."""
    return any(c.name.casefold() == folded for c in index.find_all(exp.Column))
