"""The measurements of reading and of the steps of a change, at their smallest: they run."""

from __future__ import annotations

from asv_benchmarks import reads, steps


def test_what_is_read_of_a_view_is_in_the_container_too() -> None:
    for name, view, container, rows in reads.reads(300):
        assert rows > 0, name
        of_view, of_container = view(), container()
        if name.startswith("`"):
            assert of_view == of_container, name
        elif name.startswith("snapshot"):
            assert isinstance(of_view, list) and isinstance(of_container, list)
            assert set(of_view) == set(of_container)
    assert len(reads.table(300, rounds=1, times=300)) == 2 + len(reads.reads(300))


def test_the_steps_of_a_change_are_timed() -> None:
    times = steps.steps(rows=200, rounds=1, changes=40)
    assert {"the whole", "the twin", "store", "operator"} <= times.keys()
    assert len(steps.table(times)) == 10
