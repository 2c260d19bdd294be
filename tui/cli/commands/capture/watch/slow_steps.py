"""The flight recorder: looks at a program again and again, and keeps the looks in which a step was slow.

A look lies in a temporary folder, which is removed whole once it is judged; what is worth it is copied to the user's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from tpuprof.parsers.base.errors import Cancelled, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.capture import continuous
from tpuprof.parsers.capture.errors import PASSING, UNWRITABLE, failure
from tpuprof.parsers.capture.leases import Lease
from tpuprof.parsers.capture.model import LONGEST_MS, CaptureOptions, CaptureResult, CaptureStop
from tpuprof.parsers.capture.session import capture
from tpuprof.tui.cli.commands.capture.watch import judged
from tpuprof.tui.cli.commands.capture.watch.kept import KeptRuns, temporary

_LONGEST_PAUSE = 60.0
_STEPS_A_LOOK = 4
_PS_PER_MS = 1e9
_PS_PER_SECOND = 1e12
_COMPARED = 2  # newest steps by which a look is known to have no newer ones
_SNAPSHOTS = "the last seconds that the servers keep; until this ends, each trace that the program itself begins fails"
_CAPTURES = "short captures; a trace that the program itself begins during one fails"
_NAP_SECONDS = 0.2
"""The longest sleep: Python runs the handler of a signal that comes just before a sleep only after that sleep."""


class Clock:
    """The machine's clock, whose pauses end when recording is to end.

    Args:
        length_seconds: how long recording may take; None for no limit.
    """

    def __init__(self, length_seconds: float | None = None) -> None:
        self._end = None if length_seconds is None else self.passed() + length_seconds
        self._is_ended = False

    def passed(self) -> float:
        """Seconds since some moment; never set back."""
        return time.monotonic()

    def pause(self, seconds: float) -> None:
        """Waits this long, or until recording is to end."""
        until = self.passed() + seconds
        while not self.is_over() and (left := until - self.passed()) > 0:
            time.sleep(min(left, _NAP_SECONDS))

    def end(self) -> None:
        self._is_ended = True

    def is_over(self) -> bool:
        return self._is_ended or (self._end is not None and self.passed() >= self._end)


class Servers:
    """Profiler servers that looks are taken of: short captures, or the last seconds that they keep.

    Args:
        addresses: as `parse_addresses` takes them.
        is_continuous: make the servers keep their last seconds, if all of them can.

    Attributes:
        keeps: whether they keep their last seconds, so that a look is of what was before it.
    """

    def __init__(
        self, addresses: Sequence[str], options: CaptureOptions, stop: CaptureStop, is_continuous: bool
    ) -> None:
        self._addresses, self._options, self._stop = addresses, options, stop
        self._is_continuous = is_continuous
        self.keeps = False
        self._begun: frozenset[str] = frozenset()
        self._lease: Lease | None = None

    def begin(self) -> str:
        """Makes the servers keep their last seconds, if it is to; returns words for what it will look at.

        Raises:
            ProfileError: a server can't be reached, or another profile is being taken there.
        """
        self.keeps = False
        if not self._is_continuous:
            return _CAPTURES
        self._lease = self._lease or Lease(self._addresses)
        self._lease.note(self._addresses)  # whenever this is killed, it is known where they may
        done = continuous.switch(self._addresses, True, self._options)
        codes = {str(each.address): each.problem.code if each.problem else "" for each in done if not each.was_so}
        self._begun |= {address for address, code in codes.items() if code in ("", "no_answer")}
        self._lease.note(self._begun)
        problem = next((each.problem for each in done if each.problem is not None), None)
        if problem is None:
            self.keeps = True
            return _SNAPSHOTS
        if problem.code not in ("no_snapshots", "server_error"):
            raise problem
        self.end()
        return _CAPTURES

    def look(self, usual_ps: float | None, folder: str) -> CaptureResult:
        """A snapshot or a capture in a folder, long enough for steps of a usual length.

        Raises:
            ProfileError: nothing came.
            Cancelled: the recorder is to end.
        """
        options = replace(self._options, is_snapshot=self.keeps, duration_ms=self._duration_ms(usual_ps))
        return capture(self._addresses, options, folder, stop=self._stop)

    def look_ps(self, usual_ps: float | None) -> float:
        return self._duration_ms(usual_ps) * _PS_PER_MS

    def _duration_ms(self, usual_ps: float | None) -> int:
        wanted = 0 if usual_ps is None else round(_STEPS_A_LOOK * usual_ps / _PS_PER_MS)
        return min(max(self._options.duration_ms, wanted), LONGEST_MS)

    def end(self) -> None:
        """Turns off what it turned on itself."""
        lease, self._lease, self._begun = self._lease, None, frozenset()
        if lease is not None:
            lease.end()


@dataclass(frozen=True, slots=True)
class Plan:
    """How to watch.

    Attributes:
        slower: a step is slow at this multiple of the running median.
        every_seconds: the pause between two looks.
        rests: it is at least this many times as long as the look before it took.
        about: what it does, for the line at its start.
    """

    slower: float
    every_seconds: float
    once: bool
    about: str
    rests: float = 0.0


Tell = Callable[[judged.Event, str | None], object]
"""Takes an event, and the path of the profile that is kept of it."""


class SlowSteps:
    """Keeps the looks in which a step was slow, and reports them."""

    def __init__(
        self, source: Servers, plan: Plan, kept: KeptRuns, clock: Clock, tell: Tell, note: Callable[[str], object]
    ) -> None:
        self._source, self._plan, self._kept, self._clock = source, plan, kept, clock
        self._tell, self._note = tell, note
        self._usual = judged.Usual()
        self._has_begun = self._has_looked = False
        self._stalled: tuple[float, float] | None = None  # begin and end, in seconds, of what no step ended in
        self._newest: tuple[object, float] = (), 0.0  # steps of the look before, and when it was
        self._has_no_step = False
        self._failures = 0
        self._is_waiting = False  # for another profile of the program to end
        self._rest_seconds = 0.0
        self._without: tuple[str, ...] = ()
        self.events = 0

    def watch(self) -> None:
        """Watches until the clock is over.

        Raises:
            ProfileError: nothing can be had, and that will not pass; or nothing came of the one look.
        """
        seconds: float | None = 0.0
        try:
            while seconds is not None and not self._clock.is_over():
                seconds = self._seconds_after_a_look()
                if seconds:
                    self._clock.pause(seconds)
        except Cancelled:
            return
        finally:
            self._source.end()

    def _seconds_after_a_look(self) -> float | None:
        """Takes a look and keeps it where there is something to see in it; in how many seconds the next is wanted."""
        try:
            if self._has_begun or not self._begins_to_keep():
                self._look()
            self._is_waiting = False
        except ProfileError as error:
            return self._failed(error)
        return self._pause()

    def _pause(self) -> float | None:
        return None if self._plan.once else max(self._plan.every_seconds, self._rest_seconds)

    def _look(self) -> None:
        with temporary() as folder:
            result = self._source.look(self._usual.median_ps(), folder)
            self._failures, self._has_looked = 0, True
            self._rest_seconds = self._plan.rests * result.seconds
            self._judge(result)

    def _begins_to_keep(self) -> bool:
        """Begins; whether the servers keep what is to be looked at from now on, so that there is nothing to see yet."""
        words = self._source.begin()
        back = "back again, " if self._failures else "" if self._has_looked else f"{self._plan.about}; "
        often = "once" if self._plan.once else f"every {self._plan.every_seconds:g} s"
        often += " or less often" if self._plan.rests and not self._plan.once else ""
        self._note(f"{back}looking {often} at {words}")
        self._has_begun, self._has_looked = True, False
        return self._source.keeps

    def _failed(self, error: ProfileError) -> float | None:
        if error.code == "nothing_kept" and self._has_begun:
            self._has_begun = False  # the program has started again since
            self._forget()
            return 0.0 if self._has_looked else self._plan.every_seconds
        if error.code == "empty_trace":
            usual_ps = self._usual.median_ps()
            event = judged.nothing_ran(self._source.look_ps(usual_ps), self._usual, self._plan.slower)
            if event is not None and self._stalls_on(event):
                self._told(event, None)
            return self._pause()
        if error.code == "another_session" and not self._plan.once:
            if not self._is_waiting:
                self._note(f"{error.sentence} Waiting: {error.hint}")
            self._is_waiting = True
            return self._pause()
        if error.code in UNWRITABLE:
            raise failure(error.code, error.sentence, "somewhere else: TMPDIR=DIR") from error
        if error.code not in PASSING or self._plan.once:
            raise error
        self._failures += 1
        if self._failures == 1:
            self._note(f"{error.sentence} Trying again until it is back.")
            self._forget()
        self._has_begun = False
        return float(min(_LONGEST_PAUSE, 2.0 ** min(self._failures - 1, 10)))

    def _forget(self) -> None:
        self._usual.forget()
        self._stalled, self._newest = None, ((), 0.0)

    def _judge(self, result: CaptureResult) -> None:
        self._name_missing(result)
        try:
            look = judged.read(result.run_path)
        except ProfileError as error:
            self._note(f"a look could not be read: {error.sentence}")
            return
        event = self._judged(look)
        if event is not None and (event.kind != "stall" or self._stalls_on(event)):
            path, why_not = self._kept.keep(result)
            self._told(replace(event, unknown={**event.unknown, **why_not}), path)

    def _judged(self, look: judged.Look) -> judged.Event | None:
        """What is to be told of a look; before that, where steps end again, that a stall is over."""
        now, steps = self._clock.passed(), look.page.steps
        if not steps:
            if self._usual.median_ps() is None and not self._has_no_step:
                self._has_no_step = True
                self._note("no step ended within a look, so none can be compared: --duration makes looks longer")
            return judged.judge(look, self._usual, self._plan.slower)
        newest = tuple((step.name, step.duration_ps) for step in steps[-_COMPARED:])
        before, seen = self._newest
        if self._source.keeps and newest == before:
            since = self._stalled[0] if self._stalled else seen
            return judged.none_since(look, (now - since) * _PS_PER_SECOND, self._usual, self._plan.slower)
        self._newest = newest, now
        if self._stalled is not None:
            begin, end = self._stalled
            self._stalled = None
            self._told(judged.stall_over((end - begin) * _PS_PER_SECOND, self._usual), None)
        return judged.judge(look, self._usual, self._plan.slower)

    def _stalls_on(self, event: judged.Event) -> bool:
        """Notes that no step ended; whether that is new."""
        now, length = self._clock.passed(), event.step_ps / _PS_PER_SECOND
        is_new = self._stalled is None
        self._stalled = (now - length if self._stalled is None else self._stalled[0], now)
        return is_new

    def _told(self, event: judged.Event, path: str | None) -> None:
        self.events += 1
        self._tell(event, path)

    def _name_missing(self, result: CaptureResult) -> None:
        """Says once which servers did not answer."""
        missing = tuple(host.address for host in result.failed)
        if missing and missing != self._without:
            self._note(
                f"without {counted(len(missing), 'server')}: {', '.join(missing[:3])}{' ...' * (len(missing) > 3)}"
            )
        self._without = missing
