"""Several hosts on the timeline: each drawn as it is alone, read when it comes into sight, given up when out of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.support.app.scene import after, app_over, scene
from tests.support.app.stage import frame, settled, until
from tests.support.build import present
from tests.support.composed.aligned_hosts import MS, US, late_host, profiles, timelines
from tests.support.golden import check_golden
from tests.support.made.timelines import timeline_keys, two_cores
from tests.tui.pages.timeline.test_opening import text
from tpuprof.parsers.timeline.hosts.clocks import HostClocks
from tpuprof.parsers.timeline.hosts.joined import HostRead, first_section, shifted
from tpuprof.parsers.timeline.model import Clock, Timeline
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import ASCII, BLOCK, Line, plain
from tpuprof.tui.pages.timeline.draw.frame import TOP_LINES, TimelinePage
from tpuprof.tui.pages.timeline.hosts import Hosts
from tpuprof.tui.pages.timeline.rows import TimelineRow

GOLDEN = Path(__file__).parent / "golden"
WIDTH, GUTTER, HEIGHT = 96, 19, 120


def read(number: int, made: Timeline, clock: Clock) -> HostRead:
    return HostRead(f"host{number}", f"host{number}.pb", shifted(made, clock.shift_ps), clock, True)


def unread(number: int, problem: str = "") -> HostRead:
    return HostRead(f"host{number}", f"host{number}.pb", problem=problem)


def page_of(hosts: Hosts) -> TimelinePage:
    return TimelinePage(hosts.timeline, len(hosts.reads), hosts)


def met(late_us: int = 1500, hosts: int = 2) -> Hosts:
    """Hosts that meet in collectives, the last one late."""
    busy = [[1000] * 6] * (hosts - 1) + [[late_us] * 6]
    clocks = HostClocks()
    made = timelines(profiles(busy, [3_700 * US * at for at in range(hosts)]))
    return Hosts([read(number, each, clocks.clock(each)) for number, each in enumerate(made)])


def drawn(page: TimelinePage, height: int = HEIGHT) -> dict[TimelineRow, Line]:
    """What is drawn right of the names, by row, but for the cursor's."""
    lines = page.lines(Pen(WIDTH, BLOCK), height)
    rows = page.view.rows
    cells = {rows.all[at]: lines[TOP_LINES + line] for line, at in enumerate(rows.in_sight) if at != rows.cursor}
    return {row: right_of(line, GUTTER) for row, line in cells.items() if row.kind not in ("host", "section")}


def right_of(line: Line, cells: int) -> Line:
    out = []
    for words, key in line:
        if len(words) > cells:
            out.append((words[cells:], key))
        cells = max(0, cells - len(words))
    return tuple(out)


@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(
    st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=4),
    st.data(),
    st.tuples(st.integers(0, 839), st.integers(1, 400)),
)
def test_a_host_is_drawn_as_it_is_alone(shifts: list[int], data: st.DataObject, window: tuple[int, int]) -> None:
    alone, made = TimelinePage(two_cores()), two_cores()
    hosts = Hosts([read(number, made, Clock("collectives", shift, 3, 1)) for number, shift in enumerate(shifts)])
    chosen = data.draw(st.sets(st.integers(0, len(shifts) - 1), min_size=1))
    page = page_of(hosts)
    for each in (page, alone):
        each.lines(Pen(WIDTH, BLOCK), HEIGHT)
        each.view.event = None
    closed = frozenset(range(len(shifts))) - chosen
    page.view.rows.arrange(replace(page.view.rows.folding, hosts=closed, closed=frozenset()))
    page.view.rows.cursor = alone.view.rows.cursor = 0
    for number in chosen:
        shift, part = shifts[number], page.view.timeline.hosts[number]
        begin, end = window[0] * MS, (window[0] + window[1]) * MS
        page.view.window = replace(page.view.window, start_ps=begin + shift, end_ps=end + shift)
        alone.view.window = replace(alone.view.window, start_ps=begin, end_ps=end)
        page.view.cursor_ps, alone.view.cursor_ps = begin + shift, begin
        together, single = _drawn_in_window(page), _drawn_in_window(alone)
        assert single
        for row, cells in single.items():
            assert together[row._replace(section=row.section + part.first)] == cells


