"""Threads that share work."""

from __future__ import annotations

import threading

from tpuprof.parsers.formats.thread_pool import ThreadPool


def test_alone_everything_is_done_here() -> None:
    assert set(ThreadPool(1).map(lambda _: threading.get_ident(), range(3))) == {threading.get_ident()}


def test_items_keep_their_order_and_work_is_shared() -> None:
    meet = threading.Barrier(3)
    with ThreadPool(3) as pool:
        assert pool.map(lambda item: item * item, range(20)) == [item * item for item in range(20)]
        assert sorted(pool.map(lambda _: meet.wait(timeout=60), range(3))) == [0, 1, 2]  # nobody passes alone
