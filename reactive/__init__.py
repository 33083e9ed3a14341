"""Tables and views as Python objects: live queries, updated by work proportional to each change.

db = Database()
students = db.table(Student)
sallies = students.where(lambda s: s.first_name == "Sally").materialize()
students.add(Student("Sally", "Fields", 31))
list(sallies)                                   # it is there
"""

from typing import TYPE_CHECKING

from reactive.engine.runtime.siblings import check_siblings

check_siblings()

from optimizer.earlier_names import import_by_earlier_names
from optimizer.lazy import lazily, make_module_getattr
from reactive.engine.runtime.lazy_modules import LAZY_MODULES

import_by_earlier_names()
lazily(*LAZY_MODULES)

__version__ = "0.2.0"

from reactive.api.aggregates import (
    Aggregate,
    Aggregation,
    Avg,
    Collect,
    Count,
    CountDistinct,
    Max,
    Min,
    Monoid,
    SortKey,
    Sum,
    asc,
    desc,
)
from reactive.api.columns import Column, call, col, left, right, when
from reactive.api.grouped_view import GroupedView
from reactive.api.groups import Groups
from reactive.api.relation import GroupedRelation, OrderedRelation, Relation
from reactive.api.subscriptions.observe import Changes, Observer, Subscription
from reactive.api.table import Table
from reactive.api.view import View
from reactive.database import Database
from reactive.engine.collections.bag import Bag, Multiset
from reactive.engine.collections.order import Edit
from reactive.engine.dataflow.delta import Delta
from reactive.engine.runtime.foreign_names import OF_MODULE
from reactive.errors import (
    ClosedError,
    ConflictError,
    DuplicateKeyError,
    DurabilityError,
    FixpointError,
    MissingKeyError,
    OffloadError,
    PlanError,
    ReactiveError,
    SourceError,
    StaleCaptureError,
    StaleCaptureWarning,
    StratificationError,
    TableError,
    TransactionError,
    UnboundedStateWarning,
    VerificationError,
)

if TYPE_CHECKING:
    from reactive.api.clock import Clock, now
    from reactive.api.commits import PastDatabase, Turning
    from reactive.api.family import Family, GroupedQuery, OrderedQuery, Query, check, live
    from reactive.api.fixpoint import fixpoint, monotone
    from reactive.api.iterate import iterate
    from reactive.api.literal import Raised, RowError
    from reactive.api.named_groups import NamedGroups, NamedGroupsView
    from reactive.api.obstacles import Obstacle, WhyNot
    from reactive.api.ordered_view import OrderedView
    from reactive.api.parameter import Parameter
    from reactive.api.proofs import Proof
    from reactive.api.recurrence import Delayed, Recurrence
    from reactive.api.row_window import RowWindow
    from reactive.api.statistics import (
        ApproxCountDistinct,
        ArgMax,
        ArgMin,
        BoolAnd,
        BoolOr,
        FirstBy,
        LastBy,
        Median,
        MostCommon,
        Quantile,
        StdDev,
        StringJoin,
        Variance,
    )
    from reactive.api.stats import Metrics, OperatorStats, Queue, Stats
    from reactive.api.stream import Stream
    from reactive.api.windows import SessionWindows, hopping, session, tumbling
    from reactive.borders.durable.store import Store
    from reactive.borders.frames.export import NetChanges
    from reactive.borders.frames.loading import Synced
    from reactive.borders.mirrors.mirror import AsyncMirror, Mirror, mirror
    from reactive.borders.objects.decorator import tracked
    from reactive.borders.objects.records import of
    from reactive.borders.objects.silent import Silent
    from reactive.borders.offload.backend import Offloaded, OffloadStatus
    from reactive.borders.sinks.durable_outbox import Position
    from reactive.borders.sinks.sink import Sink
    from reactive.borders.sources.batch import Batch, Refused, Source, from_rows, poll
    from reactive.borders.sources.files.source import FileSource, files
    from reactive.borders.sources.ingest import WatchedTable
    from reactive.borders.sources.ingestion import Ingestion
    from reactive.borders.sources.postgres.notify import NotifySource
    from reactive.borders.sources.postgres.source import PostgresSource
    from reactive.engine.collections.time_windows import TimeWindow, TimeWindows
    from reactive.engine.collections.weight_tree import ZSet
    from reactive.engine.dataflow.delta import to_python
    from reactive.engine.operators.own_operator import Operator
    from reactive.engine.runtime.lag import Lag
    from reactive.engine.transactions.commit_log import Past
    from reactive.engine.transactions.patches import Patch
    from reactive.engine.transactions.transaction import Transaction
    from reactive.languages.datalog.program import Program