def _drawn_in_window(page: TimelinePage) -> dict[TimelineRow, Line]:
    """As `drawn`, but in the window as it is, which may reach beyond the trace."""
    page.view.resize = lambda *_: None  # type: ignore[method-assign]
    page.view.rows.height = HEIGHT
    return drawn(page, HEIGHT + 20)


def test_who_waits_for_whom_is_one_picture() -> None:
    hosts = met(hosts=4)
    hosts.reads += [unread(4), unread(5, "host5.xplane.pb is empty.")]
    page = page_of(hosts)
    page.lines(Pen(80, BLOCK), 21)
    page.view.next_step(1)
    page.view.fold_all()
    check_golden(GOLDEN / "timeline-hosts-80-block.txt", text(page, 80, 21))
    assert text(page, 80, 21, ASCII).isascii()


def test_the_first_host_is_open_and_the_others_are_a_row_each() -> None:
    view = page_of(met(hosts=3)).view
    kinds = [(row.kind, row.section) for row in view.rows.all if row.kind == "host"]
    assert kinds == [("host", 0), ("host", 1), ("host", 2)]
    assert view.rows.folding.hosts == {1, 2} and view.rows.host == 0
    assert view.next_host(1).startswith("host1, 2 of 3: clock aligned by 6 collectives within ")
    view.fold()
    view.move_rows(3)
    row = view.rows.current
    assert view.next_host(-1) == "host0, 1 of 3" and row is not None
    assert view.rows.current == row._replace(section=row.section - 1), "the same row of the host"
    assert view.next_host(-1) == "no host above this one"
    view.fold_all()
    assert [row.kind for row in view.rows.all] == ["host"] * 3
    view.fold_all()
    assert view.rows.folding.hosts == {1, 2}
    view.search("all-reduce.1")
    for _ in range(2):
        view.next_host(1)
    assert view.rows.host == 2 and view.selected is not None
    assert view.selected[0].label(view.selected[1]) == "all-reduce.1", "the same one, to which this host comes late"


def test_a_host_without_a_device_is_not_the_one_that_is_open() -> None:
    made = two_cores()
    coordinator = replace(made, sections=made.sections[2:])
    hosts = Hosts([read(0, coordinator, Clock()), unread(1), unread(2)])
    page = page_of(hosts)
    page.lines(Pen(WIDTH, BLOCK), 40)
    assert page.view.rows.folding.hosts == {1, 2}
    hosts.take(1, read(1, made, Clock("none")))
    page.extend(hosts.timeline)
    assert page.view.rows.folding.hosts == {0, 2} and page.view.rows.host == 0


def test_hosts_are_read_as_they_come_into_sight() -> None:
    done = met(hosts=4)
    hosts = Hosts([unread(number) for number in range(4)])
    assert hosts.wanted([0, 1], {1, 2, 3}) == ("timeline-host", "host0")
    hosts.take(0, done.reads[0])
    assert hosts.wanted([0], {1, 2, 3}) is None, "the others are out of sight"
    assert hosts.wanted([0, 1], {1, 2, 3}) == ("timeline-brief", "host1")
    begin = first_section(present(done.reads[1].timeline))
    hosts.take(1, done.reads[1]._replace(timeline=begin, is_whole=False))
    assert hosts.wanted([0, 1], {1, 2, 3}) is None
    assert hosts.wanted([0, 1], {2, 3}) == ("timeline-host", "host1"), "it was opened"
    hosts.take(2, unread(2, "it is empty"))
    assert hosts.wanted([2], set()) is None


def test_hosts_out_of_sight_are_given_up_where_there_is_too_much() -> None:
    made = two_cores()
    hosts = Hosts([read(number, made, Clock()) for number in range(4)], room=0)
    for number in (1, 0, 2, 3):
        hosts.take(number, hosts.reads[number])
    assert hosts.trim([0]) and not hosts.reads[1].is_whole and hosts.reads[0].is_whole
    sizes = [0 if each.timeline is None else len(each.timeline.sections) for each in hosts.reads]
    assert sizes == [3, 1, 1, 1]
    assert hosts.trim([0]) and hosts.read == 1 and not hosts.trim([0])
    assert hosts.wanted([1], {1}) == ("timeline-brief", "host1"), "it is read again when it is seen again"


