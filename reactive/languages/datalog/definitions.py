"""Definitions of a program: types, relations and clauses, with components written out.

Write out components: their statements again for each `.init`, with names of their own.

    .comp Graph<T> { .decl edge(x: T, y: T) }        .decl g.edge(x: number, y: number)
    .init g = Graph<number>                     ->

What a component does not declare itself is that of the text around it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from optimizer.record import record
from reactive.languages.datalog import rules
from reactive.languages.datalog.best_rows import KEEPING, RANKED, KeptRows, chosen_rows, with_ranks
from reactive.languages.datalog.equivalences import DeclaredRelation, with_equivalences
from reactive.languages.datalog.inference import KindedColumn, ProgramTypes
from reactive.languages.datalog.joined_columns import (
    JoinedColumn,
    Lattices,
    joined_column,
    lattices_of,
    with_bottoms,
)
from reactive.languages.datalog.parser import parse
from reactive.languages.datalog.tokens import Span, Token, suggest_name, wrong

_Naming = Callable[[str], str]
MOST = 100
"""Components inside each other."""


def without_components(statements: Sequence[rules.Statement]) -> list[rules.Statement]:
    """Return the statements of a program with each component written out.

    >>> from reactive.languages.datalog.parser import parse
    >>> made = without_components(parse(".comp C { .decl a() .output a } .init one = C"))
    >>> [statement.name for statement in made]
    ['one.a', 'one.a']
    """
    found: list[rules.Statement] = []
    _write_out(statements, _Scope(""), found)
    return found


@dataclass(slots=True)
class _Scope:
    """Meanings of names in the statements of a component, or of the program.

    A relation, a type, an instance and a component may have the same name.
    """

    prefix: str
    parent: _Scope | None = None
    depth: int = 0
    relations: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
    instances: set[str] = field(default_factory=set)
    components: dict[str, tuple[rules.Component, _Scope]] = field(default_factory=dict)

    def relation(self, name: str) -> str:
        """Return a relation as it is called in the whole program."""
        return self._full(name, lambda scope: scope.relations)

    def type(self, name: str) -> str:
        """Return a type as it is called in the whole program."""
        return self._full(name, lambda scope: scope.types)

    def _full(self, name: str, own: Callable[[_Scope], set[str]]) -> str:
        """Return a name with the prefix of the scope that declares it; unchanged if none does.

        `own` returns the declared names of a scope; of a dotted name, the instance counts.
        """
        first, dot, _ = name.partition(".")
        scope = self
        while first not in (scope.instances if dot else own(scope)):
            if scope.parent is None:
                return name
            scope = scope.parent
        return scope.prefix + name

    def finds(self, name: str) -> tuple[rules.Component, _Scope] | None:
        """Return a component, and the scope where it is written; None if none has the name here."""
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.components:
                return scope.components[name]
            scope = scope.parent
        return None

    def component(self, use: rules.ComponentUse) -> tuple[rules.Component, _Scope]:
        """Return a component, and the scope where it is written; raises if none has the name."""
        found = self.finds(use.name)
        if found is not None:
            return found
        scope: _Scope | None = self
        known: list[str] = []
        while scope is not None:
            known += scope.components
            scope = scope.parent
        raise wrong(use.at, f"there is no component {use.name!r}", suggest_name(use.name, known))


def _write_out(
    statements: Sequence[rules.Statement], scope: _Scope, found: list[rules.Statement]
) -> None:
    """Append the statements to `found`, with scoped names; components only for each `.init`."""
    for statement in statements:
        if isinstance(statement, rules.Declaration):
            scope.relations.add(statement.name)
        elif isinstance(statement, rules.TypeDefinition):
            scope.types.add(statement.name)
        elif isinstance(statement, rules.Init):
            scope.instances.add(statement.name)
        elif isinstance(statement, rules.Component):
            scope.components[statement.name] = statement, scope
    for statement in statements:
        if isinstance(statement, rules.Init):
            _instantiate(statement, scope, found)
        elif not isinstance(statement, rules.Component):
            found.append(_in_scope(statement, scope))


def _instantiate(init: rules.Init, scope: _Scope, found: list[rules.Statement]) -> None:
    """Append the statements of a component to `found`, under the name of its instance.

    Raises if the component contains itself.
    """
    if scope.depth >= MOST:
        raise wrong(init.at, f"component {init.use.name!r} is inside itself")
    _, around = scope.component(init.use)
    inside = _Scope(f"{scope.prefix}{init.name}.", around, scope.depth + 1)
    for name in init.use.types:  # an argument may be a component, which is seen from here
        if (given := scope.finds(name)) is not None:
            inside.components[name] = given
    types = tuple(map(scope.type, init.use.types))
    _write_out(_statements(replace(init.use, types=types), scope, 0), inside, found)


def _statements(use: rules.ComponentUse, scope: _Scope, depth: int) -> list[rules.Statement]:
    """Return the statements of a component, after those of its base components.

    Raises for a wrong number of types, and for a component that is based on itself.
    """
    component, around = scope.component(use)
    if len(use.types) != len(component.parameters) or depth > MOST:
        count = f"{len(component.parameters)} types, not {len(use.types)}"
        what = "is based on itself" if depth > MOST else f"takes {count}"
        raise wrong(use.at, f"component {use.name!r} {what}")
    types = dict(zip(component.parameters, use.types, strict=True))
    own = [_with_types(statement, types) for statement in component.statements]
    overridden = {s.name for s in own if isinstance(s, rules.Directive) and s.word == "override"}
    below: list[rules.Statement] = []
    for base in component.bases:
        of = rules.ComponentUse(types.get(base.name, base.name), _all(base.types, types), base.at)
        below += _statements(of, scope if base.name in types else around, depth + 1)
    _check_overridden(own, below)
    kept = [s for s in below if not (isinstance(s, rules.Clause) and _is_about(s, overridden))]
    mine = [s for s in own if not (isinstance(s, rules.Directive) and s.word == "override")]
    return [*kept, *mine]


def _check_overridden(own: list[rules.Statement], below: list[rules.Statement]) -> None:
    """Check that a base declares each relation of `.override`, and that it may be overridden.

    Raises
    ------
    PlanError: there is no such relation, or it is not `overridable`.
    """
    declared = {s.name: s for s in below if isinstance(s, rules.Declaration)}
    for each in own:
        if not isinstance(each, rules.Directive) or each.word != "override":
            continue
        found = declared.get(each.name)
        if found is None:
            raise wrong(each.at, f"no base declares the relation {each.name!r}")
        if "overridable" not in found.qualifiers:
            hint = f"declare it as .decl {each.name}(...) overridable"
            raise wrong(each.at, f"relation {each.name!r} is not overridable", hint)


def _is_about(clause: rules.Clause, names: set[str]) -> bool:
    return any(head.name in names for head in clause.heads)


def _all(names: Iterable[str], types: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(types.get(name, name) for name in names)


def _with_types(statement: rules.Statement, types: Mapping[str, str]) -> rules.Statement:
    """Return a statement with types in place of a component's type parameters.

    A statement without types is unchanged.
    """
    if not types:
        return statement

    def columns(some: tuple[rules.DeclaredColumn, ...]) -> tuple[rules.DeclaredColumn, ...]:
        return tuple(replace(each, type=types.get(each.type, each.type)) for each in some)

    match statement:
        case rules.Declaration():
            return replace(statement, columns=columns(statement.columns))
        case rules.TypeDefinition():
            record = None if statement.record is None else columns(statement.record)
            branches = tuple((name, columns(some)) for name, some in statement.branches)
            of = _all(statement.of, types)
            return replace(statement, of=of, record=record, branches=branches)
        case rules.Init(_, use):
            named = replace(use, name=types.get(use.name, use.name), types=_all(use.types, types))
            return replace(statement, use=named)
        case rules.Clause():
            return _with_names(statement, lambda name: name, lambda name: types.get(name, name))
        case _:
            return statement


def _in_scope(statement: rules.Statement, scope: _Scope) -> rules.Statement:
    """Return a statement with the full names of its relations and types."""

    def columns(some: tuple[rules.DeclaredColumn, ...]) -> tuple[rules.DeclaredColumn, ...]:
        return tuple(replace(each, type=scope.type(each.type)) for each in some)

    match statement:
        case rules.Declaration(name):
            return replace(statement, name=scope.relation(name), columns=columns(statement.columns))
        case rules.TypeDefinition(name, of, record, branches):
            return replace(
                statement,
                name=scope.type(name),
                of=tuple(map(scope.type, of)),
                record=None if record is None else columns(record),
                branches=tuple((branch, columns(some)) for branch, some in branches),
            )
        case rules.Directive(_, name):
            return replace(statement, name=scope.relation(name))
        case rules.Clause():
            return _with_names(statement, scope.relation, scope.type)
        case rules.FunctorDeclaration():
            return statement
        case rules.LatticeDeclaration(name):
            return replace(statement, name=scope.type(name))
        case _:
            raise TypeError(f"no statement of a program: {type(statement).__name__}")


def _with_names(clause: rules.Clause, relation: _Naming, kind: _Naming) -> rules.Clause:
    """Return a clause with other names of relations and types."""

    def change(part: rules.Term | rules.Literal) -> rules.Term | rules.Literal:
        match part:
            case rules.Atom(name, arguments, at, name_at):
                return rules.Atom(relation(name), arguments, at, name_at)
            case rules.Cast(_, name):
                return replace(part, type=kind(name))
            case _:
                return part

    heads = tuple(rules.transform_part(head, change) for head in clause.heads)
    bodies = tuple(
        tuple(rules.transform_part(each, change) for each in body) for body in clause.bodies
    )
    return replace(clause, heads=heads, bodies=bodies)


# What a program defines: its types, relations, clauses, and which relations go in and out.


@record
class ProgramDefinitions:
    """A program in which all names are resolved."""

    types: ProgramTypes
    relations: dict[str, DeclaredRelation]
    clauses: tuple[rules.Clause, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    directives: tuple[rules.Directive, ...] = ()
    """Directives of inputs and outputs, with the options of their files."""

    def columns(self) -> dict[str, tuple[KindedColumn, ...]]:
        """Return the columns of each relation."""
        return {name: each.fields for name, each in self.relations.items()}

    def inline(self) -> frozenset[str]:
        """Return the relations that are written out where they are read.

        A relation with `.input` is none of them: it has rows that no rule says.
        """
        inline = {n for n, each in self.relations.items() if "inline" in each.qualifiers}
        return frozenset(inline.difference(self.inputs))

    def read_whole(self) -> frozenset[str]:
        """Return the relations that have to be computed, even if they are inline."""
        found = {*self.outputs}
        for clause in self.clauses:
            for literal in (each for body in clause.bodies for each in body):
                for part in rules.walk(literal):
                    if isinstance(part, rules.Negation):
                        found.add(part.atom.name)
                    if isinstance(part, rules.AggregateTerm):
                        found.update(p.name for p in rules.walk(part) if isinstance(p, rules.Atom))
        return frozenset(found)


def definitions_of(text: str | list[Token], given: Collection[str] = ()) -> ProgramDefinitions:
    """Return the definitions of a program; `given` are relations whose rows come from outside.

    Raises
    ------
    PlanError: the text is not a program; or a name has no meaning, or two.
    """
    written = without_components(parse(text))
    lattices = lattices_of(written)
    statements = with_ranks(with_bottoms(written))
    types = ProgramTypes(
        (s for s in statements if isinstance(s, rules.TypeDefinition)),
        (s for s in statements if isinstance(s, rules.FunctorDeclaration)),
    )
    relations = _relations(statements, types, lattices)
    clauses = [s for s in statements if isinstance(s, rules.Clause)]
    for clause in clauses:
        for literal in (*clause.heads, *(each for body in clause.bodies for each in body)):
            _check_atoms(literal, relations)
    directives = tuple(s for s in statements if isinstance(s, rules.Directive))
    named = {"input": list[str](), "output": list[str](), "printsize": list[str]()}
    for directive in directives:
        _check_name(directive.name, directive.at, relations)
        named[directive.word].append(directive.name)
    given = {*given, *named["input"]}
    clauses, relations = with_equivalences(clauses, relations, given, types)
    return ProgramDefinitions(
        types,
        relations,
        tuple(clauses),
        tuple(dict.fromkeys(named["input"])),
        tuple(dict.fromkeys([*named["output"], *named["printsize"]])),
        directives,
    )


def _relations(
    statements: Iterable[rules.Statement], types: ProgramTypes, lattices: Lattices
) -> dict[str, DeclaredRelation]:
    """Return the declared relations by name; refuses double names, and odd `eqrel` columns."""
    found: dict[str, DeclaredRelation] = {}
    for statement in statements:
        if not isinstance(statement, rules.Declaration):
            continue
        if statement.name in found:
            raise wrong(statement.at, f"there is a relation {statement.name!r} already")
        fields = types.fields(statement.columns)
        if "eqrel" in statement.qualifiers and not _is_pair(fields):
            raise wrong(statement.at, "an eqrel has two columns of the same type")
        kept: KeptRows | JoinedColumn | None = joined_column(statement, lattices)
        names, choices = [field.name for field in fields], statement.choices
        if KEEPING & statement.qualifiers:
            kept = _best_by_last(statement, fields, kept)
        is_ranked = statement.name.endswith(RANKED)
        if is_ranked:
            kept = chosen_rows(names, choices[0])
        places = tuple(tuple(map(names.index, each)) for each in choices if not is_ranked)
        found[statement.name] = DeclaredRelation(
            statement.name, fields, statement.qualifiers, statement.at, kept, places
        )
    return found


def _best_by_last(
    declared: rules.Declaration, fields: tuple[KindedColumn, ...], kept: object
) -> KeptRows:
    """Return the rows that `btree_min` or `btree_max` keeps: the best last column of each key."""
    if kept is not None or not fields:
        why = "has no columns" if not fields else "keeps some of its rows already"
        raise wrong(declared.at, f"relation {declared.name!r} {why}")
    if fields[-1].kind.family not in ("number", "unsigned", "float"):
        what = f"the last column of {declared.name!r} is no number"
        raise wrong(declared.at, what, "btree_min and btree_max compare the last column")
    last = len(fields) - 1
    return KeptRows(tuple(range(last)), (last,), "btree_max" in declared.qualifiers)


def _is_pair(fields: tuple[KindedColumn, ...]) -> bool:
    return len(fields) == 2 and fields[0].kind == fields[1].kind


def _check_atoms(literal: rules.Literal, relations: dict[str, DeclaredRelation]) -> None:
    """Refuse atoms of unknown relations, and atoms with another number of arguments."""
    for atom in (part for part in rules.walk(literal) if isinstance(part, rules.Atom)):
        _check_name(atom.name, atom.name_at, relations)
        wanted, given = len(relations[atom.name].fields), len(atom.arguments)
        if wanted != given:
            columns = ", ".join(field.name for field in relations[atom.name].fields)
            what = f"relation {atom.name!r} has {_columns_text(wanted)}, not {given}"
            raise wrong(atom.at, what, f"they are {columns}" if columns else "")


def _columns_text(number: int) -> str:
    return f"{number} column" + "s" * (number != 1)


def _check_name(name: str, at: Span, relations: dict[str, DeclaredRelation]) -> None:
    """Refuse the name of a relation that is not declared."""
    if name not in relations:
        remedy = suggest_name(name, relations, "there are") or "declare it by .decl"
        raise wrong(at, f"there is no relation {name!r}", remedy)
