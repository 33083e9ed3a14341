"""Statements that are run again: their plans are kept, and only their values differ.

    update t set a = :a where id = :id      functions of a row and of the values of :a and :id
    insert into t values (1, 'x')           a function of the values 1 and 'x' to a row

A statement is kept when its text is run the second time; texts that differ in literals are one. Its
translation notes the values that it looks at, such as one that is cast to another type: it is then
kept for these values only.

An INSERT of VALUES, and an UPDATE or DELETE of one table without a query inside, are kept. If
computing the changes raises, nothing has changed yet: the statement is run as if it was not kept,
which raises the error with its place in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import count
from typing import Any, TypeAlias

from sqlglot import exp

from optimizer.expr import (
    TRUE,
    Expr,
    Lifted,
    Parameter,
    Slot,
    SlotValue,
    constant,
    has_subquery,
    parts,
    row_names,
    transform,
    tuple_of,
    walk,
)
from reactive.engine.codegen.functions import callable_of
from reactive.languages.sql.expressions.casts import convert_for_column
from reactive.languages.sql.statements import changes
from reactive.languages.sql.statements.conflicts import is_default, updated_values
from reactive.languages.sql.statements.target import ChangedTable, equated_key
from reactive.languages.sql.terms.scope import OpenValues, Scope
from reactive.languages.sql.terms.values import as_optional

Write: TypeAlias = Callable[[Any], int]
"""Writes the changes of a statement to a database, and returns their number."""
Plan: TypeAlias = Callable[..., Write]
"""Computes the changes of a statement from its open values."""
Read: TypeAlias = Callable[..., tuple[exp.Expr, Scope]]
"""Reads a text and its parameters."""
LITERAL = re.compile(r"'([^']*)'|(?<![\w.:'])(\d{1,9})(?![\w.'])")
"""A text without quotes inside, or an integer of the same type in all dialects."""
NOT_OPENED = re.compile(r"--|/\*|[\"`$\[\\]")
"""Remarks, quoted names and the like: literals of a text with one are not replaced."""
OPEN = frozenset({int, float, str, bytes, bool, date, datetime})
"""Classes of parameters whose values may be replaced."""
PARENTS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
"""Parents of literals that may be replaced, beside the rows of VALUES."""
PARTS_OF_INSERT = (
    *("returning", "overwrite", "where", "by_name", "default", "conflict", "alternative"),
)
PARTS_OF_CHANGE = ("returning", "order", "limit", "from_", "using")
"""Parts of statements that are not kept."""
MOST = 256
"""Statements that are kept for a database, and the values that one is kept for."""
LONGEST = 2_000
"""Letters of such a statement."""
MOST_VALUES = 60
"""Open values of such a statement."""
MOST_TRIES = 4
"""Translations of one statement for values that it looks at, before these are given up."""


@dataclass(slots=True)
class _Kept:
    """A statement, and its plans by the values that they hold for: places, then values."""

    plans: dict[tuple[int, ...], dict[tuple[str, ...], Plan]] = field(default_factory=dict)
    tries: int = 0

    def find(self, values: Sequence[Any]) -> Plan | None:
        """Return the plan for some values, or None."""
        for places, plans in self.plans.items():
            found = plans.get(tuple([repr(values[place]) for place in places]) if places else ())
            if found is not None:
                return found
        return None


class KeptStatements:
    """The statements of a database that were run before, while its tables are the same."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._tables: Any = None
        self._kept: dict[Any, _Kept] = {}
        self._shapes: dict[str, tuple[str, list[Any]]] = {}
        """The shapes of texts, and the values of their literals."""

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, engine: Any, text: str, parameters: Mapping[str, Any]) -> Write | None:
        """Return the function that writes the changes of a statement, by its form.

        Return None if the statement has to be translated: its form is new, and noted for the next
        one, or it cannot be reused, or an exception was raised, which the statement raises again.
        """
        key, values = self._shape_of(text, parameters)
        if key is None:
            return None
        tables = (len(engine.tables), next(reversed(engine.tables), None))
        if tables != self._tables:
            self._tables = tables
            self._kept.clear()
        kept = self._kept.get(key)
        if kept is None:
            if len(self._kept) >= MOST:
                self._kept.pop(next(iter(self._kept)), None)
            self._kept[key] = _Kept()
            return None
        try:
            made = kept.find(values) or self._translate(kept, text, parameters, values)
            return None if made is None else made(*values)
        except Exception:  # raised again by the statement itself
            return None

    def _shape_of(self, text: str, parameters: Mapping[str, Any]) -> tuple[Any, list[Any]]:
        """Return what statements with equal plans have in common, and the values of this one.

        The first is None for a statement that is not kept.
        """
        if len(text) > LONGEST:
            return None, []
        shape, literals = self._shapes.get(text) or self._read_shape(text)
        values, kinds = [*literals], []
        for name, value in parameters.items():
            kind = type(value)
            if kind in OPEN:
                if kind is datetime and (value.tzinfo is not None or value.fold):
                    return None, []
                values.append(value)
            elif value is not None:
                return None, []
            kinds.append((name, kind))
        return (None if len(values) > MOST_VALUES else (shape, *kinds)), values

    def _read_shape(self, text: str) -> tuple[str, list[Any]]:
        """Return a text without its literals, and their values; note them for the next time."""
        literals = _literals_of(text)
        found = LITERAL.sub(_blank, text) if literals else text, literals
        if len(self._shapes) >= MOST:
            self._shapes.pop(next(iter(self._shapes)), None)
        self._shapes[text] = found
        return found

    def _translate(
        self, kept: _Kept, text: str, parameters: Mapping[str, Any], values: Sequence[Any]
    ) -> Plan | None:
        """Return the plan of a statement, and keep it; None if it was tried too often."""
        if kept.tries >= MOST_TRIES:
            return None
        kept.tries += 1
        opened = OpenValues()
        tree, around = self._read(text, parameters, opened)
        if _is_other(tree):
            kept.tries = MOST_TRIES
            return None
        slots = [SlotValue(value) for value in values]
        keys = [*self._nodes_of_literals(tree, text, parameters), *_open_names(parameters)]
        opened.held |= {key: slot for key, slot in zip(keys, slots, strict=True) if key is not None}
        made = _plan_of(tree, around, slots)
        around.refuse_unread(tree)
        is_fixed = [
            slot.is_asked or key not in opened.found for key, slot in zip(keys, slots, strict=True)
        ]
        places = tuple([place for place, fixed in enumerate(is_fixed) if fixed])
        plans = kept.plans.setdefault(places, {})
        plans[tuple([repr(values[place]) for place in places])] = made
        return made

    def _nodes_of_literals(
        self, tree: exp.Expr, text: str, parameters: Mapping[str, Any]
    ) -> list[int | None]:
        """Return the identities of the nodes of the literals of a text; None for one without.

        A second text, whose literals differ from one another, tells which node is of which.
        """
        literals = _literals_of(text)
        if not literals:
            return []
        other, numbers = _with_marks(text)
        twin, _ = self._read(other, parameters)
        places = {mark: place for place, mark in enumerate(numbers)}
        found: list[int | None] = [None] * len(literals)
        nodes, twins = (list(each.find_all(exp.Literal)) for each in (tree, twin))
        if len(nodes) != len(twins):
            return found
        for node, mark in zip(nodes, twins, strict=True):
            place = places.get(mark.this)
            if place is None or not _is_replaceable(node):
                continue
            value = str(node.this) if node.is_string else int(node.this)
            if value == literals[place] and type(value) is type(literals[place]):
                found[place] = id(node)
        return found


