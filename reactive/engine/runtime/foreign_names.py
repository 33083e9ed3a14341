"""Names of other libraries for methods, classes and arguments that have other names here.

`closeable.py` raises the hints for attributes, `boundary.py` the hints for arguments.
"""

from __future__ import annotations


def _map_names(names: str, hint: str) -> dict[str, str]:
    """Map several names to one hint."""
    return dict.fromkeys(names.split(), hint)


OF_RELATIONS: dict[str, str] = {
    **_map_names("filter filter_by find query", "its name is where(predicate), where(town='Bonn')"),
    "exclude": "where(lambda row: not ...) has the other rows",
    **_map_names(
        "map project transmute scalars values_list with_entities", "its name is select(function)"
    ),
    **_map_names("flat_map explode", "its name is select_many(function), or unnest(function)"),
    **_map_names(
        "with_columns assign annotate mutate add_columns",
        "its name is extend(total=lambda row: ...)",
    ),
    **_map_names("sort sort_by sort_values sorted orderby", "its name is order_by(key)"),
    **_map_names("then_by thenby", "order_by takes several keys: order_by(first, desc(second))"),
    **_map_names("reverse", "its name is order_by(desc(key))"),
    **_map_names("limit take fetch", "first order_by(key), then limit(n)"),
    **_map_names("skip offset slice", "first order_by(key), then limit(n, offset=m)"),
    **_map_names("nlargest", "order_by(desc(key)).limit(n), or group_by(key).top(n, by)"),
    **_map_names("nsmallest", "order_by(key).limit(n)"),
    "on": "join(other, on=predicate) takes it as an argument",
    **_map_names(
        "merge inner_join", "its name is join(other, on=...); see left_join, right_join, full_join"
    ),
    **_map_names("outerjoin outer_join", "their names are left_join, right_join and full_join"),
    **_map_names("join_asof merge_asof", "its name is left_asof_join(other, on, at=..., of=...)"),
    **_map_names(
        "shift lag lead rank row_number dense_rank qualify",
        "over(by=..., order=...) has it: select(lambda row, w: (row, w.rank(), w.lag(row.value)))",
    ),
    **_map_names(
        "cumsum cum_sum rolling rolling_mean rolling_sum_by",
        "over(order=...) has it: select(lambda row, w: w.sum(row.value, rows=(-2, 0)))",
    ),
    **_map_names("cross_join cartesian", "join(other) without a condition has all pairs"),
    "having": "aggregate(...) first, then where(predicate)",
    **_map_names("groupby partition_by", "its name is group_by(key)"),
    **_map_names("agg summarize summarise", "its name is aggregate(...)"),
    **_map_names("mean avg average", "aggregate(Avg(...)) has it"),
    **_map_names("sum total", "aggregate(Sum(...)) has it"),
    **_map_names("min minimum", "aggregate(Min(...)) has it"),
    **_map_names("max maximum", "aggregate(Max(...)) has it"),
    **_map_names(
        "count size length", "aggregate(Count()) is a query of it; len(view) is the number of now"
    ),
    **_map_names("median", "aggregate(Median(...)) has it"),
    **_map_names("std stddev", "aggregate(StdDev(...)) has it"),
    **_map_names("var variance", "aggregate(Variance(...)) has it"),
    **_map_names("quantile percentile", "aggregate(Quantile(...)) has it"),
    **_map_names("mode", "aggregate(MostCommon(...)) has it"),
    **_map_names("idxmin argmin min_by", "aggregate(ArgMin(...)) has it"),
    **_map_names("idxmax argmax max_by", "aggregate(ArgMax(...)) has it"),
    **_map_names("nunique n_unique", "aggregate(CountDistinct(...)) has it"),
    **_map_names("unique drop_duplicates", "its name is distinct()"),
    **_map_names("concat append vstack union_by_name start_with", "its name is union_all(other)"),
    **_map_names("except_ except_all minus subtract", "its name is difference(other)"),
    **_map_names("intersect", "its name is intersection(other)"),
    **_map_names("pipe", "queries are made by methods: relation.where(...).select(...)"),
    **_map_names("rename drop", "select the fields that are to stay: select('id', 'total')"),
    **_map_names("items to_dict keys values", "materialize() it first; the view has rows"),
    **_map_names(
        "rows collect all to_list fetchall execute", "materialize() it first; list(view) has rows"
    ),
    **_map_names(
        "to_dicts iter_rows iterrows itertuples",
        "materialize() it first; view.to_python() has dictionaries, list(view) rows",
    ),
    "value": "materialize() it first; the view has the value",
    **_map_names(
        "one scalar one_or_none fetchone",
        "materialize() it first; the view has its value, or first()",
    ),
    **_map_names("exists empty is_empty any", "materialize() it first; a view with rows is true"),
    **_map_names(
        "dtype dtypes schema",
        "view.to_pandas() has the rows as a DataFrame, view.to_arrow() as columns",
    ),
    **_map_names("loc iloc", "where(predicate) has the rows for which it is true"),
    **_map_names("shape", "materialize() it first; len(view) is the number of rows"),
    **_map_names(
        "on_change on_update on_next listen watch do tap for_each connect add_listener",
        "its name is subscribe(callback)",
    ),
    **_map_names("distinct_until_changed", "subscribe(callback) hears of changes only"),
    **_map_names(
        "combine_latest with_latest_from zip", "join(other, on=...) has what belongs together"
    ),
    **_map_names("scan", "aggregate(...) has what the rows come to by now"),
    **_map_names("view create_view as_view live persist cache", "its name is materialize()"),
}
"""Names of other libraries for methods of queries, tables and views, with their names here."""

