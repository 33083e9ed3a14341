"""The rules in their order, and the kinds of nodes that each may change.

    drop_true_where     where
    order_joins         join, product
    fold_constants      any
    a user's rule       any

Sound:  a rule with kinds returns its argument for nodes of all others, so it is not tried there.
Pays:   of 57 trials of rules 5 are left at a table, 12 at an aggregate, 31 at a `where`.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.rules.drop_distinct import drop_distinct
from optimizer.rules.drop_distinct_keys import drop_distinct_keys
from optimizer.rules.drop_identity_extend import drop_identity_extend
from optimizer.rules.drop_identity_select import drop_identity_select
from optimizer.rules.drop_inner_distinct import drop_inner_distinct
from optimizer.rules.drop_only_value import drop_only_value
from optimizer.rules.drop_self_join import drop_self_join
from optimizer.rules.drop_true_where import drop_true_where
from optimizer.rules.drop_unread_join import drop_unread_join
from optimizer.rules.empty_false_where import empty_false_where
from optimizer.rules.factor_disjunction import factor_disjunction
from optimizer.rules.flatten_nest import flatten_nest
from optimizer.rules.fold_constants import fold_constants
from optimizer.rules.fold_values import fold_values
from optimizer.rules.fuse_selects import fuse_selects
from optimizer.rules.fuse_wheres import fuse_wheres
from optimizer.rules.inline_value import inline_value
from optimizer.rules.limit_reduce import limit_reduce
from optimizer.rules.make_join import make_join
from optimizer.rules.make_select import make_select
from optimizer.rules.make_semi_join import make_semi_join
from optimizer.rules.merge_equal_sides import merge_equal_sides
from optimizer.rules.merge_selections import merge_selections
from optimizer.rules.merge_where_into_join import merge_where_into_join
from optimizer.rules.move_value_out_of_join import move_value_out_of_join
from optimizer.rules.order_joins import order_joins
from optimizer.rules.propagate_constants import propagate_constants
from optimizer.rules.propagate_empty import propagate_empty
from optimizer.rules.prune_join_inputs import prune_join_inputs
from optimizer.rules.push_test_below_join import push_test_below_join
from optimizer.rules.push_where_below_aggregate import push_where_below_aggregate
from optimizer.rules.push_where_below_difference import push_where_below_difference
from optimizer.rules.push_where_below_distinct import push_where_below_distinct
from optimizer.rules.push_where_below_extend import push_where_below_extend
from optimizer.rules.push_where_below_outer_join import push_where_below_outer_join
from optimizer.rules.push_where_below_reduce import push_where_below_reduce
from optimizer.rules.push_where_below_select import push_where_below_select
from optimizer.rules.push_where_below_semi_join import push_where_below_semi_join
from optimizer.rules.push_where_below_shared import push_where_below_shared
from optimizer.rules.push_where_below_top import push_where_below_top
from optimizer.rules.push_where_below_union import push_where_below_union
from optimizer.rules.push_where_into_fixpoint import push_where_into_fixpoint
from optimizer.rules.read_bitwise_tests import read_bitwise_tests
from optimizer.rules.read_callables import read_callables
from optimizer.rules.read_keys_as_equations import read_keys_as_equations
from optimizer.rules.shape_recursion import shape_recursion
from optimizer.rules.split_disjunction import split_disjunction
from optimizer.rules.split_where import split_where
from optimizer.rules.strengthen_outer_join import strengthen_outer_join
from optimizer.traverse import Rule

Phase = tuple[Rule, ...]

PHASES: tuple[Phase, ...] = (
    (read_callables, read_bitwise_tests, shape_recursion),
    (fold_constants, drop_true_where, empty_false_where, fold_values, propagate_empty),
    (
        *(inline_value, fold_values, drop_identity_extend, make_select, flatten_nest),
        *(drop_distinct, drop_inner_distinct, merge_equal_sides, merge_selections),
    ),
    (
        *(factor_disjunction, split_where, make_join, merge_where_into_join),
        *(move_value_out_of_join, read_keys_as_equations, strengthen_outer_join),
        *(push_where_below_select, push_where_below_union, push_where_below_distinct),
        *(push_where_below_difference, push_where_below_aggregate),
        *(push_where_below_reduce, push_where_below_top, push_where_below_extend),
        *(push_where_below_semi_join, push_where_below_outer_join, push_where_into_fixpoint),
        *(push_where_below_shared, propagate_constants, push_test_below_join, flatten_nest),
    ),
    (order_joins,),
    (
        make_semi_join,
        drop_distinct_keys,
        drop_self_join,
        drop_only_value,
        fuse_wheres,
        limit_reduce,
        fuse_selects,
        drop_identity_select,
        drop_identity_extend,
        make_select,
        drop_distinct,
    ),
    (fold_constants, drop_true_where, empty_false_where, propagate_empty),
    (drop_unread_join, prune_join_inputs, fuse_wheres, fuse_selects),
    (split_disjunction,),
    (drop_unread_join, drop_identity_select, fuse_wheres, fuse_selects),
)

Kinds = tuple[type[plan.Node], ...]
WHERE: Kinds = (plan.Where,)
EXTEND: Kinds = (plan.Extend,)
PAIRS: Kinds = (plan.Product, plan.Join, plan.OuterJoin, plan.SemiJoin, plan.AntiJoin)
SETS: Kinds = (
    *(plan.Distinct, plan.Union, plan.Difference, plan.Intersection),
    *(plan.SemiJoin, plan.AntiJoin),
)
SET_OPERATIONS: Kinds = (plan.SetOperation,)

RULE_KINDS: dict[Rule, Kinds] = {
    drop_distinct: (plan.Distinct,),
    drop_distinct_keys: (plan.Join, plan.OuterJoin),
    drop_identity_extend: EXTEND,
    drop_identity_select: (plan.Select,),
    drop_inner_distinct: SETS,
    drop_unread_join: (plan.Select, plan.Extend, plan.Aggregate, plan.SelectMany),
    drop_only_value: (plan.Aggregate,),
    drop_self_join: (plan.Join, plan.SemiJoin, plan.AntiJoin),
    drop_true_where: WHERE,
    empty_false_where: WHERE,
    factor_disjunction: (plan.Where, *PAIRS),
    flatten_nest: (plan.SelectMany, plan.Select, plan.Extend, plan.Aggregate),
    fold_values: (
        *(plan.Values, plan.Where, plan.Select, plan.Extend, plan.Distinct, plan.UnionAll),
    ),
    fuse_selects: (plan.Select, plan.Extend, plan.Aggregate, plan.SemiJoin, plan.AntiJoin),
    fuse_wheres: WHERE,
    inline_value: (plan.Product, plan.Join),
    limit_reduce: (plan.Where, plan.OrderBy),
    make_join: WHERE,
    make_select: EXTEND,
    make_semi_join: (*SETS, plan.Fixpoint),
    merge_equal_sides: SET_OPERATIONS,
    merge_selections: SET_OPERATIONS,
    merge_where_into_join: WHERE,
    move_value_out_of_join: (plan.Join, plan.OuterJoin, plan.SemiJoin, plan.AntiJoin),
    order_joins: (plan.Join, plan.Product),
    propagate_constants: PAIRS,
    prune_join_inputs: (plan.Select, plan.Aggregate),
    push_test_below_join: (plan.Join, plan.OuterJoin, plan.SemiJoin, plan.AntiJoin),
    push_where_below_aggregate: WHERE,
    push_where_below_difference: WHERE,
    push_where_below_distinct: WHERE,
    push_where_below_extend: WHERE,
    push_where_below_outer_join: WHERE,
    push_where_below_reduce: WHERE,
    push_where_below_select: WHERE,
    push_where_below_semi_join: WHERE,
    push_where_below_shared: WHERE,
    push_where_below_top: WHERE,
    push_where_below_union: WHERE,
    push_where_into_fixpoint: WHERE,
    read_bitwise_tests: (plan.Where, *PAIRS),
    read_keys_as_equations: (plan.Join, plan.SemiJoin, plan.AntiJoin),
    shape_recursion: (plan.Fixpoint,),
    split_disjunction: (plan.Join, plan.OuterJoin, plan.SemiJoin, plan.AntiJoin),
    split_where: WHERE,
    strengthen_outer_join: (plan.Where, plan.Select, plan.Extend),
}
"""The kinds of nodes that a rule may change; other rules may change any node."""
ANY: Kinds = (plan.Node,)
"""The kinds of other rules."""