def _blank(found: re.Match[str]) -> str:
    """Return what stands for a literal in the shape of a text; an empty text for itself."""
    return "?" if found[2] else "'?'" if found[1] else found[0]


def _literals_of(text: str) -> list[Any]:
    """Return the values of the literals that may be replaced, in their order."""
    if NOT_OPENED.search(text):
        return []
    found = LITERAL.findall(text)
    return [int(digits) if digits else letters for letters, digits in found if digits or letters]


def _with_marks(text: str) -> tuple[str, list[str]]:
    """Return a text with different literals of the same classes, and these."""
    numbers, marks = count(900_000_001), []

    def mark(found: re.Match[str]) -> str:
        if not found[1] and not found[2]:
            return found[0]
        marks.append(str(next(numbers)))
        return f"'{marks[-1]}'" if found[2] is None else marks[-1]

    return LITERAL.sub(mark, text), marks


def _is_replaceable(node: exp.Expr) -> bool:
    """Return True for a literal that is compared, assigned or inserted itself."""
    parent = node.parent
    return isinstance(parent, PARENTS) or (
        isinstance(parent, exp.Tuple) and isinstance(parent.parent, exp.Values)
    )


def _open_names(parameters: Mapping[str, Any]) -> list[str]:
    return [name for name, value in parameters.items() if value is not None]


