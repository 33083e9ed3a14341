"""Plugin of mypy: infer types from the names of fields and columns.

    [tool.mypy]
    plugins = ["reactive.mypy"]

    db.table(Order, key="id")                     Table[Order, int]
    db.table(Order, key=["shop", "id"])           Table[Order, tuple[str, int]]
    orders.aggregate(n=Count(), total=Sum("x"))   a relation of rows with the fields `n` and `total`
    orders.group_by(f).aggregate(n=Count())       the same by key: view[key].n is an int
    orders.aggregate(most=Max(lambda o: o.total), least=Min("day"))    values of a row's own types
    m.related(Order.customer)                     Relation[Order, Customer]

Without the plugin these keys and rows are `Any`.

Needs: mypy, which loads this module; nothing else imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mypy import nodes, types
from mypy.checker import TypeChecker
from mypy.maptype import map_instance_to_supertype
from mypy.plugin import MethodContext, Plugin

DATABASE = "reactive.database.Database"
MIRROR = "reactive.borders.mirrors.mirror.Mirror"
AGGREGATION = "reactive.api.aggregates.Aggregation"
ROOMS = (
    "reactive.api.",
    "reactive.languages.sql.",
    "reactive.borders.offload.",
    "reactive.borders.sources.",
)
"""Packages with the classes of tables, relations and views."""
MANY = ("builtins.list", "builtins.set", "builtins.frozenset", "typing.Sequence")


class ReactivePlugin(Plugin):
    """Infer the types of values that strings and keywords name."""

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], types.Type] | None:
        """Return the function that infers the type of a method's result, if any."""
        if fullname == f"{DATABASE}.table":
            return table_with_key
        if fullname.startswith(ROOMS) and fullname.endswith(".aggregate"):
            return aggregate_with_names
        return related if fullname == f"{MIRROR}.related" else None


def table_with_key(context: MethodContext) -> types.Type:
    """Return `Table[T, K]`, with the type of the field, or fields, that `key=` names."""
    made = types.get_proper_type(context.default_return_type)
    key = _argument(context, "key")
    if not isinstance(made, types.Instance) or len(made.args) != 2 or key is None:
        return made
    row, found = made.args[0], None
    if isinstance(key, nodes.StrExpr):
        found = _field(context, row, key.value)
    elif isinstance(key, nodes.ListExpr | nodes.TupleExpr):
        names = [item.value for item in key.items if isinstance(item, nodes.StrExpr)]
        kinds = [_field(context, row, name) for name in names]
        known = [kind for kind in kinds if kind is not None]
        if len(known) == len(key.items) > 1:
            found = types.TupleType(known, context.api.named_generic_type("builtins.tuple", [_ANY]))
        elif len(known) == len(key.items) == 1:
            found = known[0]
    return made if found is None else made.copy_modified(args=[row, found])


def aggregate_with_names(context: MethodContext) -> types.Type:
    """Return the relation, or groups, whose rows have a field for each named aggregate."""
    made = types.get_proper_type(context.default_return_type)
    if (
        not isinstance(made, types.Instance)
        or not made.args
        or _argument(context, "as_") is not None
    ):
        return made
    if not isinstance(types.get_proper_type(made.args[-1]), types.AnyType):
        return made
    fields: dict[str, types.Type] = {}
    for names, kinds, given in zip(context.arg_names, context.arg_types, context.args, strict=True):
        for name, kind, expression in zip(names, kinds, given, strict=True):
            value = _value_of(context, kind, expression)
            if name is None or value is None:
                return made
            fields[name] = value
    if not fields:
        return made
    row = _build_row_class(context, fields)
    return made.copy_modified(args=[*made.args[:-1], row])


def related(context: MethodContext) -> types.Type:
    """Return `Relation[Left, Right]` for `m.related(Left.right)`."""
    made = types.get_proper_type(context.default_return_type)
    given = _argument(context, "relationship")
    if not isinstance(given, nodes.MemberExpr) or not isinstance(given.expr, nodes.RefExpr):
        return made
    if not isinstance(made, types.Instance) or not isinstance(given.expr.node, nodes.TypeInfo):
        return made
    kind = types.get_proper_type(context.arg_types[0][0])
    right = (
        types.get_proper_type(kind.args[0])
        if isinstance(kind, types.Instance) and kind.args
        else None
    )
    while isinstance(right, types.Instance) and right.type.fullname in MANY and right.args:
        right = types.get_proper_type(right.args[0])
    if right is None:
        return made
    left = types.Instance(given.expr.node, [_ANY] * len(given.expr.node.type_vars))
    rows = types.TupleType([left, right], context.api.named_generic_type("builtins.tuple", [_ANY]))
    return made.copy_modified(args=[*rows.items])


