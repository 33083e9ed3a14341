"""Compute the queries of the pipeline by Spark alone, from all files, without live views."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from examples.graphs.page_rank import DIGITS
from examples.pipeline.pipeline import ROUNDS
from examples.pipeline.rows import Customer


def evaluate(spark: Any, folder: Path, customers: Sequence[Customer]) -> None:
    """Evaluate both queries, and write their rows."""
    people = spark.createDataFrame(
        [(c.number, c.region) for c in customers], "number long, region string"
    )
    _write(_revenue(spark.read.parquet(f"{folder}/orders"), people), folder, "revenue")
    _write(_ranks(spark.read.parquet(f"{folder}/links")), folder, "ranks")


def _write(rows: Any, folder: Path, name: str) -> None:
    rows.coalesce(1).write.mode("overwrite").parquet(f"{folder}/again/{name}")


def _revenue(orders: Any, customers: Any) -> Any:
    there = orders.groupBy("number", "customer", "amount").sum("weight").where("`sum(weight)` > 0")
    joined = there.join(customers.withColumnRenamed("number", "customer"), "customer")
    return (
        joined.groupBy("region")
        .agg({"number": "count", "amount": "sum"})
        .toDF("region", "n", "total")
    )


def _ranks(links: Any) -> Any:
    once = links.groupBy("src", "dst").sum("weight").where("`sum(weight)` > 0").cache()
    counts = once.groupBy("src").count()
    shares = once.join(counts, "src").select("src", "dst", "count").cache()
    pages = once.selectExpr("src page").union(once.selectExpr("dst page")).distinct().cache()
    ranks = pages.selectExpr("page", "1.0d rank")
    for _ in range(ROUNDS):
        given = ranks.join(shares, ranks.page == shares.src).selectExpr(
            "dst page", "rank / count rank"
        )
        total = given.union(pages.selectExpr("page", "0.0d rank")).groupBy("page").sum("rank")
        ranks = total.selectExpr("page", f"round(0.15 + 0.85 * `sum(rank)`, {DIGITS}) rank")
    return ranks
