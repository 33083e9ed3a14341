"""The text of a query in each spelling, as one would write it."""

from __future__ import annotations

from asv_benchmarks.grid.cell import Binding
from asv_benchmarks.neighbours.conditions import CONDITIONS
from asv_benchmarks.neighbours.query import FIELDS, KEPT, TABLES, Query
from asv_benchmarks.neighbours.rules import rules_of
from asv_benchmarks.neighbours.special import SPECIAL

HEAD = "def make(db, orders, customers, nations, edges, k):\n"
AGGREGATES = {
    "sum": ("Sum", "sum({v})"),
    "count": ("Count", "count(*)"),
    "max": ("Max", "max({v})"),
    "avg": ("Avg", "avg({v})"),
    "count_distinct": ("CountDistinct", "count(distinct {v})"),
}
LISTED = {
    "sum": "sum(v)",
    "count": "len(v)",
    "max": "max(v)",
    "avg": "sum(v) / len(v)",
    "count_distinct": "len(set(v))",
}
"""Each aggregate of a group's list in a comprehension."""
BELOW = {
    "": "",
    "distinct": ".distinct()",
    "union": ".where(lambda o: {q} < 5).union_all(orders.where(lambda o: {q} >= 5))",
    "unions": (
        ".where(lambda o: {q} < 5).union_all(orders.where(lambda o: {q} == 5)"
        ".union_all(orders.where(lambda o: {q} > 5)))"
    ),
    "difference": ".difference(orders.where(lambda o: {q} == 5))",
    "intersection": ".intersection(orders.where(lambda o: {q} != 5))",
}
"""Steps that come before the rest of the query, in methods."""
ABOVE = {
    "": "",
    "having": ".where(lambda g, v: v > 100)",
    "level": ".group_by(lambda g, v: v % 10).aggregate(Count())",
    "top": ".order_by(lambda g, v: (-v, g)).limit(3)",
}
"""Results that are asked of the groups, in methods."""


class Text:
    """The pieces of a query's text: its conditions and fields, in Python and in SQL."""

    def __init__(self, query: Query, constant: str) -> None:
        self.query = query
        self._constant = constant
        python = {name: Binding(name, FIELDS[name], query.rows) for name in FIELDS}
        sql = {name: Binding(name, FIELDS[name], "named") for name in FIELDS}
        self._names = {"python": python, "sql": sql}

    @property
    def bindings(self) -> tuple[str, ...]:
        """The names of the bindings, in the order of the joins."""
        names = self.query.bindings
        return ("c", "o", *names[2:]) if self.query.swapped else names

    def condition(self, name: str, language: str = "python") -> str:
        """Return a condition's text."""
        text = CONDITIONS[name].sql if language == "sql" else CONDITIONS[name].python
        return text.format(**self._names[language], k=self.constant(language))

    def constant(self, language: str) -> str:
        """Return the text of the constant, in the way of the query."""
        if self.query.constant == "literal":
            return self._constant
        if language == "sql":
            return ":k"
        return 'f"{k}"' if self.query.constant == "f-string" else "k"

    def field(self, place: str, language: str = "python") -> str:
        """Return the text of a field, given as `o.region`."""
        return f"{{{place}}}".format(**self._names[language])


def text_of(query: Query, constant: str) -> str:
    """Return the text of a function `make`, which returns the relation.

    constant: the literal of the query's constant.
    """
    if query.result in SPECIAL:
        return HEAD + "".join(
            f"    {line}\n" for line in SPECIAL[query.result][query.spelling].splitlines()
        )
    text = Text(query, constant)
    match query.spelling:
        case "methods":
            return HEAD + f"    return {_methods(text)}\n"
        case "comprehension":
            return HEAD + _comprehension(text)
        case "sql":
            given = "" if query.constant == "literal" else ", k=k"
            return HEAD + f"    return db.sql({_sql(text)!r}{given})\n"
        case "datalog":
            return HEAD + f"    return db.datalog({rules_of(query, constant)!r})['found']\n"
    raise ValueError(f"no such spelling: {query.spelling}")


# Methods


def _methods(text: Text) -> str:
    query = text.query
    early = [name for name in query.conditions if query.early and _reads(name) == {"o"}]
    asked = "orders" + _below(text) + "".join(_where(text, ("o",), name) for name in early)
    if query.swapped:
        asked = f"customers.join({asked}, on=lambda c, o: {text.condition(query.on)})"
    elif query.join:
        asked += f".{query.join}(customers, on=lambda o, c: {text.condition(query.on)})"
    if query.nations:
        names = ", ".join(text.bindings)
        asked += f".join(nations, on=lambda {names}: {text.condition('linked')})"
    late = [name for name in query.conditions if name not in early]
    if late:
        asked += _where(text, text.bindings, *late)
    return asked + _asked(text) + ABOVE[query.above]


def _below(text: Text) -> str:
    quantity = text.field("o.quantity")
    return BELOW[text.query.below].format(q=quantity)


