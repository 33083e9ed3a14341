"""Sums in columns: what `math.fsum` gives, whatever the floats and their order."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest

pytest.importorskip("pyspark")
from pyspark.sql import functions as F

from spark_backend.aggregates.summed import (
    FLOAT_LIMBS,
    INTEGER_LIMBS,
    float_limbs,
    float_parts,
    float_sum,
    integer_limbs,
    integer_sum,
)


def floats(draw: Random) -> float:
    kind = draw.randrange(5)
    if kind == 0:
        ordinary: float = draw.choice(
            [0.0, -0.0, 0.1, -0.1, 1e16, -1e16, 2.0**62, -(2.0**62), 2.0**-90]
        )
        return ordinary
    if kind == 1:
        return draw.uniform(-1, 1) * 10.0 ** draw.randint(-8, 18)
    size = 10.0 ** draw.randint(0, 17)
    return draw.uniform(-size, size)


def test_sums_of_floats_are_rounded_once(spark: Any) -> None:
    draw = Random(5)
    groups = {n: [floats(draw) for _ in range(draw.randint(1, 40))] for n in range(1_500)}
    for n in range(300):
        groups[n] += [-value for value in groups[n]] + [draw.choice(groups[n])]
    pairs = [(n, value) for n, values in groups.items() for value in values]
    rows = spark.createDataFrame(pairs, "g long, v double")
    parts = rows.select("g", *(F.expr(q).alias(n) for n, q in float_parts("v", "s").items()))
    columns = float_limbs("s_good", "s").items()
    limbs = parts.select("g", "s_odd", *(F.expr(q).alias(n) for n, q in columns))
    assert limbs.filter("s_odd is not null").count() == 0
    names = [f"s_{place}" for place in range(FLOAT_LIMBS)]
    sums = limbs.groupBy("g").agg(*(F.sum(name).alias(name) for name in names))
    found = dict(sums.select("g", F.expr(float_sum(names))).collect())
    assert found == {n: math.fsum(values) for n, values in groups.items()}


def test_what_has_no_limbs_is_odd(spark: Any) -> None:
    values = [math.nan, math.inf, -math.inf, 1e300, 2.0**63, 5e-324, 2.0**-97, 0.1 * 2.0**-45]
    rows = spark.createDataFrame([(v,) for v in [*values, 0.1, 2.0**-96, -(2.0**62)]], "v double")
    odd = rows.select(F.expr(float_parts("v", "s")["s_odd"]).alias("odd")).filter("odd is not null")
    assert odd.count() == len(values)


@pytest.mark.quick
def test_sums_of_integers_go_beyond_64_bits(spark: Any) -> None:
    values = [2**63 - 1] * 5 + [-(2**63)] * 2 + [-1, 7]
    rows = spark.createDataFrame([(v, 3) for v in values], "v long, w long")
    names = [f"s_{place}" for place in range(INTEGER_LIMBS)]
    limbs = integer_limbs("v", "s", may_be_odd=False)
    sums = rows.agg(*(F.sum(F.expr(f"({limbs[name]}) * w")).alias(name) for name in names))
    assert int(sums.select(F.expr(integer_sum(names))).first()[0]) == 3 * sum(values)