OF_TABLES: dict[str, str] = {
    **_map_names("insert append create push put save", "its name is add(row)"),
    **_map_names(
        "insert_many insert_all add_many bulk_create extend_rows add_rows",
        "its name is add_all(rows)",
    ),
    **_map_names(
        "update_all update_many", "update(key, total=3) changes a row; upsert_all(rows) several"
    ),
    **_map_names("upsert_many merge_rows bulk_update", "its name is upsert_all(rows)"),
    **_map_names(
        "set replace setdefault insert_or_replace update_or_create", "its name is upsert(row)"
    ),
    **_map_names("get_or_create", "table.get(key) or table.add(row)"),
    **_map_names("delete_all delete_many", "its name is remove_all(rows), or clear()"),
    **_map_names("truncate", "its name is clear()"),
    **_map_names(
        "drop", "db.drop(table) ends a table, delete(key) a row; select('id') leaves fields out"
    ),
    **_map_names(
        "commit flush", "each change is a commit; `with db.transaction():` makes several one"
    ),
    **_map_names("rows collect all to_list fetchall", "list(table) has them"),
    **_map_names(
        "to_dicts iter_rows iterrows itertuples", "[to_python(row) for row in table] has them"
    ),
    **_map_names("size length shape", "len(table) is the number of rows"),
    **_map_names("exists empty is_empty any", "a table with rows is true; `row in table`"),
    **_map_names("to_dict", "dict(table) of a keyed one has rows by key"),
    **_map_names(
        "value one scalar one_or_none fetchone", "table[key], table.get(key) or table.first()"
    ),
}

OF_PARAMETERS: dict[str, str] = {
    **_map_names("value current get_value", "parameter() is its value"),
    **_map_names("assign write set_value", "its name is set(value)"),
}