__all__ = [
    "Aggregate",
    "Aggregation",
    "ApproxCountDistinct",
    "ArgMax",
    "ArgMin",
    "AsyncMirror",
    "Avg",
    "Bag",
    "Batch",
    "BoolAnd",
    "BoolOr",
    "Changes",
    "Clock",
    "ClosedError",
    "Collect",
    "Column",
    "ConflictError",
    "Count",
    "CountDistinct",
    "Database",
    "Delayed",
    "Delta",
    "DuplicateKeyError",
    "DurabilityError",
    "Edit",
    "Family",
    "FileSource",
    "FirstBy",
    "FixpointError",
    "GroupedQuery",
    "GroupedRelation",
    "GroupedView",
    "Groups",
    "Ingestion",
    "Lag",
    "LastBy",
    "Max",
    "Median",
    "Metrics",
    "Min",
    "Mirror",
    "MissingKeyError",
    "Monoid",
    "MostCommon",
    "Multiset",
    "NamedGroups",
    "NamedGroupsView",
    "NamedSubscription",
    "NetChanges",
    "NotifySource",
    "Observer",
    "Obstacle",
    "OffloadError",
    "OffloadStatus",
    "Offloaded",
    "Operator",
    "OperatorStats",
    "OrderedQuery",
    "OrderedRelation",
    "OrderedView",
    "Parameter",
    "Past",
    "PastDatabase",
    "Patch",
    "PlanError",
    "Position",
    "PostgresSource",
    "Program",
    "Proof",
    "Quantile",
    "Query",
    "Queue",
    "Raised",
    "ReactiveError",
    "Recurrence",
    "Refused",
    "Relation",
    "RowError",
    "RowWindow",
    "SessionWindows",
    "Silent",
    "Sink",
    "SortKey",
    "Source",
    "SourceError",
    "StaleCaptureError",
    "StaleCaptureWarning",
    "Stats",
    "StdDev",
    "Store",
    "StratificationError",
    "Stream",
    "StringJoin",
    "Subscription",
    "Sum",
    "Synced",
    "Table",
    "TableError",
    "TimeWindow",
    "TimeWindows",
    "Transaction",
    "TransactionError",
    "Turning",
    "UnboundedStateWarning",
    "Variance",
    "VerificationError",
    "View",
    "WatchedTable",
    "WhyNot",
    "ZSet",
    "asc",
    "call",
    "check",
    "col",
    "desc",
    "files",
    "fixpoint",
    "from_rows",
    "hopping",
    "iterate",
    "left",
    "live",
    "mirror",
    "monotone",
    "now",
    "of",
    "poll",
    "right",
    "session",
    "to_python",
    "tracked",
    "tumbling",
    "when",
]