def _argument(context: MethodContext, name: str) -> nodes.Expression | None:
    """Return the expression of an argument, None if it is omitted."""
    for formal, given in zip(context.callee_arg_names, context.args, strict=True):
        if formal == name and given:
            return given[0]
    return None


def _field(context: MethodContext, row: types.Type, name: str) -> types.Type | None:
    """Return the type of a field of a row; None if its class does not declare it."""
    kind = types.get_proper_type(row)
    if isinstance(kind, types.TupleType):
        kind = kind.partial_fallback
    if not isinstance(kind, types.Instance) or kind.type.get(name) is None:
        return None
    checker = context.api
    assert isinstance(checker, TypeChecker)
    return checker.expr_checker.analyze_external_member_access(name, row, context.context)


def _value_of(
    context: MethodContext, aggregate: types.Type, given: nodes.Expression
) -> types.Type | None:
    """Return the type of an aggregate's value; None for any other object."""
    kind = types.get_proper_type(aggregate)
    if not isinstance(kind, types.Instance):
        return None
    info = next((base for base in kind.type.mro if base.fullname == AGGREGATION), None)
    if info is None:
        return None
    asked = map_instance_to_supertype(kind, info)
    value = asked.args[-1]
    if not _has_any(value):
        return value
    # `**named: Aggregation[..., Any]` has made the value Any: look again, as if it were unknown
    if isinstance(given, nodes.CallExpr):
        given = _with_callable(context, given, asked.args[:-1])
    checker = context.api
    assert isinstance(checker, TypeChecker)
    wanted = asked.copy_modified(args=[*asked.args[:-1], types.ErasedType()])
    with checker.msg.filter_errors(), checker.local_type_map:
        found = types.get_proper_type(checker.expr_checker.accept(given, type_context=wanted))
    if not isinstance(found, types.Instance) or not found.type.has_base(AGGREGATION):
        return value
    return map_instance_to_supertype(found, info).args[-1]


def _with_callable(
    context: MethodContext, given: nodes.CallExpr, rows: Sequence[types.Type]
) -> nodes.CallExpr:
    """Return `Max(f)` for `Max("total")`, where f reads that field of the only binding."""
    name = given.args[0] if given.args else None
    field = None
    if isinstance(name, nodes.StrExpr) and len(rows) == 1:
        field = _field(context, rows[0], name.value)
    if field is None:
        return given
    function = context.api.named_generic_type("builtins.function", [])
    reads = types.CallableType([rows[0]], [nodes.ARG_POS], [None], field, function)
    made = nodes.CallExpr(
        given.callee, [nodes.TempNode(reads), *given.args[1:]], given.arg_kinds, given.arg_names
    )
    made.set_line(given)
    return made


def _has_any(kind: types.Type) -> bool:
    """Return True for Any, and for a type that contains Any."""
    found = types.get_proper_type(kind)
    if isinstance(found, types.Instance):
        return any(map(_has_any, found.args))
    return isinstance(found, types.AnyType)


def _build_row_class(context: MethodContext, fields: dict[str, types.Type]) -> types.Type:
    """Return a class of named tuples with the given fields, made once for each call."""
    checker = context.api
    assert isinstance(checker, TypeChecker)
    module = checker.modules[checker.tree.fullname]
    name = f"<Row of {', '.join(fields)} at {context.context.line}:{context.context.column}>"
    base = checker.named_generic_type("builtins.tuple", [_ANY])
    _, info = checker.make_fake_typeinfo(module.fullname, name, "Row", [base])
    for field, kind in fields.items():
        var = nodes.Var(field, kind)
        var.info, var._fullname, var.is_property = info, f"{info.fullname}.{field}", True
        info.names[field] = nodes.SymbolTableNode(nodes.MDEF, var)
    module.names[name] = nodes.SymbolTableNode(nodes.GDEF, info)
    return types.Instance(info, [])


_ANY = types.AnyType(types.TypeOfAny.explicit)


def plugin(version: str) -> type[Plugin]:
    """Return the plugin class for mypy."""
    return ReactivePlugin