OF_VIEWS: dict[str, str] = {
    **_map_names("rows collect all to_list fetchall", "list(view) has them"),
    **_map_names(
        "to_dicts iter_rows iterrows itertuples", "its name is to_python(); list(view) has rows"
    ),
    **_map_names("size length shape", "len(view) is the number of rows"),
    **_map_names("exists empty is_empty any", "a view with rows is true; `row in view`"),
    **_map_names("to_dict", "dict(view) of a grouped one has aggregates by key"),
    **_map_names(
        "one scalar one_or_none fetchone", "view.value is the only row, view.first() the first"
    ),
    **_map_names(
        "keys values", "a view of groups has them: group_by(key).aggregate(...).materialize()"
    ),
    **_map_names("refresh update recompute", "a view is up to date after every commit"),
    **_map_names(
        "insert add append upsert delete remove", "change the tables that it is of: view.tables()"
    ),
    **_map_names("unsubscribe dispose stop drop destroy", "its name is close()"),
}

OF_SUBSCRIPTIONS: dict[str, str] = _map_names(
    "unsubscribe dispose cancel stop detach disconnect remove", "its name is close()"
)

OF_DELTAS: dict[str, str] = {
    **_map_names("inserted inserts added_rows new created", "its name is added"),
    **_map_names("deleted deletes removed_rows old dropped", "its name is removed"),
    **_map_names(
        "changed updates modified", "its name is updated: pairs of an old row and a new one"
    ),
    **_map_names(
        "rows changes", "items() has rows with weights; added, removed and updated have rows"
    ),
}

OF_DATABASES: dict[str, str] = {
    **_map_names(
        "create_table add_table collection create_collection", "its name is table(row_type)"
    ),
    **_map_names(
        "read_csv read_parquet scan_csv read_json", "table_from(path), or watch(pattern, Row)"
    ),
    **_map_names("register from_pandas from_polars from_arrow", "its name is table_from(frame)"),
    **_map_names(
        "begin atomic session begin_nested", "its name is transaction(): `with db.transaction():`"
    ),
    **_map_names(
        "commit rollback",
        "each change is a commit; an error in `with db.transaction():` undoes all",
    ),
    **_map_names("cursor connect", "sql(text) is a query, execute(text) a statement"),
    **_map_names("create_view view materialize", "sql(text).materialize(), or a query of a table"),
    **_map_names(
        "subscribe on_change listen on watch_table", "subscribe to a table, query or view of it"
    ),
    **_map_names("get_table", "tables() has all of them"),
    **_map_names("drop_table delete_table remove_table", "its name is drop(table)"),
    **_map_names("save dump backup_to", "Database('file.db') keeps its tables in a file"),
    **_map_names("stop dispose shutdown", "its name is close()"),
}

OF_GROUPS: dict[str, str] = {
    **_map_names("count size", "aggregate(Count()) has it"),
    **_map_names("sum", "aggregate(Sum(...)) has it"),
    **_map_names("mean avg average", "aggregate(Avg(...)) has it"),
    **_map_names("min", "aggregate(Min(...)) has it"),
    **_map_names("max", "aggregate(Max(...)) has it"),
    **_map_names("agg", "its name is aggregate(...)"),
    **_map_names("apply map", "its name is reduce(lambda key, rows: ...)"),
    **_map_names("head limit", "its name is top(n, by)"),
    **_map_names("median", "aggregate(Median(...)) has it"),
    **_map_names("std stddev", "aggregate(StdDev(...)) has it"),
    **_map_names("var variance", "aggregate(Variance(...)) has it"),
    **_map_names("quantile percentile", "aggregate(Quantile(...)) has it"),
    **_map_names("mode", "aggregate(MostCommon(...)) has it"),
    **_map_names("idxmin argmin min_by", "aggregate(ArgMin(...)) has it"),
    **_map_names("idxmax argmax max_by", "aggregate(ArgMax(...)) has it"),
    **_map_names("nunique n_unique", "aggregate(CountDistinct(...)) has it"),
    **_map_names("list collect", "aggregate(Collect(...)) has it"),
}

