"""What a program defines: its types, relations, clauses, and which relations go in and out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from optimizer.record import record
from reactive.languages.datalog.components import without_components
from reactive.languages.datalog.kinds import Field, Types
from reactive.languages.datalog.parser import parse
from reactive.languages.datalog.places import Span, near, wrong
from reactive.languages.datalog.syntax import (
    Aggregate,
    Atom,
    Clause,
    Declaration,
    Definition,
    Directive,
    Literal,
    Negation,
    Statement,
    Unnamed,
    Variable,
    walk,
)


@record
class Declared:
    """A relation of a program."""

    name: str
    fields: tuple[Field, ...]
    qualifiers: frozenset[str]
    at: Span


@record
class Definitions:
    """A program, in which all names have a meaning."""

    types: Types
    relations: dict[str, Declared]
    clauses: tuple[Clause, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def columns(self) -> dict[str, tuple[Field, ...]]:
        """The columns of each relation."""
        return {name: each.fields for name, each in self.relations.items()}

    def inline(self) -> frozenset[str]:
        """Return the relations that are written out where they are read.

        A relation with `.input` is none of them: it has rows that no rule says.
        """
        inline = {n for n, each in self.relations.items() if "inline" in each.qualifiers}
        return frozenset(inline.difference(self.inputs))

    def read_whole(self) -> frozenset[str]:
        """The relations that have to be computed, even if they are inline."""
        found = {*self.outputs}
        for clause in self.clauses:
            for literal in (each for body in clause.bodies for each in body):
                for part in walk(literal):
                    if isinstance(part, Negation):
                        found.add(part.atom.name)
                    if isinstance(part, Aggregate):
                        found.update(p.name for p in walk(part) if isinstance(p, Atom))
        return frozenset(found)


def definitions_of(text: str) -> Definitions:
    """What a text defines.

    Raises
    ------
    PlanError: it is no program; or a name has no meaning, or two.
    """
    statements = without_components(parse(text))
    types = Types(s for s in statements if isinstance(s, Definition))
    relations = _relations(statements, types)
    clauses = [s for s in statements if isinstance(s, Clause)]
    for clause in clauses:
        for literal in (*clause.heads, *(each for body in clause.bodies for each in body)):
            _check_atoms(literal, relations)
    named = {"input": list[str](), "output": list[str](), "printsize": list[str]()}
    for statement in statements:
        if isinstance(statement, Directive):
            _check_name(statement.name, statement.at, relations)
            named[statement.word].append(statement.name)
    return Definitions(
        types,
        relations,
        (*clauses, *_equivalences(relations.values())),
        tuple(dict.fromkeys(named["input"])),
        tuple(dict.fromkeys([*named["output"], *named["printsize"]])),
    )


def _relations(statements: Iterable[Statement], types: Types) -> dict[str, Declared]:
    found: dict[str, Declared] = {}
    for statement in statements:
        if not isinstance(statement, Declaration):
            continue
        if statement.name in found:
            raise wrong(statement.at, f"there is a relation {statement.name!r} already")
        fields = types.fields(statement.columns)
        if "eqrel" in statement.qualifiers and not _is_pair(fields):
            raise wrong(statement.at, "an eqrel has two columns of the same type")
        found[statement.name] = Declared(statement.name, fields, statement.qualifiers, statement.at)
    return found


def _is_pair(fields: tuple[Field, ...]) -> bool:
    return len(fields) == 2 and fields[0].kind == fields[1].kind


def _check_atoms(literal: Literal, relations: dict[str, Declared]) -> None:
    for atom in (part for part in walk(literal) if isinstance(part, Atom)):
        _check_name(atom.name, atom.name_at, relations)
        wanted, given = len(relations[atom.name].fields), len(atom.arguments)
        if wanted != given:
            columns = ", ".join(field.name for field in relations[atom.name].fields)
            what = f"relation {atom.name!r} has {_counted(wanted)}, not {given}"
            raise wrong(atom.at, what, f"they are {columns}" if columns else "")


def _counted(number: int) -> str:
    return f"{number} column" + "s" * (number != 1)


def _check_name(name: str, at: Span, relations: dict[str, Declared]) -> None:
    if name not in relations:
        remedy = near(name, relations, "there are") or "declare it by .decl"
        raise wrong(at, f"there is no relation {name!r}", remedy)


def _equivalences(relations: Iterable[Declared]) -> Iterator[Clause]:
    """The clauses that make relations equivalences."""
    for declared in relations:
        if "eqrel" not in declared.qualifiers:
            continue
        at = declared.at
        x, y, z = (Variable(name, at) for name in "xyz")

        def atom(*arguments: Variable | Unnamed, of: Declared = declared) -> Atom:
            return Atom(of.name, arguments, of.at, of.at)

        any_ = Unnamed(at)
        yield Clause((atom(x, x),), ((atom(x, any_),), (atom(any_, x),)), at)
        yield Clause((atom(y, x),), ((atom(x, y),),), at)
        yield Clause((atom(x, z),), ((atom(x, y), atom(y, z)),), at)
