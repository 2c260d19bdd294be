"""The flight recorder: looks at a program again and again, and keeps the looks in which a step was slow.

A look lies in a temporary folder, which is removed whole once it is judged; what is worth it is copied to the user's.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from tpuprof.parsers.base.errors import Cancelled, ProfileError
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.capture.errors import PASSING, UNWRITABLE, failure
from tpuprof.parsers.capture.model import LONGEST_MS, CaptureResult
from tpuprof.tui.cli.commands.capture.watch import judged
from tpuprof.tui.cli.commands.capture.watch.kept import KeptRuns, temporary

_LONGEST_PAUSE = 60.0
_STEPS_A_LOOK = 4
_PS_PER_MS = 1e9
_PS_PER_SECOND = 1e12
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


@dataclass(frozen=True, slots=True)
class Plan:
    """How to watch.

    Attributes:
        slower: a step is slow at this multiple of the running median.
        look_ms: how long a look traces, unless steps are long.
        every_seconds: the pause between two looks.
        once: only one look is taken.
        rests: the pause is at least this many times as long as the look before it took.
    """

    slower: float
    look_ms: int
    every_seconds: float
    once: bool
    rests: float = 0.0


TakeLook = Callable[[str, int], CaptureResult]
"""Captures into a folder for so many milliseconds; raises as `parsers.capture.session.capture`."""

Tell = Callable[[judged.Event, str | None], object]
"""Takes an event, and the path of the profile that is kept of it."""


class SlowSteps:
    """Keeps the looks in which a step was slow, and reports them."""

    def __init__(
        self, take_look: TakeLook, plan: Plan, kept: KeptRuns, clock: Clock, tell: Tell, note: Callable[[str], object]
    ) -> None:
        self._take_look, self._plan, self._kept, self._clock = take_look, plan, kept, clock
        self._tell, self._note = tell, note
        self._usual = judged.Usual()
        self._stalled: tuple[float, float] | None = None  # begin and end, in seconds, of what no step ended in
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
        with contextlib.suppress(Cancelled):
            while not self._clock.is_over() and (seconds := self._seconds_after_a_look()) is not None:
                self._clock.pause(seconds)

    def _seconds_after_a_look(self) -> float | None:
        """Takes a look and keeps it where there is something to see in it; in how many seconds the next is wanted."""
        try:
            self._look()
        except ProfileError as error:
            return self._failed(error)
        return self._pause()

    def _pause(self) -> float | None:
        return None if self._plan.once else max(self._plan.every_seconds, self._rest_seconds)

    def _look(self) -> None:
        with temporary() as folder:
            result = self._take_look(folder, self._look_ms())
            self._answered()
            self._rest_seconds = self._plan.rests * result.seconds
            self._judge(result)

    def _look_ms(self) -> int:
        """How long the next look traces: long enough for several steps of the usual length."""
        usual_ps = self._usual.median_ps() or 0.0
        return min(max(self._plan.look_ms, round(_STEPS_A_LOOK * usual_ps / _PS_PER_MS)), LONGEST_MS)

    def _answered(self) -> None:
        """Takes note that the servers traced; says so once after failures."""
        if self._failures:
            self._note("The program is back.")
        self._failures, self._is_waiting = 0, False

    def _failed(self, error: ProfileError) -> float | None:
        if error.code == "empty_trace":
            self._answered()
            event = judged.nothing_ran(self._look_ms() * _PS_PER_MS, self._usual, self._plan.slower)
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
            self._usual.forget()
            self._stalled = None
        return float(min(_LONGEST_PAUSE, 2.0 ** min(self._failures - 1, 10)))

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
        if not look.page.steps:
            if self._usual.median_ps() is None and not self._has_no_step:
                self._has_no_step = True
                self._note("no step ended within a look, so none can be compared: --duration makes looks longer")
        elif self._stalled is not None:
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
