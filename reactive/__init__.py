"""Tables and views as Python objects: live queries, updated by work proportional to each change.

db = Database()
students = db.table(Student)
sallies = students.where(lambda s: s.first_name == "Sally").materialize()
students.add(Student("Sally", "Fields", 31))
list(sallies)                                   # it is there
"""

from reactive.runtime.siblings import check_siblings

check_siblings()

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
from reactive.api.family import Family
from reactive.api.fixpoint import fixpoint
from reactive.api.grouped_view import GroupedView
from reactive.api.groups import Groups
from reactive.api.iterate import iterate
from reactive.api.metrics import Metrics, Queue
from reactive.api.named_groups import NamedGroups, NamedGroupsView
from reactive.api.ordered_view import OrderedView
from reactive.api.relation import GroupedRelation, OrderedRelation, Relation
from reactive.api.sort_key import SortKey, asc, desc
from reactive.api.stats import OperatorStats, Stats
from reactive.api.table import Table
from reactive.api.view import View
from reactive.collections.edits import Edit
from reactive.collections.multiset import Multiset
from reactive.database import Database
from reactive.dataflow.delta import Delta
from reactive.errors import (
    ClosedError,
    FixpointError,
    MissingKeyError,
    OffloadError,
    PlanError,
    ReactiveError,
    StaleCaptureError,
    StaleCaptureWarning,
    StratificationError,
    TableError,
    TransactionError,
    VerificationError,
)
from reactive.offload.status import Offloaded, OffloadStatus
from reactive.subscriptions.observe import Changes, Observer, Subscription
from reactive.transactions.transaction import Transaction

__all__ = [
    "Aggregate",
    "Aggregation",
    "Avg",
    "Changes",
    "ClosedError",
    "Collect",
    "Count",
    "CountDistinct",
    "Database",
    "Delta",
    "Edit",
    "Family",
    "FixpointError",
    "GroupedRelation",
    "GroupedView",
    "Groups",
    "Max",
    "Metrics",
    "Min",
    "MissingKeyError",
    "Monoid",
    "Multiset",
    "NamedGroups",
    "NamedGroupsView",
    "Observer",
    "OffloadError",
    "OffloadStatus",
    "Offloaded",
    "OperatorStats",
    "OrderedRelation",
    "OrderedView",
    "PlanError",
    "Queue",
    "ReactiveError",
    "Relation",
    "SortKey",
    "StaleCaptureError",
    "StaleCaptureWarning",
    "Stats",
    "StratificationError",
    "Subscription",
    "Sum",
    "Table",
    "TableError",
    "Transaction",
    "TransactionError",
    "VerificationError",
    "View",
    "asc",
    "desc",
    "fixpoint",
    "iterate",
]
