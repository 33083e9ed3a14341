"""The logical plan: a query as a tree of immutable nodes, rows not included.

    aggregate Avg(r[1]) by r[0]             Aggregate
      select (m.role, s.age)                  Select
        join s.last_name == m.last_name         Join
          table students                          Table
          table council                           Table

Nodes compare by structure, so that equal queries are found and share their operators. Rows
have the weights of bags (multisets) throughout; each node says how it changes them. The nodes are
defined by family, in `optimizer/plans/nodes/`; this module has all of them by their names.
"""

from __future__ import annotations

from optimizer.plans.facts import Node as Node
from optimizer.plans.facts import nodes_in as nodes_in
from optimizer.plans.nodes.groups import Aggregate as Aggregate
from optimizer.plans.nodes.groups import Folded as Folded
from optimizer.plans.nodes.groups import OrderBy as OrderBy
from optimizer.plans.nodes.groups import Reduce as Reduce
from optimizer.plans.nodes.groups import SortKey as SortKey
from optimizer.plans.nodes.groups import Top as Top
from optimizer.plans.nodes.joins import AntiJoin as AntiJoin
from optimizer.plans.nodes.joins import AsofJoin as AsofJoin
from optimizer.plans.nodes.joins import Join as Join
from optimizer.plans.nodes.joins import Lookup as Lookup
from optimizer.plans.nodes.joins import Match as Match
from optimizer.plans.nodes.joins import OuterJoin as OuterJoin
from optimizer.plans.nodes.joins import Product as Product
from optimizer.plans.nodes.joins import SemiJoin as SemiJoin
from optimizer.plans.nodes.linear import Extend as Extend
from optimizer.plans.nodes.linear import Negate as Negate
from optimizer.plans.nodes.linear import Previous as Previous
from optimizer.plans.nodes.linear import Select as Select
from optimizer.plans.nodes.linear import SelectMany as SelectMany
from optimizer.plans.nodes.linear import Unnest as Unnest
from optimizer.plans.nodes.linear import Where as Where
from optimizer.plans.nodes.recursion import Best as Best
from optimizer.plans.nodes.recursion import Component as Component
from optimizer.plans.nodes.recursion import Fixpoint as Fixpoint
from optimizer.plans.nodes.recursion import GroupOf as GroupOf
from optimizer.plans.nodes.recursion import Iterate as Iterate
from optimizer.plans.nodes.recursion import JoinedValue as JoinedValue
from optimizer.plans.nodes.recursion import Recursive as Recursive
from optimizer.plans.nodes.recursion import Tolerance as Tolerance
from optimizer.plans.nodes.recursion import Tolerate as Tolerate
from optimizer.plans.nodes.sets import Difference as Difference
from optimizer.plans.nodes.sets import DifferenceAll as DifferenceAll
from optimizer.plans.nodes.sets import Distinct as Distinct
from optimizer.plans.nodes.sets import Intersection as Intersection
from optimizer.plans.nodes.sets import IntersectionAll as IntersectionAll
from optimizer.plans.nodes.sets import SetOperation as SetOperation
from optimizer.plans.nodes.sets import Union as Union
from optimizer.plans.nodes.sets import UnionAll as UnionAll
from optimizer.plans.nodes.sources import Empty as Empty
from optimizer.plans.nodes.sources import Given as Given
from optimizer.plans.nodes.sources import Known as Known
from optimizer.plans.nodes.sources import Settled as Settled
from optimizer.plans.nodes.sources import Shared as Shared
from optimizer.plans.nodes.sources import Table as Table
from optimizer.plans.nodes.sources import Values as Values
from optimizer.plans.nodes.sources import View as View
