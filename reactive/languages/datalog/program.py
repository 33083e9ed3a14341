"""Datalog programs: text in, live relations out.

db.datalog(text)  ->  definitions  ->  rules  ->  strata  ->  plans  ->  program["path"]

From a program to plans: one of each relation, stratum after stratum.

rules        a select of a query over the goals, with the columns of the head
relation     distinct of the union of its rules, its facts and its input
stratum      such a union by itself, or a fixpoint of several
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

from optimizer import plan
from optimizer.errors import PlanError, StratificationError
from optimizer.expr import NONE, Attribute, Expr, Operation, Parameter, all_parameters, one_value
from optimizer.plans.nodes.sources import values
from optimizer.plans.properties import bindings, is_set
from optimizer.rewriting.columns import declared_fields, known_shapes
from reactive.api.fixpoint import fixpoint
from reactive.api.internal_interface import engine_of
from reactive.api.relation import AnyRelation, Relation
from reactive.api.table import Table
from reactive.engine.codegen.functions import compiled_of
from reactive.engine.runtime.collector import make_old, pause_collector
from reactive.engine.runtime.large_stack import call_with_any_stack
from reactive.languages.datalog.analysis import (
    Analysis,
    analyse_program,
    check_aggregates,
    dependencies,
)
from reactive.languages.datalog.best_rows import (
    RANKED,
    UNDOMINATED,
    Dominance,
    KeptRows,
    UndominatedRows,
    only_row,
    shared_places,
)
from reactive.languages.datalog.bodies import BodyQuery, match_keys, stuck
from reactive.languages.datalog.choices import choose_by_rounds, chosen_rows_of
from reactive.languages.datalog.clause_rules import computes
from reactive.languages.datalog.definitions import ProgramDefinitions, definitions_of
from reactive.languages.datalog.expressions import (
    Expressions,
    constant_value,
    item,
    lift_body,
    make_call,
)
from reactive.languages.datalog.facts import FactFormat, options_of, path_of
from reactive.languages.datalog.included import read_program
from reactive.languages.datalog.inference import KindedColumn, class_of
from reactive.languages.datalog.joined_columns import JoinedColumn
from reactive.languages.datalog.own_functors import Functions, OwnFunctors
from reactive.languages.datalog.rules import Atom, Directive, Rule, TextTerm, variables, walk
from reactive.languages.datalog.tokens import Token, suggest_name, too_deep, wrong
from reactive.languages.datalog.totals import add_total

MakeTable = Callable[[Any, str], Table[Any]]
"""Makes a table of rows of a class, with a name."""
WatchFile = Callable[[Path, Any, str, Callable[[Path], Iterable[Any]]], Table[Any]]
"""Makes a table of the rows of a file, of a class, with a name, read by a function."""


class Program(Mapping[str, Relation[Any]]):
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
        definitions: ProgramDefinitions,
        relations: Mapping[str, Relation[Any]],
        tables: Mapping[str, Table[Any]],
        folder: Path | None = None,
        transaction: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self._definitions = definitions
        self._transaction = transaction
        self._relations = relations
        self._folder = folder
        self.tables = dict(tables)
        """The tables of the relations that are declared `.input`, by name."""

    def __getitem__(self, name: str) -> Relation[Any]:
        if name not in self._relations:
            known = ", ".join(self._relations)
            raise KeyError(f"no relation {name!r}; {suggest_name(name, self._relations) or known}")
        return self._relations[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._definitions.outputs)

    def __len__(self) -> int:
        return len(self._definitions.outputs)

    def row(self, name: str) -> Any:
        """Return the class of the rows of a relation, which takes a value for each column.

        >>> from reactive import Database
        >>> Database().datalog(".decl edge(x: number, y: number)").row("edge")(1, 2)
        edge(x=1, y=2)
        """
        self[name]
        return class_of(name, self._definitions.relations[name].fields)

    def load(self, folder: str | os.PathLike[str] | None = None) -> None:
        """Replace the rows of the input tables by those of the files of facts, in one commit.

        Files are those that `.input` says: by default `NAME.facts`, with tabs between columns.

        Parameters
        ----------
        folder: the folder of the files; by default that of the program.

        Raises
        ------
        SourceError: a line is no row of its relation; no table has changed.
        OSError: a file cannot be read; no table has changed.
        PlanError: an input is not a table of the program, or a kind of files is not supported.
        """
        found: dict[str, list[Any]] = {}
        for directive in self._directives("input"):
            name, options = directive.name, options_of(directive)
            if name in self.tables:
                path = path_of(name, options, self._folder_of(folder), ".facts")
                found.setdefault(name, []).extend(self._format(name).read(path, options))
        if found:
            tables = [self.tables[name] for name in found]
            with self._transaction():
                for table, rows in zip(tables, found.values(), strict=True):
                    table.replace_all(dict.fromkeys(rows))

    def write(self, folder: str | os.PathLike[str] | None = None) -> None:
        """Write the outputs to files as `.output` says: by default `NAME.csv`, with tabs.

        `IO=stdout` prints rows, and `.printsize` prints their number.

        Parameters
        ----------
        folder: the folder of the files; by default that of the program.

        Cost: evaluates the relations that no view shows.
        """
        for directive in self._directives("output", "printsize"):
            name = directive.name
            with self[name].materialize() as view:
                rows = list(view)
            if directive.word == "printsize":
                print(f"{name}\t{len(rows)}")
                continue
            options = options_of(directive)
            path = path_of(name, options, self._folder_of(folder), ".csv")
            self._format(name).write(path, options, rows)

    def _directives(self, *words: str) -> list[Directive]:
        return [each for each in self._definitions.directives if each.word in words]

    def _folder_of(self, folder: str | os.PathLike[str] | None) -> Path:
        given = self._folder if folder is None else Path(folder)
        return Path() if given is None else given

    def _format(self, name: str) -> FactFormat:
        fields = self._definitions.relations[name].fields
        return FactFormat(name, fields, self._definitions.types, self.row(name))

    def __repr__(self) -> str:
        return f"Program({', '.join(self._definitions.outputs)})"


def program_of(
    engine: Any,
    source: str | os.PathLike[str],
    inputs: Mapping[str, AnyRelation],
    bits: int | None,
    make_table: MakeTable,
    functions: Functions,
    folder: str | os.PathLike[str] | None,
    macros: Mapping[str, str],
    max_rounds: int | None,
    watch: WatchFile | None,
    transaction: Callable[[], AbstractContextManager[Any]],
) -> Program:
    """Return the program of a text; input tables that do not exist are created.

    Raises
    ------
    PlanError: the text is no program; or an input, or `bits`, does not fit.
    """
    if not isinstance(source, str | os.PathLike):
        raise PlanError(f"datalog takes the text of a program, or its path, not {source!r:.60}")
    if bits not in (None, 32, 64):
        raise PlanError(f"bits is 32, 64 or None, not {bits!r:.60}")
    text, found, place = read_program(
        source if isinstance(source, str) else Path(source),
        None if folder is None else Path(folder),
        macros,
    )
    try:
        with pause_collector():  # all that is made stays
            definitions, analysis = call_with_any_stack(lambda: _analysis_of(found, inputs))
            own = OwnFunctors(definitions.types, functions, bits)
            _number_constants(definitions, own)
            place_of = Path() if place is None else place
            reader = _Inputs(definitions, engine, inputs, make_table, watch, place_of)
            given = {name: reader.node(name) for name in definitions.relations}
            nodes = call_with_any_stack(
                lambda: Translation(analysis, engine, given.get, bits, own, max_rounds).nodes
            )
            relations: dict[str, AnyRelation] = {
                name: Relation(engine, node) for name, node in nodes.items()
            }
            make_old()
    except RecursionError:
        raise too_deep(text) from None
    return Program(definitions, relations, reader.tables, place, transaction)


def _analysis_of(found: list[Token], given: Collection[str]) -> tuple[ProgramDefinitions, Analysis]:
    definitions = definitions_of(found, given)
    return definitions, analyse_program(definitions)


def _number_constants(definitions: ProgramDefinitions, own: OwnFunctors) -> None:
    """Give the texts of a program their numbers, in their order, as Soufflé's `ord` does."""
    for clause in definitions.clauses:
        for part in (*clause.heads, *(each for body in clause.bodies for each in body)):
            for term in walk(part):
                if isinstance(term, TextTerm):
                    own.ordinals.ord(term.value)


