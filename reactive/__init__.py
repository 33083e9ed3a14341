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
from optimizer.lazy import exported, lazily
from reactive.engine.runtime.lazy_modules import LAZY_MODULES

import_by_earlier_names()
lazily(*LAZY_MODULES)

__version__ = "0.1.0"

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
    Sum,
)
from reactive.api.columns import Column, call, col, left, right, when
from reactive.api.grouped_view import GroupedView
from reactive.api.groups import Groups
from reactive.api.relation import GroupedRelation, OrderedRelation, Relation
from reactive.api.sort_key import SortKey, asc, desc
from reactive.api.subscriptions.observe import Changes, Observer, Subscription
from reactive.api.table import Table
from reactive.api.view import View
from reactive.database import Database
from reactive.engine.collections.bag import Bag, Multiset
from reactive.engine.collections.edits import Edit
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
    VerificationError,
)

if TYPE_CHECKING:
    from reactive.api.check import check
    from reactive.api.family import Family
    from reactive.api.fixpoint import fixpoint
    from reactive.api.iterate import iterate
    from reactive.api.metrics import Metrics, Queue
    from reactive.api.named_groups import NamedGroups, NamedGroupsView
    from reactive.api.ordered_view import OrderedView
    from reactive.api.query import GroupedQuery, OrderedQuery, Query, live
    from reactive.api.row_errors import Raised, RowError
    from reactive.api.stats import OperatorStats, Stats
    from reactive.borders.durable.history import Past
    from reactive.borders.durable.store import Store
    from reactive.borders.frames.history import NetChanges
    from reactive.borders.frames.sync import Synced
    from reactive.borders.mirrors.mirror import AsyncMirror, Mirror, mirror
    from reactive.borders.objects.decorator import tracked
    from reactive.borders.objects.records import of
    from reactive.borders.objects.silent import Silent
    from reactive.borders.offload.status import Offloaded, OffloadStatus
    from reactive.borders.sinks.sink import Sink
    from reactive.borders.sinks.target import Position
    from reactive.borders.sources.batch import Batch, Refused
    from reactive.borders.sources.files.source import FileSource, files
    from reactive.borders.sources.ingestion import Ingestion
    from reactive.borders.sources.postgres.notify import NotifySource
    from reactive.borders.sources.postgres.source import PostgresSource
    from reactive.borders.sources.ready import from_rows, poll
    from reactive.borders.sources.source import Source
    from reactive.borders.sources.watched_table import WatchedTable
    from reactive.engine.collections.weighted import ZSet
    from reactive.engine.dataflow.plain_data import to_python
    from reactive.engine.runtime.lag import Lag
    from reactive.engine.transactions.patches import Patch
    from reactive.engine.transactions.transaction import Transaction
    from reactive.languages.datalog.program import Program

__all__ = [
    "Aggregate",
    "Aggregation",
    "AsyncMirror",
    "Avg",
    "Bag",
    "Batch",
    "Changes",
    "ClosedError",
    "Collect",
    "Column",
    "ConflictError",
    "Count",
    "CountDistinct",
    "Database",
    "Delta",
    "DuplicateKeyError",
    "DurabilityError",
    "Edit",
    "Family",
    "FileSource",
    "FixpointError",
    "GroupedQuery",
    "GroupedRelation",
    "GroupedView",
    "Groups",
    "Ingestion",
    "Lag",
    "Max",
    "Metrics",
    "Min",
    "Mirror",
    "MissingKeyError",
    "Monoid",
    "Multiset",
    "NamedGroups",
    "NamedGroupsView",
    "NamedSubscription",
    "NetChanges",
    "NotifySource",
    "Observer",
    "OffloadError",
    "OffloadStatus",
    "Offloaded",
    "OperatorStats",
    "OrderedQuery",
    "OrderedRelation",
    "OrderedView",
    "Past",
    "Patch",
    "PlanError",
    "Position",
    "PostgresSource",
    "Program",
    "Query",
    "Queue",
    "Raised",
    "ReactiveError",
    "Refused",
    "Relation",
    "RowError",
    "Silent",
    "Sink",
    "SortKey",
    "Source",
    "SourceError",
    "StaleCaptureError",
    "StaleCaptureWarning",
    "Stats",
    "Store",
    "StratificationError",
    "Subscription",
    "Sum",
    "Synced",
    "Table",
    "TableError",
    "Transaction",
    "TransactionError",
    "VerificationError",
    "View",
    "WatchedTable",
    "ZSet",
    "asc",
    "call",
    "check",
    "col",
    "desc",
    "files",
    "fixpoint",
    "from_rows",
    "iterate",
    "left",
    "live",
    "mirror",
    "of",
    "poll",
    "right",
    "to_python",
    "tracked",
    "when",
]

__getattr__ = exported(
    __name__,
    {
        "AsyncMirror": "reactive.borders.mirrors.mirror",
        "Batch": "reactive.borders.sources.batch",
        "Family": "reactive.api.family",
        "FileSource": "reactive.borders.sources.files.source",
        "GroupedQuery": "reactive.api.query",
        "Ingestion": "reactive.borders.sources.ingestion",
        "Lag": "reactive.engine.runtime.lag",
        "Metrics": "reactive.api.metrics",
        "Mirror": "reactive.borders.mirrors.mirror",
        "NamedGroups": "reactive.api.named_groups",
        "NamedGroupsView": "reactive.api.named_groups",
        "NamedSubscription": "reactive.api.subscriptions.named_subscription",
        "NetChanges": "reactive.borders.frames.history",
        "OffloadStatus": "reactive.borders.offload.status",
        "NotifySource": "reactive.borders.sources.postgres.notify",
        "Offloaded": "reactive.borders.offload.status",
        "OperatorStats": "reactive.api.stats",
        "OrderedQuery": "reactive.api.query",
        "OrderedView": "reactive.api.ordered_view",
        "Past": "reactive.borders.durable.history",
        "Patch": "reactive.engine.transactions.patches",
        "Position": "reactive.borders.sinks.target",
        "PostgresSource": "reactive.borders.sources.postgres.source",
        "Program": "reactive.languages.datalog.program",
        "Query": "reactive.api.query",
        "Queue": "reactive.api.metrics",
        "Raised": "reactive.api.row_errors",
        "Refused": "reactive.borders.sources.batch",
        "RowError": "reactive.api.row_errors",
        "Silent": "reactive.borders.objects.silent",
        "Sink": "reactive.borders.sinks.sink",
        "Source": "reactive.borders.sources.source",
        "Stats": "reactive.api.stats",
        "Store": "reactive.borders.durable.store",
        "Synced": "reactive.borders.frames.sync",
        "Transaction": "reactive.engine.transactions.transaction",
        "WatchedTable": "reactive.borders.sources.watched_table",
        "ZSet": "reactive.engine.collections.weighted",
        "check": "reactive.api.check",
        "files": "reactive.borders.sources.files.source",
        "fixpoint": "reactive.api.fixpoint",
        "from_rows": "reactive.borders.sources.ready",
        "iterate": "reactive.api.iterate",
        "live": "reactive.api.query",
        "mirror": "reactive.borders.mirrors.mirror",
        "of": "reactive.borders.objects.records",
        "poll": "reactive.borders.sources.ready",
        "to_python": "reactive.engine.dataflow.plain_data",
        "tracked": "reactive.borders.objects.decorator",
    },
    OF_MODULE,
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