def _where(text: Text, bindings: tuple[str, ...], *names: str) -> str:
    joined = " and ".join(map(text.condition, names))
    return f".where(lambda {', '.join(bindings)}: {joined})"


def _asked(text: Text) -> str:
    query = text.query
    head = f"lambda {', '.join(text.bindings)}:"
    left = query.join == "left_join"
    key = text.field(query.group)
    if left and query.group.startswith("c"):
        key = f"None if c is None else {key}"
    value = text.field("o.amount")
    match query.result:
        case "rows":
            return f".select({head} ({_row(text)}))"
        case "distinct":
            return f".select({head} {key}).distinct()"
        case "top":
            pair = f"({text.field('o.id')}, {value})"
            return f".select({head} {pair}).order_by(lambda p: (-p[1], p[0])).limit(10)"
        case "total":
            return f".aggregate(Sum({head} {value}), Count())"
    name = AGGREGATES[query.result][0]
    argument = "" if name == "Count" else f"{head} {value}"
    return f".group_by({head} {key}).aggregate({name}({argument}))"


def _row(text: Text, language: str = "python") -> str:
    query = text.query
    other = text.field("c.tier", language)
    if query.join == "left_join" and language == "python":
        other = f"None if c is None else {other}"
    joined = bool(query.join) and query.join not in KEPT
    row = [text.field("o.id", language), *([other] if joined else [])]
    return ", ".join([*row, text.field("o.amount", language)])


def _reads(name: str) -> set[str]:
    """Return the bindings that a condition reads."""
    return {each for each in FIELDS if f"{{{each}." in CONDITIONS[name].python}


# Comprehensions


def _comprehension(text: Text) -> str:
    query = text.query
    loops = "for c in customers for o in orders" if query.swapped else "for o in orders"
    tests = list(map(text.condition, query.conditions))
    on = text.condition(query.on)
    if query.join in KEPT:
        negation = "" if query.join == "semi_join" else "not "
        tests.insert(0, f"{negation}any({on} for c in customers)")
    elif query.join:
        loops += "" if query.swapped else " for c in customers"
        tests.insert(0, on)
    if query.nations:
        loops += " for n in nations"
        tests.append(text.condition("linked"))
    ifs = "".join(f" if {test}" for test in tests)
    key, value = text.field(query.group), text.field("o.amount")
    match query.result:
        case "rows":
            body = f"return [({_row(text)}) {loops}{ifs}]"
        case "distinct":
            body = f"return {{{key} {loops}{ifs}}}"
        case "top":
            first = f"({text.field('o.id')}, {value}) {loops}{ifs}"
            body = f"return sorted([{first}], key=lambda p: (-p[1], p[0]))[:10]"
        case "total":
            return f"    return db.query(lambda: sum({value} {loops}{ifs}))\n"
        case _:
            body = _grouped(loops, ifs, key, value, query.result)
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return f"    def found():\n{lines}    return db.query(found)\n"


def _grouped(loops: str, ifs: str, key: str, value: str, result: str) -> str:
    lines = ["groups = defaultdict(list)"]
    depth = ""
    for loop in loops.split("for ")[1:]:
        lines.append(f"{depth}for {loop.strip()}:")
        depth += "    "
    for test in ifs.split(" if ")[1:]:
        lines.append(f"{depth}if {test}:")
        depth += "    "
    lines.append(f"{depth}groups[{key}].append({value})")
    lines.append(f"return {{key: {LISTED[result]} for key, v in groups.items()}}")
    return "\n".join(lines)


# SQL


def _sql(text: Text) -> str:
    query = text.query
    source = _source(text)
    tests = [text.condition(name, "sql") for name in query.conditions]
    on = text.condition(query.on, "sql")
    if query.join in KEPT:
        word = "exists" if query.join == "semi_join" else "not exists"
        tests.insert(0, f"{word} (select 1 from customers c where {on})")
    elif query.join:
        source += f" {'left ' if query.join == 'left_join' else ''}join customers c on {on}"
    if query.nations:
        source += f" join nations n on {text.condition('linked', 'sql')}"
    where = f" where {' and '.join(tests)}" if tests else ""
    key, value = text.field(query.group, "sql"), text.field("o.amount", "sql")
    match query.result:
        case "rows":
            return f"select {_row(text, 'sql')} from {source}{where}"
        case "distinct":
            return f"select distinct {key} from {source}{where}"
        case "top":
            return f"select o.id, {value} from {source}{where} order by {value} desc, o.id limit 10"
        case "total":
            return f"select sum({value}), count(*) from {source}{where}"
    aggregate = AGGREGATES[query.result][1].format(v=value)
    return f"select {key}, {aggregate} from {source}{where} group by {key}"


def _source(text: Text) -> str:
    match text.query.below:
        case "distinct":
            return "(select distinct * from orders) o"
        case "union":
            return (
                "(select * from orders where quantity < 5 union all"
                " select * from orders where quantity >= 5) o"
            )
    return f"{TABLES['o']} o"
