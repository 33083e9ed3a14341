"""MERGE: the rows of a source change, remove or add rows of a table, in one transaction.

    merge into stock t using deliveries s on t.id = s.id
    when matched and t.n + s.n = 0 then delete
    when matched then update set n = t.n + s.n
    when not matched then insert (id, n) values (s.id, s.n)

Each clause is a query of the rows for which it is the first that holds, of the tables as they are
before: an UPDATE or DELETE of the pairs that ON gives, an INSERT of the rows without a partner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sqlglot import exp

from optimizer import plan
from optimizer.expr import Parameter, tuple_of
from reactive.errors import TableError
from reactive.languages.sql.queries.grouping import freed, misreadings_told
from reactive.languages.sql.queries.kinds import with_names
from reactive.languages.sql.statements import changes
from reactive.languages.sql.statements.conflicts import is_default, updated_values
from reactive.languages.sql.statements.target import ChangedTable, Pairs, rows_with, run_plan
from reactive.languages.sql.terms.errors import take_all
from reactive.languages.sql.terms.scope import Scope


def merge(tree: Any, around: Scope, db: Any) -> int:
    """Run a MERGE, and return the number of rows that it changed, removed or added."""
    if around.dialect.name == "sqlite":
        raise around.error(tree, "sqlite has no MERGE", "insert ... on conflict do update")
    if tree.args.get("returning") and around.dialect.name == "postgres":
        raise around.error(tree, "RETURNING of MERGE is not supported", "ask for the rows after it")
    outer = around
    found = _Merge(tree, with_names(tree, around))
    with misreadings_told(tree, around):
        returning = _read_returning(tree, found.target, outer)
        removed, updated, added = found.read()
    take_all(tree)
    around.refuse_unread(tree)
    _check_once(found.target, [*((old, None) for old in removed), *updated])
    added = [*added]
    returning({"DELETE": removed, "UPDATE": [new for _, new in updated], "INSERT": added})
    table, numbers = found.target.table, found.target.numbers
    with db.transaction():
        table.remove_all([*removed, *(old for old, _ in updated)])
        table.add_all([*(new for _, new in updated), *added])
    numbers.note(inserted=False)
    return len(removed) + len(updated) + len(added)


def _read_returning(
    tree: Any, target: ChangedTable, around: Scope
) -> Callable[[Mapping[str, Sequence[Any]]], None]:
    """Return the function for the RETURNING of rows, by what MERGE does with them.

    `merge_action` is the name of that.
    """
    clause = tree.args.get("returning")
    if not clause:
        return lambda rows: None
    by_action = {
        action: changes.read_returning(
            exp.Merge(returning=_with_action(clause, action)), target, around
        )
        for action in ("DELETE", "UPDATE", "INSERT")
    }

    def put_rows(rows: Mapping[str, Sequence[Any]]) -> None:
        returned, every = around.environment.returned, list[Any]()
        for action, read in by_action.items():
            read(rows[action])
            every += returned[1]
        returned[1] = every

    return put_rows


def _with_action(clause: Any, action: str) -> Any:
    """Return a copy of RETURNING with the name of an action in the place of `merge_action`."""
    made = clause.copy()
    for node in list(made.find_all(exp.Column)):
        if node.name.lower() == "merge_action" and not node.text("table"):
            text: Any = exp.Literal.string(action)
            is_item = node.parent is made
            node.replace(exp.alias_(text, "merge_action", quoted=True) if is_item else text)
    return made


def _check_once(target: ChangedTable, changed: Pairs) -> None:
    """Raise if several rows of the source change or remove one row."""
    for row, count in Counter(old for old, _ in changed).items():
        if count > target.table.count(row):
            raise TableError(
                f"MERGE changes {row!r:.99} of table {target.name!r} twice: several rows of the"
                " source match it\n  group the source by what ON compares"
            )


def _in_order(tests: list[Any]) -> Any:
    """Return the test that all tests hold, of which one is asked only if those before hold."""
    *before, last = tests
    for each in reversed(before):
        last = exp.Case(ifs=[exp.If(this=each, true=last)], default=exp.false())
    return last


class _Merge:
    """A MERGE, whose clauses are read one by one."""

    def __init__(self, tree: Any, around: Scope) -> None:
        self.target = ChangedTable(tree.this, around)
        self._tree, self._around = tree, around
        self._source = tree.args["using"]
        self._on: Any = tree.args.get("on") or None
        names = tree.args.get("using_cond") or ()
        if self._on is None:
            source = self._source.alias_or_name
            self._on = exp.and_(
                *(
                    exp.EQ(
                        this=exp.column(name.copy(), table=self.target.alias),
                        expression=exp.column(name.copy(), table=source),
                    )
                    for name in names
                )
            )

    def read(self) -> tuple[list[Any], Pairs, list[Any]]:
        """Return the rows that are removed, those changed with the new ones, and those added."""
        removed, updated, added = list[Any](), list[tuple[Any, Any]](), list[Any]()
        prior: dict[tuple[bool, bool], list[Any]] = {}
        for when in self._tree.args["whens"].expressions:
            is_matched, of_target = bool(when.args.get("matched")), bool(when.args.get("source"))
            before = prior.setdefault((is_matched, of_target), [])
            condition = when.args.get("condition")
            if any(isinstance(each, exp.Boolean) for each in before[-1:]):
                problem = "this WHEN is never reached: the one before has no condition"
                raise self._around.error(when, problem)
            tests = [self._not_true(each) for each in before]
            tests += [condition.copy()] if condition is not None else []
            before.append(exp.true() if condition is None else condition)
            then = when.args["then"]
            word = then.name.upper() if isinstance(then, exp.Var) else then.key.upper()
            if word == "DO NOTHING":
                continue
            if not is_matched and not of_target:
                if word != "INSERT":
                    raise self._around.error(when, f"WHEN NOT MATCHED cannot {word}")
                added += self._added(then, tests)
                continue
            if word not in ("UPDATE", "DELETE"):
                raise self._around.error(when, f"WHEN MATCHED cannot {word}")
            found = self._changed(then, tests, word, of_target=not is_matched)
            if word == "DELETE":
                removed += [old for old, _ in found]
            else:
                updated += [(old, self.target.make_row(values)) for old, values in found]
        return removed, updated, added

    def _not_true(self, condition: Any) -> Any:
        """Return the test that an earlier clause does not apply."""
        return exp.not_(exp.func("coalesce", exp.paren(condition.copy()), exp.false()))

    def _partner(self, of: Any) -> Any:
        """Return the test that a row has a partner in the source, or in the target."""
        query = exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=of))
        return exp.Exists(this=query.where(self._on.copy()))

    def _own(self) -> Any:
        """Return the target as a table of FROM."""
        alias = exp.TableAlias(this=exp.to_identifier(self.target.alias, quoted=True))
        return exp.Table(this=exp.to_identifier(self.target.name, quoted=True), alias=alias)

    def _changed(self, then: Any, tests: list[Any], word: str, *, of_target: bool) -> Pairs:
        """Return the rows of UPDATE with their new values, or those of DELETE."""
        rows = self.target.rows()
        if of_target:
            test = _in_order([exp.not_(self._partner(self._source.copy())), *tests])
        else:
            rows = rows_with(rows, [self._source.copy()], self._around)
            guarded = [_in_order([self._on.copy(), *tests])] if tests else []
            test = exp.and_(self._on.copy(), *guarded)
        scope = rows.scope(self._around)
        made: Any = tuple_of()
        if word == "UPDATE":
            if not then.expressions:
                raise self._around.error(then, "UPDATE of MERGE needs SET", "update set a = s.a")
            made = updated_values(then.expressions, self.target, scope)
        is_wanted = scope.function(scope.true(test))
        old = scope.function(tuple_of(Parameter(0), made))
        node = plan.Select(plan.Where(rows.node, is_wanted), old)
        found = run_plan(plan.Select(freed(node.input), node.function), self._tree, scope)
        return [(row[0], row[1]) for row in found]

    def _added(self, then: Any, tests: list[Any]) -> Iterator[Any]:
        """Return the rows that INSERT makes of the rows of the source without a partner."""
        columns, cells = then.this, then.expression
        if not isinstance(cells, exp.Tuple):
            raise self._around.error(
                then, "INSERT of MERGE needs VALUES", "insert (a, b) values (s.a, s.b)"
            )
        names = [each.name for each in columns.expressions] if columns else []
        names = names or [*self.target.schema.names[: len(cells.expressions)]]
        given = [
            (name, cell)
            for name, cell in zip(names, cells.expressions, strict=False)
            if not is_default(cell)
        ]
        if len(names) != len(cells.expressions):
            raise self._around.error(
                then, f"{len(cells.expressions)} values are inserted into {len(names)} columns"
            )
        if not given:
            raise self._around.error(then, "INSERT of MERGE needs a value that is not DEFAULT")
        values = [cell.copy() for _, cell in given]
        tests = [exp.not_(self._partner(self._own())), *tests]
        query = exp.Select(expressions=values, from_=exp.From(this=self._source.copy()))
        query = query.where(_in_order(tests))
        named = [exp.to_identifier(name, quoted=True) for name, _ in given]
        tree = exp.Insert(
            this=exp.Schema(this=self._own(), expressions=named),
            expression=query,
        )
        places = changes.inserted_places(tree, self.target, self._around)
        yield from changes.rows_to_insert(tree, self.target, places, self._around)
