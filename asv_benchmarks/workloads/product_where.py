"""A join written as product and where: parcels of one order, sent and received at one depot.

As written, every pair of parcels is tested. The optimizer should find the key in the condition.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

from asv_benchmarks.churn import Churn
from asv_benchmarks.rows import Parcel, parcel
from asv_benchmarks.workload import Rows, Stream, TableOf, Workload
from asv_benchmarks.workloads.pairs import Twin, rows
from reactive import Relation, Table


def query(sent: Table[Parcel], received: Table[Parcel]) -> Relation[*tuple[Any, ...]]:
    """(parcel sent, parcel received) of one order and one depot."""
    pairs: Relation[*tuple[Any, ...]] = sent.join(received).where(
        lambda s, r: s.order == r.order and s.depot == r.depot
    )
    return pairs


def stream(rows: Rows, random: Random) -> Stream:
    """Send parcels of orders that were received, or remove them."""
    orders = len(rows[1])
    return Churn(rows[0], lambda number: parcel(number, number % orders), lambda _: True, random)


WORKLOAD = Workload(
    name="product_where",
    title="join written as product and where",
    tables=(TableOf(Parcel), TableOf(Parcel)),
    query=query,
    twin=partial(Twin, lambda s, r: s.depot == r.depot),
    rows=rows,
    stream=stream,
)
