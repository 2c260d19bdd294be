"""Threads that share work."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

from tpuprof.parsers.formats.crew import ALONE, Crew


def test_alone_everything_is_done_here() -> None:
    here = threading.get_ident()
    assert set(ALONE.map(lambda _: threading.get_ident(), range(3))) == {here}
    seen: list[int] = []
    ALONE.share(lambda: seen.append(threading.get_ident()))
    assert seen == [here] and not ALONE.has_help


def test_items_keep_their_order_and_work_is_shared_with_who_is_free() -> None:
    meet = threading.Barrier(3)
    with Crew(3) as crew:
        assert crew.map(lambda item: item * item, range(20)) == [item * item for item in range(20)]
        seen: list[int] = []

        def work() -> None:
            meet.wait(timeout=60)  # nobody passes before all three are here
            seen.append(threading.get_ident())

        crew.share(work)
    assert len(set(seen)) == 3


def test_what_a_helper_raises_is_raised_where_work_was_shared() -> None:
    here, meet = threading.get_ident(), threading.Barrier(2)

    def work() -> None:
        meet.wait(timeout=60)
        if threading.get_ident() != here:
            raise LookupError

    with Crew(2) as crew, pytest.raises(LookupError):
        crew.share(work)


def test_a_helper_that_never_began_keeps_nothing_that_it_was_to_work_on() -> None:
    class Columns:
        """What a line is decoded into."""

    busy, free = threading.Event(), threading.Event()

    def occupied() -> None:
        busy.set()
        free.wait(timeout=60)

    def shared(crew: Crew) -> weakref.ref[Columns]:
        columns = Columns()

        def work() -> None:
            str(columns)

        crew.share(work)
        return weakref.ref(columns)

    with Crew(2) as crew:
        others = [crew.submit(lambda _: occupied(), number) for number in range(2)]
        busy.wait(timeout=60)
        kept = shared(crew)
        gc.collect()
        assert kept() is None and not all(other.done() for other in others)
        free.set()


@pytest.mark.parametrize(("threads", "items", "with_help"), [(2, 4, 1), (4, 2, 2), (2, 2, 1), (3, 7, 1)], ids=str)
def test_help_comes_when_fewer_items_than_threads_are_left(threads: int, items: int, with_help: int) -> None:
    lock, together = threading.Lock(), threading.Barrier(min(threads, items))
    helped: list[bool] = []
    with Crew(threads) as crew:
        assert crew.has_help

        def work(number: int) -> None:
            if number < together.parties:
                together.wait(timeout=60)  # the first ones have all begun
            with lock:
                helped.append(crew.has_help)

        crew.map(work, range(items))
    assert len(helped) == items and sum(helped) >= with_help
    if items > 2 * threads - 1:
        assert not all(helped)