def _is_other(tree: Any) -> bool:
    """Return True for a statement of other kinds or with other parts than those that are kept."""
    if tree.args.get("with_") or tree.find(exp.Query) is not None:
        return True
    if isinstance(tree, exp.Insert):
        has_parts = any(map(tree.args.get, PARTS_OF_INSERT))
        return has_parts or not isinstance(tree.expression, exp.Values)
    has_parts = any(map(tree.args.get, PARTS_OF_CHANGE))
    return has_parts or not isinstance(tree, exp.Update | exp.Delete)


def _plan_of(tree: Any, around: Scope, slots: list[SlotValue]) -> Plan:
    """Return the plan of a statement whose open values are slots."""
    target = ChangedTable(tree.this, around)
    if isinstance(tree, exp.Insert):
        return _plan_of_insert(tree, target, around, slots)
    scope, where = target.rows().scope(around), tree.args.get("where")
    made: Expr = tuple_of()
    if isinstance(tree, exp.Update):
        made = updated_values(tree.expressions, target, target.rows().scope(around))
    test = TRUE if where is None else scope.true(where.this)
    if has_subquery(test) or has_subquery(made):
        raise ValueError("a query is not kept")
    return _plan_of_change(tree, target, test, made, slots)


def _plan_of_change(
    tree: Any, target: ChangedTable, test: Expr, made: Expr, slots: list[SlotValue]
) -> Plan:
    """Return the plan of an UPDATE or DELETE of the rows that a test selects."""
    is_wanted, make = (_function_of(each, 1, slots) for each in (test, made))
    key = equated_key(target, test)
    find = None if key is None else _function_of(key, 0, slots)
    calls = [*_calls_of_slots(test), *_calls_of_slots(made)]
    check = _function_of(tuple_of(*calls), 0, slots) if calls else None
    table, is_update = target.table, isinstance(tree, exp.Update)

    def plan(*values: Any) -> Write:
        if check is not None:
            check(*values)
        numbers = target.row_numbers()
        if find is None:
            rows = list(table)
        else:
            row = table.get(find(*values))
            rows = [] if row is None else [row]
        wanted = [row for row in rows if is_wanted(row, *values)]
        if not is_update:
            return lambda db: changes.write_deleted(target, numbers, wanted, db)
        pairs = [(row, target.make_row(make(row, *values))) for row in wanted]
        return lambda db: changes.write_updated(target, numbers, pairs, db)

    return plan


def _plan_of_insert(tree: Any, target: ChangedTable, around: Scope, slots: list[SlotValue]) -> Plan:
    """Return the plan of an INSERT of VALUES."""
    places = changes.inserted_places(tree, target, around)
    defaults = changes.defaults_of(target)
    rows = []
    for row in tree.expression.expressions:
        cells = row.expressions if isinstance(row, exp.Tuple) else [row]
        changes.check_width(len(cells), places, row, around)
        values: list[Expr] = [constant(value) for value in defaults]
        for place, cell in zip(places, cells, strict=True):
            column = target.schema.columns[place]
            if is_default(cell):
                values[place] = constant(target.defaults.get(column.name))
            else:
                made = convert_for_column(around.value(cell), column.type, around)
                values[place] = as_optional(made)
        rows.append(tuple_of(*values))
    make = _function_of(tuple_of(*rows), 0, slots)

    def plan(*values: Any) -> Write:
        numbers = target.row_numbers()
        found = [target.make_row(numbers.number_row(row)) for row in make(*values)]
        return lambda db: changes.write_inserted(target, numbers, found, db)

    return plan


def _calls_of_slots(expr: Expr) -> list[Expr]:
    """Return the parts of an expression that call functions of open values only.

    A constant that is no value of a type is an error of the statement, also without rows.
    """
    every = walk(expr)
    if not any(isinstance(part, Parameter) for part in every):
        is_of_slots = any(isinstance(part, Slot) for part in every)
        return [expr] if is_of_slots and len(every) > 1 else []
    return [call for part in parts(expr) for call in _calls_of_slots(part)]


def _function_of(expr: Expr, bindings: int, slots: list[SlotValue]) -> Callable[..., Any]:
    """Return a function of the bindings of an expression, and of the values of the slots."""
    places = {id(slot): bindings + place for place, slot in enumerate(slots)}
    body = transform(expr, lambda e: Parameter(places[id(e.held)]) if isinstance(e, Slot) else e)
    size = bindings + len(slots)
    return callable_of(Lifted(body, row_names(size), (), size))