class _Inputs:
    """The rows that a program begins with."""

    def __init__(
        self,
        definitions: ProgramDefinitions,
        engine: Any,
        given: Mapping[str, AnyRelation],
        make_table: MakeTable,
        watch: WatchFile | None,
        folder: Path,
    ) -> None:
        self._definitions = definitions
        self._engine = engine
        self._given = given
        self._make_table = make_table
        self._watch = watch
        self._folder = folder
        self.tables: dict[str, Table[Any]] = {}
        for name, relation in given.items():
            self._check(name, relation)

    def node(self, name: str) -> plan.Node | None:
        """Return the plan of an input or a given relation; None for any other relation."""
        if name not in self._definitions.inputs and name not in self._given:
            return None
        fields = self._definitions.relations[name].fields
        kind = class_of(name, fields)
        return as_rows(self._relation(name, kind).plan, name, fields, kind)

    def _relation(self, name: str, kind: Any) -> AnyRelation:
        """Return the relation of an input: given, else the table of its name, else a new table."""
        if name in self._given:
            return self._given[name]
        known = (table for table in self._engine.tables.values() if table.name == name)
        found = next(known, None)
        self.tables[name] = self._new_table(name, kind) if found is None else found
        return self.tables[name]

    def _new_table(self, name: str, kind: Any) -> Table[Any]:
        """Return a new table: of the rows of the file of facts if files are watched."""
        if self._watch is None:
            return self._make_table(kind, name)
        directives = self._definitions.directives
        found = next(each for each in directives if (each.word, each.name) == ("input", name))
        options = options_of(found)
        fields = self._definitions.relations[name].fields
        format_ = FactFormat(name, fields, self._definitions.types, kind)
        path = path_of(name, options, self._folder, ".facts")
        return self._watch(
            path, kind, name, lambda file: dict.fromkeys(format_.read(file, options))
        )

    def _check(self, name: str, relation: Any) -> None:
        """Refuse an input that the program does not declare, or of another database."""
        if name not in self._definitions.relations:
            hint = suggest_name(name, self._definitions.relations, "there are")
            raise PlanError(f"inputs: the program has no relation {name!r}\n  {hint}")
        if not isinstance(relation, Relation) or engine_of(relation) is not self._engine:
            raise PlanError(f"inputs: {name!r} is no relation of this database")