OF_MODULE: dict[str, str] = {
    **_map_names("Mean Average", "its name is Avg"),
    **_map_names("Total", "its name is Sum"),
    **_map_names("Minimum", "its name is Min"),
    **_map_names("Maximum", "its name is Max"),
    **_map_names("NUnique CountUnique Distinct", "its name is CountDistinct"),
    **_map_names("List ToList ArrayAgg Array Gather", "its name is Collect"),
    **_map_names("Mode", "its name is MostCommon"),
    **_map_names("Std Stddev StDev StandardDeviation", "its name is StdDev"),
    **_map_names("Var", "its name is Variance"),
    **_map_names("Percentile PercentileCont", "its name is Quantile"),
    **_map_names("All Every", "its name is BoolAnd"),
    **_map_names("Any_ Some", "its name is BoolOr"),
    **_map_names("MinBy", "its name is ArgMin"),
    **_map_names("MaxBy", "its name is ArgMax"),
    **_map_names("StringAgg Join GroupConcat", "its name is StringJoin"),
    **_map_names("HyperLogLog ApproxNUnique", "its name is ApproxCountDistinct"),
    **_map_names("First Last", "FirstBy(by), LastBy(by); of whole rows, group_by(key).first(by)"),
    **_map_names("DB Db Connection Engine Session Store_ connect", "its name is Database"),
    **_map_names("column field F c Field pl", "its name is col"),
    **_map_names("descending Desc", "its name is desc"),
    **_map_names("ascending Asc", "its name is asc"),
    **_map_names("case Case iff", "its name is when(test, then, otherwise)"),
    **_map_names(
        "reactive observable Observable", "its name is tracked; tables and views are observed"
    ),
    **_map_names("transaction atomic", "it is a method: db.transaction()"),
    **_map_names("Subject Collection DataFrame Dataset", "db.table(row_type) makes a Table"),
    **_map_names("KeyMissing MissingKey NotFound", "its name is MissingKeyError"),
    **_map_names("subscribe", "it is a method of tables, relations and views"),
}

_JOINS = "its kinds are methods: left_join, right_join, full_join, semi_join, anti_join"
_KEYS = 'left_key="a", right_key="b", or on=("a", "b")'
KEYWORDS: dict[str, dict[str, str]] = {
    "join": {"how": _JOINS, "isouter": _JOINS, "type": _JOINS, "left_on": _KEYS, "right_on": _KEYS}
    | {
        "by": 'on="id"',
        "using": 'on="id"',
        "key": 'on="id"',
        "suffixes": "bind(...) names bindings",
    },
    "order_by": dict.fromkeys(
        ("reverse", "desc", "ascending", "asc"),
        "order_by(desc(key)), or descending=True, has the greatest first",
    )
    | dict.fromkeys(("by", "key_", "columns"), 'order_by("total"), order_by(lambda row: ...)')
    | {"na_position": 'nulls="first" or nulls="last"', "limit": "order_by(key).limit(n)"},
    "group_by": {"by": 'group_by("town"), group_by(lambda row: ...)'},
    "distinct": dict.fromkeys(("subset", "by", "on"), "group_by(key).first(by) has a row per key"),
    "limit": {"skip": "limit(n, offset=m)", "count": "limit(n)"},
    "table": {
        "primary_key": 'key="id"',
        "pk": 'key="id"',
        "unique": 'key="id"',
        "schema": "the first argument is the class of the rows",
        "columns": "the first argument is the class of the rows",
        "rows": "add_all(rows) adds them",
        "data": "table_from(frame) takes a frame, add_all(rows) rows",
        "index": "queries make their indexes; key= names what rows are found by",
    },
    "show": {"n": "limit=20", "rows": "limit=20"},
    "materialize": {"live": "every view is live", "refresh": "every view is live"},
    "subscribe": dict.fromkeys(
        ("on_next", "on_change", "observer"), "the callback is the first argument"
    ),
}
"""Arguments of other libraries with their names here, by the method."""
