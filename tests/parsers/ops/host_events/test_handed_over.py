"""The function that gets a batch from another thread, where its name says nothing: it is told by what follows it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.host_events import host_of
from tpuprof.parsers.ops.host_events.input_events import INPUT_STATS, input_waits

Event = tuple[str, int, int]
GETS, MAKES = "$criteo.py:210 preprocess_matmul_input", "$rows.py:9 shuffle"


def loop(gets: str = GETS, puts_after: int = 2, between: str = "") -> list[Event]:
    """A thread that every 1,000 gets a batch for 400, sends it, and launches a step."""
    events: list[Event] = []
    for begin in range(0, 5000, 1000):
        events += [(gets, begin, begin + 400), ("$rows.py:1 inner", begin + 100, begin + 400)]
        if between:
            events.append((between, begin + 400, begin + 450))
        events.append(("batched_device_put", begin + (450 if between else 400) + puts_after, begin + 600))
        events.append(("TfrtTpuLoadedExecutable::Execute", begin + 610, begin + 650))
    return events


def maker(name: str = MAKES, early: int = 5) -> list[Event]:
    """A thread that makes each batch, and is done with it so long before the first thread goes on."""
    return [(name, begin - 500, begin + 400 - early) for begin in range(0, 5000, 1000)]


def waited(*threads: Sequence[Event]) -> int:
    """How long the host waits for input, its sending aside, in all."""
    (start, end), _ = input_waits(host_of(*threads, stats=INPUT_STATS))
    sent = sum(finish - begin for name, begin, finish in threads[0] if name == "batched_device_put")
    return int((end - start).sum()) - sent


def test_a_function_that_waits_for_a_thread_and_comes_right_before_each_batch_is_sent_waits_for_input() -> None:
    assert waited(loop(), maker()) == 5 * 400
    steps = [("train", begin, begin + 900) for begin in range(0, 5000, 1000)]
    assert waited([*steps, *loop()], maker()) == 5 * 400


@pytest.mark.parametrize(
    ("main", "other"),
    [
        (loop(), []),  # it may do the work itself
        (loop(), maker(early=200)),  # it goes on for long after that thread is done
        (loop(), maker("ThreadpoolListener::Region")),  # the runtime's
        (loop(), maker("$threading.py:323 wait")),
        (loop(between="$log.py:3 write"), maker()),  # another function comes between
        (loop(puts_after=-100), maker()),  # it sends the batch itself
        (loop("$api.py:12 block_until_ready"), maker()),  # a result is no input
        (loop("$sync.py:12 load_state_dict"), maker()),  # weights are none
        (loop("decode"), maker()),  # an annotation may hold anything
        (loop()[:8], maker()),  # twice may be chance
        ([*loop(), ("TfrtTpuLoadedExecutable::Execute", 1050, 1090)], maker()),  # it launches programs too
        ([*loop(), ("$data_loader.py:5 __next__", 4700, 4800)], maker()),  # there is a loader of a known name
    ],
)
def test_what_else_comes_before_a_batch_is_no_input(main: list[Event], other: list[Event]) -> None:
    known = sum(end - begin for name, begin, end in main if "__next__" in name)
    assert waited(main, other) <= known
