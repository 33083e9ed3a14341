"""What the rows of a fragment's inputs are, and whether all of it can be done in columns."""

from __future__ import annotations

from optimizer import plan
from optimizer.plans.explain import headline
from reactive.engine.operators.plain import chain_over
from reactive.engine.remote.fragments import Fragment
from reactive.errors import OffloadError
from spark_backend.cluster.session import Session
from spark_backend.codec.schema import Kept, Pickled, Typed, kept_as
from spark_backend.fragments.compile import Compiler, Maker
from spark_backend.fragments.given import Input
from spark_backend.steps.step import NotColumns, schema_of
from spark_backend.tables.chain import Chain, Weighted


def inputs_of(session: Session, fragment: Fragment) -> tuple[Input, ...]:
    """What the rows of each input are.

    Raises
    ------
    NotColumns: rows of one are in no columns.
    """
    return tuple(Input(node, _input(session, node)) for node in fragment.inputs)


def can_be_columns(session: Session, fragment: Fragment, makers: tuple[Maker, ...] = ()) -> bool:
    """Whether all of a fragment can be done in columns."""
    return no_columns(session, fragment, makers) is None


def no_columns(session: Session, fragment: Fragment, makers: tuple[Maker, ...] = ()) -> str | None:
    """Why not all of a fragment can be done in columns, if it cannot."""
    for node in fragment.inputs:
        kept = _base(node)
        if isinstance(kept, Pickled):
            return kept.reason  # which is known without Spark
    try:
        inputs = dict(enumerate(inputs_of(session, fragment)))
        Compiler(session, inputs, makers).top(fragment.node)
    except (NotColumns, OffloadError) as error:
        return str(error).partition("\n")[0]
    return None


def _base(node: plan.Node) -> Kept:
    _, table = chain_over(node)
    if not isinstance(table, plan.Table):
        return Pickled(f"{headline(table)} is no table")
    return kept_as(table.row_type)


def _input(session: Session, node: plan.Node) -> Typed:
    chain, _ = chain_over(node)
    kept: Kept = _base(node)
    if chain and not isinstance(kept, Pickled):
        empty = session.spark.createDataFrame([], schema_of(kept))
        kept = Chain(session.paths, is_typed=True).run(chain, Weighted(empty, kept)).kept
    if isinstance(kept, Pickled):
        raise NotColumns(kept.reason)
    return kept
