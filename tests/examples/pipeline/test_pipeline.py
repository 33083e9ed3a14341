"""The pipeline: its files, its oracle, and a run that is killed in the middle."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("pyarrow")
import pyarrow.parquet as pq

from examples import arguments
from examples.graphs.edges import Edge
from examples.graphs.page_rank import page_rank
from examples.pipeline import chart, picture, pipeline
from examples.pipeline.__main__ import main
from examples.pipeline.compare import differences
from examples.pipeline.feed import Totals, batches, customers, write
from examples.pipeline.rows import Customer, Order, Revenue
from examples.pipeline.worker import Told
from reactive import Database, OffloadError
from spark_backend import RowsFolder
from spark_backend.cluster.session import check_spark
from tests.doctests import tried

ROOT = Path(__file__).parents[3]
BATCHES, ORDERS, CUSTOMERS = 4, 200, 30


def totals(count: int = BATCHES) -> Totals:
    found = Totals(Counter(), Counter())
    for batch in batches(count, ORDERS, CUSTOMERS, 0):
        found.take(batch)
    return found


def test_a_seed_gives_the_same_batches_and_another_gives_others() -> None:
    first, again, other = (list(batches(BATCHES, ORDERS, CUSTOMERS, seed)) for seed in (0, 0, 1))
    assert first == again != other


def test_only_what_is_there_goes() -> None:
    found = Totals(Counter(), Counter())
    for batch in batches(BATCHES, ORDERS, CUSTOMERS, 0):
        found.take(batch)
        assert set(found.orders.values()) | set(found.links.values()) == {1}
    gone = int(ORDERS * 0.05)
    assert len(found.orders) == BATCHES * ORDERS - (BATCHES - 1) * gone


def test_the_files_of_a_batch_say_what_it_is(tmp_path: Path) -> None:
    first, second = batches(2, ORDERS, CUSTOMERS, 0)
    write(tmp_path, 0, first)
    write(tmp_path, 1, second)
    rows = pq.read_table(tmp_path / "orders" / "000001.parquet").to_pylist()
    found = [(Order(r["number"], r["customer"], r["amount"]), r["weight"]) for r in rows]
    assert tuple(found) == second.orders
    assert sorted(path.name for path in (tmp_path / "links").iterdir()) == [
        "000000.parquet",
        "000001.parquet",
    ]


def test_tables_that_lack_something_are_found(tmp_path: Path) -> None:
    db, all_of_it = Database(), totals()
    orders, people, links = db.table(Order), db.table(Customer), db.table(Edge)
    revenue = pipeline.revenue(orders, people).materialize("revenue")
    ranks = page_rank(links, rounds=pipeline.ROUNDS).materialize("ranks")
    people.add_all(customers(CUSTOMERS))
    orders.add_all(all_of_it.orders)
    links.add_all(all_of_it.links)
    for view, row_type in ((revenue, Revenue), (ranks, None)):
        view.write_to(RowsFolder(tmp_path / str(view.name), row_type=row_type)).flush()
    assert differences(tmp_path, all_of_it, customers(CUSTOMERS)) == []
    extra = Order(10**6, 0, 1.0)
    all_of_it.orders[extra] = 1
    assert differences(tmp_path, all_of_it, customers(CUSTOMERS)) == ["revenue: 2 rows"]
    all_of_it.links = Counter(list(all_of_it.links)[6:])
    assert len(differences(tmp_path, all_of_it, customers(CUSTOMERS))) == 2


def test_the_examples_in_docstrings_are_right() -> None:
    for module in (arguments, chart, pipeline):
        found = tried(module)
        assert found.attempted and not found.failed


def test_the_picture_has_a_point_for_each_batch_and_higher_ones_for_more_seconds(
    tmp_path: Path,
) -> None:
    told = [Told(1, 2.0, 1.0, 0), Told(2, 2.5, 4.0, 0), Told(3, 2.0, 30.0, 0)]
    picture.write(tmp_path / "found" / "batches.svg", told, [1_000, 2_000, 3_000])
    root = ElementTree.parse(tmp_path / "found" / "batches.svg").getroot()
    name = "{http://www.w3.org/2000/svg}"
    lines = [
        [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
        for line in root.iter(f"{name}polyline")
    ]
    heights = [[-y for _, y in line] for line in lines]
    assert heights[0][0] == heights[0][2] < heights[0][1] < heights[1][1] < heights[1][2]
    assert [len(line) for line in lines] == [3, 3]
    for line in lines:
        assert all(0 < x < picture.WIDTH and 0 < y < picture.HEIGHT for x, y in line)
    texts = [text.text for text in root.iter(f"{name}text")]
    assert {"0", "30", "3,000", "live: 2.0 s", "from scratch: 30.0 s"} <= {*texts}


@pytest.mark.long
def test_a_pipeline_that_is_killed_is_gone_on_with_and_right_at_the_end() -> None:
    try:
        check_spark()
    except OffloadError as error:
        pytest.skip(str(error))
    sizes = ["--batches", "2", "--orders", "500", "--customers", "50"]
    command = [sys.executable, "-m", "examples.pipeline", *sizes]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "into the batch; another process is there after" in done.stdout
    told = done.stdout.splitlines()
    assert [line.split()[0] for line in told[1:2]] == ["0"]
    assert told[-1] == "both tables are the same as by plain Python, after 2 batches"


def test_without_java_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    assert main([]) == 2
    assert "Java 17" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--orders", "0"], ["--batches", "few"], ["more"]])
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
