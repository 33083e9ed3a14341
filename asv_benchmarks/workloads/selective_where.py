"""A selective where above a join: parcels of one order, sent and received at one certain depot.

One parcel in a hundred passes. As written, the indexes of the join hold all the others too.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

from asv_benchmarks.churn import Churn
from asv_benchmarks.rows import DEPOTS, Parcel, parcel
from asv_benchmarks.workload import Rows, Stream, TableOf, Workload
from asv_benchmarks.workloads.pairs import Twin, rows
from reactive import Relation, Table

DEPOT = 7


def query(sent: Table[Parcel], received: Table[Parcel]) -> Relation[*tuple[Any, ...]]:
    """(parcel sent, parcel received) of one order, both at the depot."""
    pairs: Relation[*tuple[Any, ...]] = sent.join(
        received, left_key=lambda s: s.order, right_key=lambda r: r.order
    ).where(lambda s, r: s.depot == 7 and r.depot == 7)
    return pairs


def stream(rows: Rows, random: Random) -> Stream:
    """Send parcels of orders that were received, or remove them."""
    orders = len(rows[1])

    def make(number: int) -> Parcel:
        return parcel(number, number % orders)

    return Churn(rows[0], make, lambda s: s.depot == DEPOT, random)


WORKLOAD = Workload(
    name="selective_where",
    title=f"selective where above a join, one row in {DEPOTS} passes",
    tables=(TableOf(Parcel), TableOf(Parcel)),
    query=query,
    twin=partial(Twin, lambda s, r: s.depot == r.depot == DEPOT),
    rows=rows,
    stream=stream,
)