__getattr__ = make_module_getattr(
    __name__,
    {
        "ApproxCountDistinct": "reactive.api.statistics",
        "ArgMax": "reactive.api.statistics",
        "ArgMin": "reactive.api.statistics",
        "AsyncMirror": "reactive.borders.mirrors.mirror",
        "Batch": "reactive.borders.sources.batch",
        "BoolAnd": "reactive.api.statistics",
        "BoolOr": "reactive.api.statistics",
        "Clock": "reactive.api.clock",
        "Delayed": "reactive.api.recurrence",
        "Family": "reactive.api.family",
        "FileSource": "reactive.borders.sources.files.source",
        "FirstBy": "reactive.api.statistics",
        "GroupedQuery": "reactive.api.family",
        "Ingestion": "reactive.borders.sources.ingestion",
        "Lag": "reactive.engine.runtime.lag",
        "LastBy": "reactive.api.statistics",
        "Median": "reactive.api.statistics",
        "Metrics": "reactive.api.stats",
        "Mirror": "reactive.borders.mirrors.mirror",
        "MostCommon": "reactive.api.statistics",
        "NamedGroups": "reactive.api.named_groups",
        "NamedGroupsView": "reactive.api.named_groups",
        "NamedSubscription": "reactive.api.subscriptions.listening",
        "NetChanges": "reactive.borders.frames.export",
        "NotifySource": "reactive.borders.sources.postgres.notify",
        "Obstacle": "reactive.api.obstacles",
        "OffloadStatus": "reactive.borders.offload.backend",
        "Offloaded": "reactive.borders.offload.backend",
        "Operator": "reactive.engine.operators.own_operator",
        "OperatorStats": "reactive.api.stats",
        "OrderedQuery": "reactive.api.family",
        "OrderedView": "reactive.api.ordered_view",
        "Parameter": "reactive.api.parameter",
        "Past": "reactive.engine.transactions.commit_log",
        "PastDatabase": "reactive.api.commits",
        "Patch": "reactive.engine.transactions.patches",
        "Position": "reactive.borders.sinks.durable_outbox",
        "PostgresSource": "reactive.borders.sources.postgres.source",
        "Program": "reactive.languages.datalog.program",
        "Proof": "reactive.api.proofs",
        "Quantile": "reactive.api.statistics",
        "Query": "reactive.api.family",
        "Queue": "reactive.api.stats",
        "Raised": "reactive.api.literal",
        "Recurrence": "reactive.api.recurrence",
        "Refused": "reactive.borders.sources.batch",
        "RowError": "reactive.api.literal",
        "RowWindow": "reactive.api.row_window",
        "SessionWindows": "reactive.api.windows",
        "Silent": "reactive.borders.objects.silent",
        "Sink": "reactive.borders.sinks.sink",
        "Source": "reactive.borders.sources.batch",
        "Stats": "reactive.api.stats",
        "StdDev": "reactive.api.statistics",
        "Store": "reactive.borders.durable.store",
        "Stream": "reactive.api.stream",
        "StringJoin": "reactive.api.statistics",
        "Synced": "reactive.borders.frames.loading",
        "TimeWindow": "reactive.engine.collections.time_windows",
        "TimeWindows": "reactive.engine.collections.time_windows",
        "Transaction": "reactive.engine.transactions.transaction",
        "Turning": "reactive.api.commits",
        "Variance": "reactive.api.statistics",
        "WatchedTable": "reactive.borders.sources.ingest",
        "WhyNot": "reactive.api.obstacles",
        "ZSet": "reactive.engine.collections.weight_tree",
        "check": "reactive.api.family",
        "files": "reactive.borders.sources.files.source",
        "fixpoint": "reactive.api.fixpoint",
        "from_rows": "reactive.borders.sources.batch",
        "hopping": "reactive.api.windows",
        "iterate": "reactive.api.iterate",
        "live": "reactive.api.family",
        "mirror": "reactive.borders.mirrors.mirror",
        "monotone": "reactive.api.fixpoint",
        "now": "reactive.api.clock",
        "of": "reactive.borders.objects.records",
        "poll": "reactive.borders.sources.batch",
        "session": "reactive.api.windows",
        "to_python": "reactive.engine.dataflow.delta",
        "tracked": "reactive.borders.objects.decorator",
        "tumbling": "reactive.api.windows",
    },
    OF_MODULE,
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