Given = Callable[[str], plan.Node | None]


class Translation:
    """The plans of the relations of a program.

    Parameters
    ----------
    engine: that of the database.
    given: the function that returns the input rows of a relation, if there are some, as rows of its
        class.
    bits: the width of its numbers, if they have one.
    own: the callables of its own functors.
    max_rounds: the most rounds of relations that compute values from their own.
    """

    def __init__(
        self,
        analysis: Analysis,
        engine: Any,
        given: Given,
        bits: int | None,
        own: OwnFunctors,
        max_rounds: int | None,
    ) -> None:
        self._analysis = analysis
        self._max_rounds = max_rounds
        self._own = own
        self._engine = engine
        self._given = given
        self._bits = bits
        self._unit = values([()])
        self._columns = analysis.definitions.columns()
        self.nodes: dict[str, plan.Node] = {}
        """The plan of each relation."""
        self._ordered: set[str] = set()
        """The relations whose recursion keeps no row that another dominates."""
        self._translate()

    def node(self, name: str) -> plan.Node:
        """Return the rows of a relation."""
        return self.nodes[name]

    def fields(self, name: str) -> tuple[KindedColumn, ...]:
        """Return the columns of a relation."""
        return self._columns[name]

    def unit(self) -> plan.Node:
        """Return the plan of one row without values."""
        return self._unit

    def row_class(self, name: str) -> Any:
        """Return the class of the rows of a relation."""
        return class_of(name, self._columns[name])

    def _translate(self) -> None:
        """Make the plans of all relations, stratum after stratum."""
        rules = self._analysis.rules
        for group in self._analysis.strata:
            members = frozenset(group)
            read = (d.name for n in group for r in rules[n] for d in dependencies(r.goals))
            is_recursive = any(name in members for name in read)
            if any(self._choices(name) for name in group):
                self._chosen(group, rules, is_recursive=is_recursive)
            elif is_recursive or members & self._analysis.kept.keys():
                self._recursive(group, rules)
            else:
                self._plain(group[0], rules[group[0]])
            whole = {name: self._undominated(name) for name in group}
            self.nodes |= whole

    def _expressions(self, rule: Rule) -> Expressions:
        kinds, types = self._analysis.kinds[id(rule)], self._analysis.definitions.types
        return Expressions(kinds, types, self._bits, self._own)

    def _fact(self, rule: Rule) -> Any:
        """Return the row of a rule without goals."""
        expressions = self._expressions(rule)
        values = [constant_value(expressions.of(each, {})) for each in rule.head.arguments]
        return self.row_class(rule.head.name)(*values)

    def _plain(self, name: str, rules: Sequence[Rule]) -> None:
        """Make the plan of a relation that does not depend on itself."""
        made = self._union(name, rules)
        self.nodes[name] = made if is_set(made) else plan.Distinct(made)

    def _recursive(self, group: Sequence[str], rules: Mapping[str, Sequence[Rule]]) -> None:
        """Make the plans of a stratum of relations that depend on each other."""
        dominated = [name for name in group if name in self._analysis.dominated]
        orders = {name: order for name in dominated if (order := self._dominance(name)) is not None}

        def step(*relations: AnyRelation) -> list[AnyRelation]:
            for name, relation in zip(group, relations, strict=False):
                self.nodes[name] = relation.plan
            unions = {name: self._union(name, rules[name]) for name in group}
            keyed = dict(zip(orders, relations[len(group) :], strict=True))
            found = [
                self._members(name, keyed[name].plan) if name in keyed else node
                for name, node in unions.items()
            ]
            found += [self._keyed(name, unions[name]) for name in orders]
            return [Relation(self._engine, node) for node in found]

        kept = [self._analysis.kept.get(name) for name in group]
        keep = [*map(self._keep, kept), *(order.lattice() for order in orders.values())]
        by = [None if each is None else each.by() for each in kept] + [itemgetter(0)] * len(orders)
        every = [_without_rank(rule) for name in group for rule in rules[name]]
        most = self._max_rounds if any(map(computes, every)) else None
        if most is not None and orders:
            most *= 2  # rows enter a set in one round, and the relation in the next
        try:
            made = fixpoint(
                step,
                names=[*group, *(f"{name}{UNDOMINATED}" for name in orders)],
                max_rounds=most,
                keep=keep if any(keep) else None,
                by=by if any(keep) else None,
            )
        except StratificationError as error:
            check_aggregates(group, rules, error)
            raise
        for name, relation in zip(group, made, strict=False):
            self.nodes[name] = relation.plan
        self._ordered |= orders.keys()

    def _dominance(self, name: str) -> Dominance | None:
        """Return the order of the rows of a relation; None if it has none, or other rows matter."""
        tests = []
        kind = self.row_class(name)
        pairs = plan.Product(values((), (kind,)), values((), (kind,)))
        for rule in self._analysis.dominated[name]:
            pair = _first_atoms(rule)
            others = [goal for goal in rule.goals if not any(goal is atom for atom in pair)]
            body = BodyQuery(self, self._expressions(rule), add_total)
            found = body.tests_of_pair(pair, others, pairs)
            if found is None:
                return None
            tests.append(_all_of([*map(compiled_of, found)]))
        return Dominance(tests) if tests else None

    def _keyed(self, name: str, node: plan.Node) -> plan.Node:
        """Return the rows of a query, each as the only one of its key."""
        places = shared_places(map(_first_atoms, self._analysis.dominated[name]))
        key = one_value([item(ROW, place) for place in places]) if places else NONE
        row = make_call(UndominatedRows, [key, make_call(only_row, [ROW])])
        return plan.Select(node, lift_body(row, ["row"]))

    def _members(self, name: str, node: plan.Node) -> plan.Node:
        """Return the rows of the sets of all keys."""
        every = plan.SelectMany(node, lift_body(Attribute(ROW, "rows"), ["keyed"]))
        columns = [Attribute(ROW, field.attribute) for field in self._columns[name]]
        return plan.Select(every, lift_body(make_call(self.row_class(name), columns), ["row"]))

    def _keep(self, kept: KeptRows | JoinedColumn | None) -> Any:
        """Return what says which rows of a key are kept, or how they are joined."""
        if not isinstance(kept, JoinedColumn):
            return None if kept is None else kept.keep()
        bottom = None
        if kept.bottom:
            ((bottom,),) = [self._fact(fact) for fact in self._analysis.facts[kept.bottom]]
        return kept.lattice(self._own.function(kept.functor), bottom)

    def _choices(self, name: str) -> tuple[tuple[int, ...], ...]:
        """Return the places of each of the choice domains that are chosen round by round."""
        return self._analysis.definitions.relations[name].choices

    def _chosen(
        self, group: Sequence[str], rules: Mapping[str, Sequence[Rule]], *, is_recursive: bool
    ) -> None:
        """Make the plans of a stratum whose choices are made round by round."""
        if members := [name for name in group if self._analysis.kept.get(name) is not None]:
            at = self._analysis.definitions.relations[members[0]].at
            what = f"relation {members[0]!r} depends on a choice that depends on it"
            raise wrong(at, what, "keep the best rows of another relation, that reads this one")

        def unions(nodes: Sequence[plan.Node]) -> list[plan.Node]:
            self.nodes |= dict(zip(group, nodes, strict=bool(nodes)))
            return [self._union(name, rules[name]) for name in group]

        choices = [self._choices(name) for name in group]
        if is_recursive:
            kinds = [self.row_class(name) for name in group]
            made = choose_by_rounds(self._engine, unions, kinds, choices, self._max_rounds)
        else:
            made = [chosen_rows_of(self._engine, unions(())[0], choices[0])]
        self.nodes |= dict(zip(group, made, strict=True))

    def _undominated(self, name: str) -> plan.Node:
        """Return the rows of a relation that no other row dominates."""
        node = self.nodes[name]
        for rule in () if name in self._ordered else self._analysis.dominated.get(name, ()):
            body = BodyQuery(self, self._expressions(rule), add_total)
            pair = _first_atoms(rule)
            left = body.hold(rule.goals, variables(*pair))
            if left:
                raise stuck(left)
            less, greater = (
                make_call(self.row_class(name), body.rows_of(each.arguments)) for each in pair
            )
            body.where(Operation("!=", (less, greater)))
            worse = plan.Distinct(plan.Select(body.node, lift_body(less, body.names)))
            node = plan.AntiJoin(node, worse, match_keys([(ROW, ROW)], ["row"], "worse"))
        return node

    def _union(self, name: str, rules: Sequence[Rule]) -> plan.Node:
        """Return the plan of a relation: given rows, facts, and the rows of its rules."""
        given = self._given(name)
        parts = [] if given is None else [given]
        facts = [self._fact(rule) for rule in self._analysis.facts[name]]
        if facts:
            parts.append(values(dict.fromkeys(facts), (self.row_class(name),)))
        parts += map(self._query, rules)
        if not parts:
            return plan.Empty(1)
        made = parts[0]
        for part in parts[1:]:
            made = plan.UnionAll(made, part)
        assert bindings(made) == 1
        return made

    def _query(self, rule: Rule) -> plan.Node:
        """Return the plan of the rows that a rule derives; raises if a variable gets no value."""
        body = BodyQuery(self, self._expressions(rule), add_total)
        left = body.hold(rule.goals, variables(rule.head))
        if left:
            raise stuck(left)
        node = body.node
        made = make_call(self.row_class(rule.head.name), body.rows_of(rule.head.arguments))
        return plan.Select(node, lift_body(made, body.names))


