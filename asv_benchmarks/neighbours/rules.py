"""The text of a query as a Datalog program.

A join repeats a variable, groups are a relation of the values that an aggregate reads.
"""

from __future__ import annotations

from types import SimpleNamespace

from asv_benchmarks.neighbours.conditions import CONDITIONS
from asv_benchmarks.neighbours.query import FIELDS, KEPT, TABLES, Query

TYPES = {"region": "symbol", "nation": "symbol", "name": "symbol", "continent": "symbol"}
"""The types of columns that are no numbers."""
CONDITIONED = ("key", "range", "key and less", "amount", "region", "nation", "quantity")
"""The conditions that have a text in Datalog."""
AGGREGATES = {
    "sum": "sum v : {{{part}}}",
    "count": "count : {{{part}}}",
    "max": "max v : {{{part}}}",
}


def has_rules(query: Query) -> bool:
    """Return True if the query can be asked in Datalog, whose relations are sets of rows."""
    names = {*query.conditions, *((query.on,) if query.join else ())}
    return (
        names <= {*CONDITIONED}
        and query.join in ("", "join", *KEPT)
        and query.result in ("rows", "distinct", *AGGREGATES)
        and not (query.below or query.above or query.early or query.swapped or query.nones)
        and (query.rows, query.amount, query.key) == ("named", "int", "int")
        and query.constant == "literal"
    )


def rules_of(query: Query, constant: str) -> str:
    """Return the program of a query, whose relation is `found`."""
    names = _variables(query)
    atoms = [_atom("o", names), *(_atom(name, names) for name in query.bindings[1:])]
    if query.join in KEPT:
        atoms.append(("!" if query.join == "anti_join" else "") + _atom("c", names))
    asked = [query.on] if query.join and query.on != "key" else []
    tests = [
        CONDITIONS[name].python.format(**names, k=constant.replace("'", '"')).replace(" == ", " = ")
        for name in (*asked, *query.conditions)
    ]
    body = ", ".join([*atoms, *tests]).replace(" and ", ", ")
    lines = [*_declared(query), *_rules(query, names, body)]
    return "\n".join(lines)


def _variables(query: Query) -> dict[str, SimpleNamespace]:
    """Return the variable of each field; fields that a join equates share one."""
    names = {
        name: SimpleNamespace(**{field: f"{name}_{field}" for field in fields})
        for name, fields in FIELDS.items()
    }
    if query.join and query.on.startswith("key"):
        names["c"].id = names["o"].customer
    names["n"].name = names["c"].nation
    return names


def _atom(name: str, names: dict[str, SimpleNamespace]) -> str:
    return f"{TABLES[name]}({', '.join(getattr(names[name], field) for field in FIELDS[name])})"


def _declared(query: Query) -> list[str]:
    used = ("o", "c") if query.join in KEPT else query.bindings
    return [
        f".decl {TABLES[name]}("
        + ", ".join(f"{field}: {TYPES.get(field, 'number')}" for field in FIELDS[name])
        + f") .input {TABLES[name]}"
        for name in used
    ]


def _rules(query: Query, names: dict[str, SimpleNamespace], body: str) -> list[str]:
    """Return the rules of `found`; groups are told apart in `part`, by the ids of their rows."""
    group = f"{{{query.group}}}".format(**names)
    key = TYPES.get(query.group[2:], "number")
    o = names["o"]
    match query.result:
        case "rows":
            more = [names["c"].tier] if "c" in query.bindings else []
            values = [o.id, *more, o.amount]
            columns = ", ".join(f"x{at}: number" for at in range(len(values)))
            return [
                f".decl found({columns}) .output found",
                f"found({', '.join(values)}) :- {body}.",
            ]
        case "distinct":
            return [f".decl found(x: {key}) .output found", f"found({group}) :- {body}."]
    ids = [getattr(names[name], FIELDS[name][0]) for name in query.bindings if name != "n"]
    columns = ", ".join(f"x{at}: number" for at in range(len(ids)))
    others = ", ".join("_" for _ in ids)
    aggregate = AGGREGATES[query.result].format(part=f"part(g, {others}, v)")
    return [
        f".decl part(g: {key}, {columns}, v: number)",
        f".decl found(g: {key}, x: number) .output found",
        f"part({group}, {', '.join(ids)}, {o.amount}) :- {body}.",
        f"found(g, x) :- part(g, {others}, _), x = {aggregate}.",
    ]
