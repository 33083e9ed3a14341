"""The types of statistics, which Python workers compute from the values of a group.

    Variance, StdDev, Median, linear Quantile     of int or float: a float
    other quantiles, MostCommon                   the type of the values
    ArgMin, ArgMax, FirstBy, LastBy               the type of the second of a pair
    BoolAnd, StringJoin, ApproxCountDistinct      bool, str, int

All but the last may be None.
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from reactive.engine.operators import statistics as kept
from spark_backend.aggregates.comparable_types import check_compares
from spark_backend.codec.schema import Plain, Record, Typed, type_name
from spark_backend.codec.values import Inexact


def statistic_result(folded: plan.Folded, own: kept.StatisticAccumulator, of: Typed) -> Typed:
    """Return the type of a statistic; raise `Inexact` if one of its values may be refused."""
    match own:
        case kept.ApproxCountAccumulator():
            return Plain(int)
        case kept.ExtremeByAccumulator(skips_places=skips):
            place, found = _pair_types(of)
            if place.optional and not skips:
                raise Inexact(f"{folded.name} may raise for None")
            check_compares(replace(place, optional=False), folded)
            return replace(found, optional=True)
        case kept.JoinTextsAccumulator(skip_none=skips):
            place, text = _pair_types(of)
            if place.optional and not (skips and place == text):
                raise Inexact(f"{folded.name} may raise for None")
            if text.kind is not str or (text.optional and not skips):
                raise Inexact(f"{folded.name} of {type_name(text)}")
            check_compares(replace(place, optional=False), folded)
            return Plain(str, optional=True)
    if of.optional and not (own.skip_none or isinstance(own, kept.MostCommonAccumulator)):
        raise Inexact(f"{folded.name} may raise for None")
    match own:
        case kept.VarianceAccumulator() if of.kind in (int, float):
            return Plain(float, optional=True)
        case kept.TruthAccumulator():
            return Plain(bool, optional=True)
        case kept.QuantileAccumulator(interpolation="lower" | "higher" | "nearest"):
            check_compares(replace(of, optional=False), folded)
            return replace(of, optional=True)
        case kept.QuantileAccumulator() if of.kind in (int, float):
            return Plain(float, optional=True)
        case kept.MostCommonAccumulator(most=None):
            return replace(of, optional=True)
        case _:
            raise Inexact(f"{folded.name} of {type_name(of)}")


def _pair_types(of: Typed) -> tuple[Typed, Typed]:
    """Return the types of the place and of the value of a pair."""
    assert isinstance(of, Record)
    place, value = of.fields
    return place, value
