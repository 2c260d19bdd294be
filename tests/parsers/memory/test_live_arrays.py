"""Who holds device memory: totals, source lines, groups, and what is no memory at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.files.pprof import BATCH, METRICS, MIB, MOMENTS, PARAMETERS, Made, buffer, pprof, training
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.formats.pprof.messages import Frame, read_messages
from tpuprof.parsers.formats.xspace.source import MemorySource
from tpuprof.parsers.memory.live_arrays import BY, By, LiveArrays, Total, groups, is_library, live_arrays

CPU = (("samples", "count"), ("cpu", "nanoseconds"))
GO = (("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes"))


def page_of(
    made: list[Made], types: tuple[tuple[str, str], ...] = (("allocations", "count"), ("space", "bytes"))
) -> LiveArrays:
    profile = read_messages(MemorySource(pprof(made, types)), "memory.prof")
    return live_arrays(profile, "memory.prof", "/runs/memory.prof")


@pytest.fixture(scope="module")
def page() -> LiveArrays:
    return page_of(training(step=5))


def test_totals_by_kind_and_device(page: LiveArrays) -> None:
    on_one = 24 * 64 + 2 * 512 + 48 * 64 + 2 * 16 + 5 * 2
    assert page.buffers == Total(2 * (24 + 2 + 48 + 2 + 5), 2 * on_one * MIB)
    assert page.executables == Total(2, 51 * MIB)
    assert page.total.size_bytes == page.buffers.size_bytes + page.executables.size_bytes
    assert [(one.device, one.total.size_bytes) for one in page.devices] == [
        (f"TPU_{number}(process=0,({number},0,0,0))", on_one * MIB) for number in (0, 1)
    ]
    sizes = [one.size_bytes for one in page.allocations]
    assert sizes == sorted(sizes, reverse=True) and page.warnings == ()


@pytest.mark.parametrize(
    ("stack", "source"),
    [
        (PARAMETERS, "/home/ada/train/model.py:41"),
        (MOMENTS, "/home/ada/train/train.py:91"),  # optax is installed, the line that calls it is named
        (METRICS, "/home/ada/train/metrics.py:33"),
        (MOMENTS[:3], "/venv/lib/python3.12/site-packages/optax/transform.py:70"),
        (MOMENTS[:2], "/venv/lib/python3.12/site-packages/jax/_src/lax/lax.py:3625"),
        ((("step", "", 0), *BATCH), "/home/ada/train/data.py:57"),
        ((("cell", "/tmp/ipykernel_7/123.py", 3),), "/tmp/ipykernel_7/123.py:3"),
    ],
)
def test_the_line_that_is_named(stack: tuple[tuple[str, str, int], ...], source: str) -> None:
    (one,) = page_of([buffer(1, 8, stack)]).allocations
    assert one.frame is not None and one.frame.place == source


@pytest.mark.parametrize("by", BY)
def test_groups_part_all_that_there_is(page: LiveArrays, by: By) -> None:
    made = groups(page, by)
    members = [member for group in made for member in group.members]
    assert sorted(members) == list(range(len(page.allocations)))
    assert sum(group.total.size_bytes for group in made) == page.total.size_bytes
    assert all(len({page.allocations[member].kind for member in group.members}) == 1 for group in made)


def test_groups_say_what_they_have_in_common(page: LiveArrays) -> None:
    first, second, *_ = groups(page)
    assert (first.title, first.function) == ("/home/ada/train/train.py:91", "init_state")
    assert (first.total, len(first.devices)) == (Total(96, 96 * 64 * MIB), 2)
    assert second.title == "/home/ada/train/model.py:41" and second.total == Total(52, 2 * (24 * 64 + 2 * 512) * MIB)
    assert groups(page, "stack")[1].title == "init_layer < init_state < main < <module>"
    assert [group.title for group in groups(page, "kind")] == ["buffer", "executable"]
    (only,) = groups(page, "source", device="TPU_1(process=0,(1,0,0,0))", kind="buffer")[1:2]
    assert only.total == Total(26, (24 * 64 + 2 * 512) * MIB)


def test_without_a_traceback_a_group_has_no_name() -> None:
    (group,) = groups(page_of([buffer(2, 8, ()), buffer(1, 9, ())]))
    assert (group.title, group.source, group.function, group.total) == ("", "", "", Total(3, 25))


def test_a_profile_of_something_else_is_named() -> None:
    with pytest.raises(ProfileError) as caught:
        page_of([Made((3, 7), BATCH)], CPU)
    assert caught.value.code == "not_memory" and caught.value.exit_code == 4
    words = (
        "memory.prof is a pprof profile of time on a processor (samples in count, cpu in nanoseconds), not of device"
    )
    assert caught.value.sentence.startswith(words)
    with pytest.raises(ProfileError, match="of something else"):
        page_of([Made((3,), BATCH)], (("contentions", "count"),))


def test_memory_of_the_host_is_what_is_in_use_and_said_to_be_no_jax() -> None:
    page = page_of([Made((9, 900, 2, 200), BATCH)], GO)
    assert page.total == Total(2, 200) and page.buffers == Total(0, 0) and page.devices == ()
    assert "JAX has not written this file" in page.warnings[0]


def test_a_file_without_samples_holds_nothing() -> None:
    page = page_of([])
    assert (page.total, groups(page), page.warnings) == (Total(0, 0), (), ())


@pytest.mark.parametrize(
    "file", ["/usr/lib/python3.11/threading.py", "/v/site-packages/flax/a.py", "<frozen runpy>", ""]
)
def test_libraries(file: str) -> None:
    assert is_library(Frame("f", file, 1)) and not is_library(Frame("f", "/home/ada/lib/a.py", 1))


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1)), max_size=5))
def test_no_number_overflows(values: list[tuple[int, int]]) -> None:
    page = page_of([Made(pair, BATCH, {"kind": "buffer"}) for pair in values])
    assert page.total == Total(sum(count for count, _ in values), sum(size for _, size in values))
    for one in page.allocations:
        assert one.each_bytes is None or one.each_bytes * one.count == one.size_bytes
