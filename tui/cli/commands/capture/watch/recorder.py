"""The flight recorder: looks at a program again and again, and keeps the look in which a step was slow."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from tpuprof.parsers.base.errors import Cancelled, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.capture import continuous
from tpuprof.parsers.capture.model import LONGEST_MS, CaptureOptions, CaptureResult, CaptureStop
from tpuprof.parsers.capture.session import capture
from tpuprof.tui.cli.commands.capture.repeated import PASSING
from tpuprof.tui.cli.commands.capture.watch.judged import (
    Event,
    Look,
    Usual,
    judge,
    none_since,
    nothing_ran,
    read,
    stall_over,
)
from tpuprof.tui.cli.commands.capture.watch.kept import KeptRuns

_LONGEST_PAUSE = 60.0
_STEPS_A_LOOK = 4
_PS_PER_MS = 1e9
_PS_PER_SECOND = 1e12
_COMPARED = 2  # newest steps by which a look is known to have no newer ones


class Clock(Protocol):
    """Time, and when watching is to end."""

    def now(self) -> float:
        """Seconds since 1970."""

    def passed(self) -> float:
        """Seconds since some moment; never set back."""

    def pause(self, seconds: float) -> None:
        """Waits this long, or until watching is to end."""

    def is_over(self) -> bool:
        """Whether watching is to end."""


class Source(Protocol):
    """What looks are taken of (`Servers`).

    Attributes:
        keeps: whether it keeps its last seconds, so that a look is of what was before it.
    """

    keeps: bool

    def begin(self) -> str:
        """Gets ready, also after a restart of the program; words on how it looks from now on."""

    def look(self, usual_ps: float | None) -> CaptureResult:
        """Takes a look, long enough for steps of a usual length."""

    def look_ps(self, usual_ps: float | None) -> float:
        """How long such a look is."""

    def end(self) -> None:
        """Leaves the servers as they were."""


class Servers:
    """Profiler servers: their last seconds where they keep these, else short captures.

    Args:
        addresses: as `parse_addresses` takes them.
        options: of a capture.
        logdir: where looks are written.
        stop: ends a look.
        only_captures: do not ask the servers to keep their last seconds.
    """

    def __init__(
        self, addresses: Sequence[str], options: CaptureOptions, logdir: str, stop: CaptureStop, only_captures: bool
    ) -> None:
        self._addresses, self._options, self._logdir, self._stop = addresses, options, logdir, stop
        self._only_captures = only_captures
        self.keeps = False
        self._begun: tuple[str, ...] = ()

    def begin(self) -> str:
        """Has the servers keep their last seconds, where all of them can.

        Raises:
            ProfileError: a server can't be reached.
        """
        if not self._only_captures:
            begun = continuous.begin(self._addresses, self._options)
            self._begun = tuple(dict.fromkeys((*self._begun, *map(str, begun.new))))
            self.keeps = begun.problem is None
            if begun.problem is not None and begun.problem.code not in ("no_snapshots", "server_error"):
                raise begun.problem
            if begun.problem is not None:
                self.end()
        return "the last seconds that the servers keep" if self.keeps else "short captures"

    def look(self, usual_ps: float | None) -> CaptureResult:
        """A snapshot, or a capture.

        Raises:
            ProfileError: nothing came.
            Cancelled: the recorder is to end.
        """
        options = replace(self._options, is_snapshot=self.keeps, duration_ms=self._duration_ms(usual_ps))
        return capture(self._addresses, options, self._logdir, stop=self._stop)

    def look_ps(self, usual_ps: float | None) -> float:
        """How long a look is."""
        return self._duration_ms(usual_ps) * _PS_PER_MS

    def _duration_ms(self, usual_ps: float | None) -> int:
        wanted = 0 if usual_ps is None else round(_STEPS_A_LOOK * usual_ps / _PS_PER_MS)
        return min(max(self._options.duration_ms, wanted), LONGEST_MS)

    def end(self) -> None:
        """Turns off what it turned on itself."""
        begun, self._begun = self._begun, ()
        if begun:
            with contextlib.suppress(ProfileError):
                continuous.switch(
                    begun, False, replace(self._options, connect_seconds=min(self._options.connect_seconds, 2.0))
                )


@dataclass(frozen=True, slots=True)
class Plan:
    """How to watch.

    Attributes:
        slower: a step is slow at this multiple of the running median.
        every_seconds: between looks.
        length_seconds: after which it ends; None for never.
        once: one look only.
        about: what it does, for the line at its start.
    """

    slower: float
    every_seconds: float
    length_seconds: float | None
    once: bool
    about: str


Tell = Callable[[Event, str | None, float], object]
"""Takes an event, the path of the profile that is kept of it, and the time in seconds since 1970."""


class Recorder:
    """Watches until its clock is over.

    Args:
        note: writes a line to standard error.
    """

    def __init__(
        self,
        source: Source,
        plan: Plan,
        kept: KeptRuns,
        clock: Clock,
        tell: Tell,
        note: Callable[[str], object],
    ) -> None:
        self._source, self._plan, self._kept, self._clock = source, plan, kept, clock
        self._tell, self._note = tell, note
        self._usual = Usual()
        self._has_begun = self._has_looked = False
        self._stalled: tuple[float, float] | None = None  # begin and end, in seconds, of what no step ended in
        self._newest: tuple[object, float] = (), 0.0  # steps of the look before, and when it was
        self._has_no_step = False
        self._failures = 0
        self._without: tuple[str, ...] = ()
        self.events = 0

    def run(self) -> None:
        """Watches.

        Raises:
            ProfileError: nothing can be had, and that will not pass; or nothing came of the one look.
        """
        begin, plan = self._clock.passed(), self._plan
        try:
            while not self._clock.is_over():
                if plan.length_seconds is not None and self._clock.passed() - begin >= plan.length_seconds:
                    return
                pause = self._one_look()
                if plan.once:
                    return
                left = pause if plan.length_seconds is None else begin + plan.length_seconds - self._clock.passed()
                if not self._clock.is_over():
                    self._clock.pause(max(0.0, min(pause, left)))
        except Cancelled:
            return
        finally:
            self._source.end()

    def _one_look(self) -> float:
        """Takes a look; how many seconds to pause after it."""
        every = self._plan.every_seconds
        try:
            if not self._has_begun:
                self._begin()
                if self._source.keeps:  # there is nothing to see yet
                    return every
            result = self._source.look(self._usual.median_ps())
        except ProfileError as error:
            return self._failed(error)
        self._failures, self._has_looked = 0, True
        self._take(result)
        return every

    def _begin(self) -> None:
        words = self._source.begin()
        back = "back again, " if self._failures else "" if self._has_looked else f"{self._plan.about}; "
        often = "once" if self._plan.once else f"every {self._plan.every_seconds:g} s"
        self._note(f"{back}looking {often} at {words}")
        self._has_begun, self._has_looked = True, False

    def _failed(self, error: ProfileError) -> float:
        """What to do about a look of which nothing came; how many seconds to pause."""
        if error.code == "nothing_kept" and self._has_begun:
            self._has_begun = False  # the program has started again since
            self._forget()
            return 0.0 if self._has_looked else self._plan.every_seconds
        if error.code == "empty_trace":
            usual_ps = self._usual.median_ps()
            event = nothing_ran(self._source.look_ps(usual_ps), self._usual, self._plan.slower)
            if event is not None and self._stalls_on(event):
                self._told(event, None)
            return self._plan.every_seconds
        if error.code not in PASSING or self._plan.once:
            raise error
        self._failures += 1
        if self._failures == 1:
            self._note(f"{error.sentence} Trying again until it is back.")
            self._forget()
        self._has_begun = False
        return float(min(_LONGEST_PAUSE, 2.0 ** min(self._failures - 1, 10)))

    def _forget(self) -> None:
        """Begins anew: the program that comes next may be another one."""
        self._usual.forget()
        self._stalled, self._newest = None, ((), 0.0)

    def _take(self, result: CaptureResult) -> None:
        """Judges a look, and keeps it where there is something to see in it."""
        self._name_missing(result)
        self._kept.add(result.run_path, result.files)
        try:
            look = read(result.run_path)
        except ProfileError as error:
            self._note(f"a look could not be read: {error.sentence}")
            self._kept.drop()
            return
        event = self._judged(look)
        if event is None or (event.kind == "stall" and not self._stalls_on(event)):
            self._kept.drop()
        else:
            kept = self._kept.keep()
            self._told(event, result.run_path if kept else None)

    def _judged(self, look: Look) -> Event | None:
        """What is to be told of a look; before that, where steps end again, that a stall is over."""
        now, steps = self._clock.passed(), look.page.steps
        if not steps:
            if self._usual.median_ps() is None and not self._has_no_step:
                self._has_no_step = True
                self._note("no step ended within a look, so none can be compared: --ms makes looks longer")
            return judge(look, self._usual, self._plan.slower)
        newest = tuple((step.name, step.duration_ps) for step in steps[-_COMPARED:])
        before, seen = self._newest
        if self._source.keeps and newest == before:
            since = self._stalled[0] if self._stalled else seen
            return none_since(look, (now - since) * _PS_PER_SECOND, self._usual, self._plan.slower)
        self._newest = newest, now
        if self._stalled is not None:
            begin, end = self._stalled
            self._stalled = None
            self._told(stall_over((end - begin) * _PS_PER_SECOND, self._usual), None)
        return judge(look, self._usual, self._plan.slower)

    def _stalls_on(self, event: Event) -> bool:
        """Notes that no step ended; whether that is new."""
        now, length = self._clock.passed(), event.step_ps / _PS_PER_SECOND
        is_new = self._stalled is None
        self._stalled = (now - length if self._stalled is None else self._stalled[0], now)
        return is_new

    def _told(self, event: Event, path: str | None) -> None:
        self.events += 1
        self._tell(event, path, self._clock.now())

    def _name_missing(self, result: CaptureResult) -> None:
        """Says once which servers did not answer."""
        missing = tuple(host.address for host in result.failed)
        if missing and missing != self._without:
            self._note(
                f"without {counted(len(missing), 'server')}: {', '.join(missing[:3])}{' ...' * (len(missing) > 3)}"
            )
        self._without = missing