def _all_of(tests: Sequence[Callable[..., object]]) -> Callable[[Any, Any], bool]:
    """Return the test that a pair of rows passes all tests, in their order."""
    return lambda row, other: all(test(row, other) for test in tests)


def _first_atoms(rule: Rule) -> tuple[Atom, Atom]:
    """Return the atoms of the dominated row and of the row that dominates it."""
    less, greater = [goal for goal in rule.goals if isinstance(goal, Atom)][:2]
    return less, greater


def _without_rank(rule: Rule) -> Rule:
    """Return a rule without the rank of its head, which does not go on for ever by itself."""
    if not rule.head.name.endswith(RANKED):
        return rule
    return replace(rule, head=replace(rule.head, arguments=rule.head.arguments[:-1]))


# Inputs of a program from the database: rows of any class, converted to those of a relation.

ROW = Parameter(0)


def as_rows(node: plan.Node, name: str, fields: Sequence[KindedColumn], kind: Any) -> plan.Node:
    """Return the rows of a query, each once, as rows of a class with some columns.

    Several bindings are the columns; so are the fields of a row by their names, the items of a
    plain tuple by their places, and a value that is neither, of a relation with one column.
    """
    of = known_shapes(node).certain
    if of != (kind,):
        values = all_parameters(len(of)) if len(of) > 1 else _values(of[0], name, fields)
        if len(values) != len(fields):
            raise PlanError(
                f"relation {name!r} has {len(fields)} columns, and its rows {len(values)} bindings"
            )
        node = plan.Select(node, lift_body(make_call(kind, values), _row_names(len(of))))
    return node if is_set(node) else plan.Distinct(node)


def _values(shape: Any, name: str, fields: Sequence[KindedColumn]) -> Sequence[Expr]:
    """Return the values of the columns of a row; refuses rows that lack or hide them."""
    names = declared_fields(shape)
    if names:
        missing = [each.name for each in fields if each.name not in names]
        if missing:
            raise PlanError(
                f"relation {name!r} has columns that {shape.__name__} lacks: {', '.join(missing)}\n"
                f"  it has {', '.join(names)}"
            )
        return [Attribute(ROW, each.name) for each in fields]
    if shape is tuple or (isinstance(shape, tuple) and len(shape) == len(fields)):
        return [item(ROW, place) for place in range(len(fields))]
    if len(fields) == 1 and shape is not None:
        return [ROW]
    raise PlanError(
        f"relation {name!r} has columns, and nothing is known of the rows that it is to have\n"
        "  declare the class of the table's rows, or select() such rows"
    )


def _row_names(count: int) -> list[str]:
    return [f"row{place or ''}" for place in range(count)]
