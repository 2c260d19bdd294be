"""What a user marks on a timeline, and what times are relative to."""

from __future__ import annotations

from typing import Literal

from tpuprof.parsers.timeline.model import EventId, Timeline, Track
from tpuprof.tui.draw.format import duration

Base = Literal["trace", "step", "mark"]  # what times are relative to


class Marks:
    """A place on a timeline, and the marks that are set from there.

    Attributes:
        timeline: what is looked at.
        cursor_ps: the cursor's instant.
        event: what is selected.
        marks: none, one, or two instants.
        base: what times are relative to.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.cursor_ps = timeline.first_ps
        self.event: EventId | None = None
        self.marks: tuple[int, ...] = ()
        self.base: Base = "trace"

    @property
    def selected(self) -> tuple[Track, int] | None:
        return None if self.event is None else (self.timeline.track(self.event), self.event[2])

    @property
    def step(self) -> int | None:
        """Index of the step that holds the cursor, else of the last one before it."""
        return self.timeline.step_begun(self.cursor_ps)

    @property
    def base_ps(self) -> int:
        """The instant that counts as zero."""
        if self.base == "step" and self.step is not None:
            return self.timeline.steps[self.step].start_ps
        return self.marks[0] if self.base == "mark" and self.marks else 0

    @property
    def interval(self) -> tuple[int, int] | None:
        return (min(self.marks), max(self.marks)) if len(self.marks) == 2 else None

    def event_span(self) -> tuple[int, int] | None:
        """From when to when the selected event runs, a picosecond at least; None without one."""
        if self.selected is None:
            return None
        track, index = self.selected
        return int(track.start_ps[index]), max(int(track.end_ps[index]), int(track.start_ps[index]) + 1)

    def mark(self) -> str:
        """Sets the first mark, then the second, then begins anew.

        Marks are at the cursor; the second one is at the end of an event that the cursor is at the very start of, where
        going from event to event takes it.
        """
        if len(self.marks) != 1:
            self.marks = (self.cursor_ps,)
            return "marked; space again ends the interval"
        self.marks = (self.marks[0], self._end_after(self.marks[0]))
        return ""

    def _end_after(self, begin_ps: int) -> int:
        """The cursor's instant; that at which its event ends where it is at the very start of one, after a begin."""
        span = self.event_span()
        is_at_start = span is not None and self.cursor_ps == span[0] >= begin_ps
        return span[1] if span is not None and is_at_start else self.cursor_ps

    def move_end(self, direction: int, ascii_only: bool = False) -> str:
        """Moves the begin (-1) or the end (1) of the marked interval to the cursor; says how long it is then."""
        if self.interval is None:
            return "no interval to change: space marks its begin and its end"
        begin, end = self.interval
        if direction < 0:
            self.stretch(end, self.cursor_ps)
        else:
            self.stretch(begin, self._end_after(begin))
        return self.interval_words(ascii_only)

    def stretch(self, fixed_ps: int, moved_ps: int) -> None:
        """Makes the marked interval one between an end that stays and one that was moved, beyond the other or not."""
        self.marks = (min(fixed_ps, moved_ps), max(fixed_ps, moved_ps))

    def interval_words(self, ascii_only: bool = False) -> str:
        """How long the marked interval is, and what lists what ran in it; nothing without one."""
        begin, end = self.interval or (0, 0)
        return "" if self.interval is None else f"{duration(end - begin, ascii_only, 6)}; i lists what ran in it"

    def clear_marks(self) -> None:
        self.marks = ()
        self.base = "trace" if self.base == "mark" else self.base

    def next_base(self) -> str:
        """Times relative to the trace, the step, or the first mark."""
        bases: tuple[tuple[Base, object], ...] = (("trace", True), ("step", self.timeline.steps), ("mark", self.marks))
        order = [base for base, is_there in bases if is_there]
        self.base = order[(order.index(self.base) + 1) % len(order)] if self.base in order else "trace"
        return f"times relative to the {self.base}"