def test_where_one_is_stays_as_hosts_are_read_and_given_up() -> None:
    done = met(hosts=3)
    hosts = Hosts([done.reads[0], unread(1), done.reads[2]])
    page = page_of(hosts)
    page.lines(Pen(WIDTH, BLOCK), 40)
    view = page.view
    view.rows.arrange(replace(view.rows.folding, hosts=frozenset()))
    view.rows.reveal(1, 1, 0)
    view.next_event(1)
    view.pin()
    event = view.event
    assert event is not None and event[0] == 1 and view.rows.host == 2
    before = view.selected
    hosts.take(1, done.reads[1])
    page.extend(hosts.timeline)
    assert view.event == (2, *event[1:]) and view.rows.host == 2
    after_ = view.selected
    assert before is not None and after_ is not None and before[0] is after_[0]
    assert view.rows.folding.pinned == ((2, 1),)
    hosts.take(2, unread(2))
    page.extend(hosts.timeline)
    assert view.event is None and view.rows.folding.pinned == ()
    page.lines(Pen(WIDTH, BLOCK), 40)


@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(st.lists(st.sampled_from([*sorted(timeline_keys(page_of(met()).view)), "J", "K", "read", "drop"]), max_size=30))
def test_any_keys_while_hosts_come_and_go_leave_a_frame(keys: list[str]) -> None:
    done = met()
    hosts = Hosts([done.reads[0], unread(1)])
    page = page_of(hosts)
    for key in keys:
        page.lines(Pen(60, ASCII), 20)
        if key in ("read", "drop"):
            hosts.take(1, done.reads[1] if key == "read" else unread(1))
            page.extend(hosts.timeline)
        elif key in "JK":
            page.view.next_host(1 if key == "J" else -1)
        else:
            timeline_keys(page.view)[key]()
        assert all(len(plain(line)) == 60 for line in page.lines(Pen(60, ASCII), 20))
        assert page.view.rows.current is not None or page.view.rows.folding.wanted


def test_search_and_measuring_go_over_all_that_is_read_and_say_how_much_that_is() -> None:
    hosts = met()
    hosts.reads.append(unread(2))
    view = page_of(hosts).view
    assert view.search("all-reduce.1") == "12 events, 1 name, 2 of 3 hosts are read"
    seen = set()
    for _ in range(12):
        view.next_match(1)
        seen.add(present(view.event))
    assert len(seen) == 12 and {event[0] for event in seen} == {0, 1}


def test_a_filter_by_a_hosts_name_shows_that_host() -> None:
    view = page_of(met(hosts=3)).view
    assert view.filter("HOST2")
    assert {view.rows.host_at(row) for row in view.rows.all} == {2}


def test_a_thousand_hosts_and_hostile_names_draw() -> None:
    done = met()
    name = "\x1b[31mhost\u202e\n[red]" * 20
    reads = [done.reads[0]._replace(host=name), *(unread(number) for number in range(1, 1024))]
    page = page_of(Hosts(reads))
    page.view.fold_all()
    lines = [plain(line) for line in page.lines(Pen(80, BLOCK), 21)]
    assert all(len(line) == 80 and line.isprintable() for line in lines)
    assert page.view.rows.hosts_in_sight == list(range(len(page.view.rows.in_sight)))


async def test_the_app_reads_hosts_as_they_are_seen(tmp_path: Path) -> None:
    logs = late_host(tmp_path, hosts=3)
    broken = Path(logs, "plugins", "profile", "run", "host1.xplane.pb")
    broken.write_bytes(b"\x0a\xff\xff\xff\xff\xff\xff" * 9)
    async with scene(app_over(logs), ["4"], 100, 40) as (app, pilot):
        await until(pilot, lambda: "host2" in frame(app) and "clocks aligned by" in frame(app))
        await settled(pilot)
        shown = await after(pilot, "Z")
        assert "host0" in shown and "host2" in shown and "host1" in shown
        shown = await after(pilot, "J", "J")
        assert "clock aligned by 8 collectives within " in shown
        shown = await after(pilot, "enter")
        await until(pilot, lambda: "sections" in frame(app) or "1 section," in frame(app))
        assert "1 section," in frame(app)
