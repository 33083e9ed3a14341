"""Tables and views as Python objects: live queries, updated by work proportional to each change.

db = Database()
students = db.table(Student)
sallies = students.where(lambda s: s.first_name == "Sally").materialize()
students.add(Student("Sally", "Fields", 31))
list(sallies)                                   # it is there
"""

from typing import TYPE_CHECKING

from reactive.runtime.siblings import check_siblings

check_siblings()

from optimizer.lazy import exported, lazily
from reactive.runtime.lazy_modules import LAZY_MODULES

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
from reactive.api.table import Table
from reactive.api.view import View
from reactive.collections.bag import Bag, Multiset
from reactive.collections.edits import Edit
from reactive.database import Database
from reactive.dataflow.delta import Delta
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
from reactive.runtime.foreign_names import OF_MODULE
from reactive.subscriptions.observe import Changes, Observer, Subscription

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
    from reactive.collections.weighted import ZSet
    from reactive.dataflow.plain_data import to_python
    from reactive.datalog.program import Program
    from reactive.durable.history import Past
    from reactive.durable.store import Store
    from reactive.frames.history import NetChanges
    from reactive.frames.sync import Synced
    from reactive.mirrors.mirror import AsyncMirror, Mirror, mirror
    from reactive.objects.decorator import tracked
    from reactive.objects.records import of
    from reactive.objects.silent import Silent
    from reactive.offload.status import Offloaded, OffloadStatus
    from reactive.runtime.lag import Lag
    from reactive.sinks.sink import Sink
    from reactive.sinks.target import Position
    from reactive.sources.batch import Batch, Refused
    from reactive.sources.files.source import FileSource, files
    from reactive.sources.ingestion import Ingestion
    from reactive.sources.postgres.notify import NotifySource
    from reactive.sources.postgres.source import PostgresSource
    from reactive.sources.ready import from_rows, poll
    from reactive.sources.source import Source
    from reactive.sources.watched_table import WatchedTable
    from reactive.transactions.patches import Patch
    from reactive.transactions.transaction import Transaction

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
        "AsyncMirror": "reactive.mirrors.mirror",
        "Batch": "reactive.sources.batch",
        "Family": "reactive.api.family",
        "FileSource": "reactive.sources.files.source",
        "GroupedQuery": "reactive.api.query",
        "Ingestion": "reactive.sources.ingestion",
        "Lag": "reactive.runtime.lag",
        "Metrics": "reactive.api.metrics",
        "Mirror": "reactive.mirrors.mirror",
        "NamedGroups": "reactive.api.named_groups",
        "NamedGroupsView": "reactive.api.named_groups",
        "NamedSubscription": "reactive.subscriptions.named_subscription",
        "NetChanges": "reactive.frames.history",
        "OffloadStatus": "reactive.offload.status",
        "NotifySource": "reactive.sources.postgres.notify",
        "Offloaded": "reactive.offload.status",
        "OperatorStats": "reactive.api.stats",
        "OrderedQuery": "reactive.api.query",
        "OrderedView": "reactive.api.ordered_view",
        "Past": "reactive.durable.history",
        "Patch": "reactive.transactions.patches",
        "Position": "reactive.sinks.target",
        "PostgresSource": "reactive.sources.postgres.source",
        "Program": "reactive.datalog.program",
        "Query": "reactive.api.query",
        "Queue": "reactive.api.metrics",
        "Raised": "reactive.api.row_errors",
        "Refused": "reactive.sources.batch",
        "RowError": "reactive.api.row_errors",
        "Silent": "reactive.objects.silent",
        "Sink": "reactive.sinks.sink",
        "Source": "reactive.sources.source",
        "Stats": "reactive.api.stats",
        "Store": "reactive.durable.store",
        "Synced": "reactive.frames.sync",
        "Transaction": "reactive.transactions.transaction",
        "WatchedTable": "reactive.sources.watched_table",
        "ZSet": "reactive.collections.weighted",
        "check": "reactive.api.check",
        "files": "reactive.sources.files.source",
        "fixpoint": "reactive.api.fixpoint",
        "from_rows": "reactive.sources.ready",
        "iterate": "reactive.api.iterate",
        "live": "reactive.api.query",
        "mirror": "reactive.mirrors.mirror",
        "of": "reactive.objects.records",
        "poll": "reactive.sources.ready",
        "to_python": "reactive.dataflow.plain_data",
        "tracked": "reactive.objects.decorator",
    },
    OF_MODULE,
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
