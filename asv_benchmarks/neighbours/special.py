"""Texts of queries that are no joins and groups: recursion, windows, nests, above the average."""

from __future__ import annotations

METHODS = """\
def step(reach):
    further = reach.join(edges, on=lambda p, e: p[1] == e.src).select(lambda p, e: (p[0], e.dst))
    return edges.select(lambda e: (e.src, e.dst)).union(further)
"""
RIGHT = """\
def step(reach):
    further = edges.join(reach, on=lambda e, p: e.dst == p[0]).select(lambda e, p: (e.src, p[1]))
    return edges.select(lambda e: (e.src, e.dst)).union(further)
return fixpoint(step)
"""
DOUBLED = """\
def step(reach):
    further = reach.join(reach, on=lambda p, q: p[1] == q[0]).select(lambda p, q: (p[0], q[1]))
    return edges.select(lambda e: (e.src, e.dst)).union(further)
return fixpoint(step)
"""
CONDITIONAL = """\
def step(reach):
    further = reach.join(edges, on=lambda p, e: p[1] == e.src and {condition})
    return edges.select(lambda e: (e.src, e.dst)).union(
        further.select(lambda p, e: (p[0], e.dst))
    )
return fixpoint(step)
"""
COMPREHENSION = """\
@db.query
def reach():
    further = {(a, e.dst) for a, b in reach() for e in edges if b == e.src}
    return {(e.src, e.dst) for e in edges} | further
"""
REACH = (
    "with recursive reach(a, b) as (select src, dst from edges union"
    " select r.a, e.dst from reach r join edges e on r.b = e.src) select * from reach"
)
DEPTH = (
    "with recursive reach(a, b, n) as (select src, dst, 1 from edges {union}"
    " select r.a, e.dst, n + 1 from reach r join edges e on r.b = e.src where n < 4)"
    " select a, b, n from reach"
)


RULES = """\
.decl edges(src: number, dst: number) .input edges
.decl reach(a: number, b: number)
.decl found(a: number, b: number) .output found
reach(a, b) :- edges(a, b).
reach(a, c) :- reach(a, b), edges(b, c).
"""


def _sql(text: str) -> dict[str, str]:
    return {"sql": f"return db.sql({text!r})"}


def _closure(condition: str) -> dict[str, str]:
    """Return the closure of the edges, then its pairs whose first node passes."""
    return {
        "methods": f"{METHODS}return fixpoint(step).where(lambda p: p[0] {condition})",
        "comprehension": (
            f"{COMPREHENSION}return db.query(lambda: {{p for p in reach() if p[0] {condition}}})"
        ),
        **_sql(f"{REACH} where a {condition.replace('==', '=')}"),
        **_datalog(f"{RULES}found(a, b) :- reach(a, b), a {condition.replace('==', '=')}."),
    }


def _datalog(text: str) -> dict[str, str]:
    return {"datalog": f"return db.datalog({text!r})['found']"}


SPECIAL: dict[str, dict[str, str]] = {
    "closure": {
        "methods": f"{METHODS}return fixpoint(step)",
        "comprehension": f"{COMPREHENSION}return reach",
        **_sql(REACH),
        **_datalog(f"{RULES}found(a, b) :- reach(a, b)."),
    },
    "closure from the right": {"methods": RIGHT},
    "closure of pairs": {"methods": DOUBLED},
    "closure upwards": {"methods": CONDITIONAL.format(condition="p[0] < e.dst")},
    "closure of few": {"methods": CONDITIONAL.format(condition="(e.dst < 40 or p[0] == 7)")},
    "closure from few": _closure("== 7"),
    "closure below": _closure("< 2"),
    "depth": _sql(DEPTH.format(union="union")),
    "depth of all": _sql(DEPTH.format(union="union all")),
    "triangles": {
        "methods": """\
pairs = edges.join(edges, on=lambda a, b: a.dst == b.src)
three = pairs.join(edges, on=lambda a, b, c: b.dst == c.src and c.dst == a.src)
return three.select(lambda a, b, c: (a.src, b.src, c.src))""",
        "comprehension": """\
return db.query(lambda: [
    (a.src, b.src, c.src)
    for a in edges for b in edges if a.dst == b.src
    for c in edges if b.dst == c.src and c.dst == a.src
])""",
        **_sql(
            "select a.src, b.src, c.src from edges a, edges b, edges c"
            " where a.dst = b.src and b.dst = c.src and c.dst = a.src"
        ),
        **_datalog(
            ".decl edges(src: number, dst: number) .input edges\n"
            ".decl found(a: number, b: number, c: number) .output found\n"
            "found(a, b, c) :- edges(a, b), edges(b, c), edges(c, a)."
        ),
    },
    "nest": {
        "methods": """\
return customers.select(
    lambda c: (c.id, sum(o.amount for o in orders if o.customer == c.id and o.quantity > 2))
)""",
        "comprehension": """\
return db.query(lambda: [
    (c.id, sum(o.amount for o in orders if o.customer == c.id if o.quantity > 2))
    for c in customers
])""",
        **_sql(
            "select c.id, (select coalesce(sum(o.amount), 0) from orders o"
            " where o.customer = c.id and o.quantity > 2) from customers c"
        ),
    },
    "above own average": {
        "methods": """\
average = orders.group_by(lambda o: o.customer).aggregate(Avg(lambda o: o.amount))
above = orders.join(average, on=lambda o, a: o.customer == a[0] and o.amount > a[1])
return above.select(lambda o, a: o.id)""",
        **_sql(
            "select o.id from orders o where o.amount >"
            " (select avg(p.amount) from orders p where p.customer = o.customer)"
        ),
    },
    "above the average": {
        "methods": """\
average = orders.aggregate(Avg(lambda o: o.amount))
return orders.join(average, on=lambda o, a: o.amount > a).select(lambda o, a: o.id)""",
        **_sql("select o.id from orders o where o.amount > (select avg(amount) from orders)"),
    },
    "running sum": _sql(
        "select id, sum(amount) over (partition by customer order by id) from orders"
    ),
    "share": _sql("select id, amount * 1.0 / sum(amount) over (partition by customer) from orders"),
    "rank": _sql("select id, rank() over (partition by customer order by amount desc) from orders"),
    "top of each": {
        "sql": (
            'return db.sql("select id, customer from orders qualify'
            ' row_number() over (partition by customer order by amount desc, id) <= 3")'
        ),
        "comprehension": """\
def first(o):
    return -o.amount, o.id
def leaders():
    return [
        (i, c)
        for c in {o.customer for o in orders}
        for i in [o.id for o in sorted((o for o in orders if o.customer == c), key=first)[:3]]
    ]
return db.query(leaders)""",
    },
}
"""The texts by result and spelling; the rows are named tuples of ints."""
RELATED = {
    "closure": ("closure from the right", "closure of pairs", "closure upwards", "closure of few")
}
"""The neighbours of a query with a text of its own, which are no families by themselves."""
