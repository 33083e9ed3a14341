"""Tables and views as Python objects: live queries, updated by work proportional to each change.

db = Database()
students = db.table(Student)
sallies = students.where(lambda s: s.first_name == "Sally").materialize()
students.add(Student("Sally", "Fields", 31))
list(sallies)                                   # it is there
"""

from reactive.siblings import check_siblings

check_siblings()

from reactive.aggregates import (
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
from reactive.database import Database
from reactive.delta import Delta
from reactive.edits import Edit
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
from reactive.fixpoint import fixpoint, iterate
from reactive.grouped_view import GroupedView
from reactive.groups import Groups
from reactive.metrics import Metrics, Queue
from reactive.multiset import Multiset
from reactive.named_groups import NamedGroups, NamedGroupsView
from reactive.observe import Changes, Observer, Subscription
from reactive.offload_status import Offloaded, OffloadStatus
from reactive.ordered_view import OrderedView
from reactive.relation import GroupedRelation, OrderedRelation, Relation
from reactive.sort_key import SortKey, asc, desc
from reactive.stats import OperatorStats, Stats
from reactive.table import Table
from reactive.transaction import Transaction
from reactive.view import View

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
