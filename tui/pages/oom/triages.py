"""The errors of a log, each with its advice once that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from tpuprof.parsers.memory.oom.model import OomReport
from tpuprof.parsers.memory.oom.triage import Triage, triage_of_report


class Triages(Sequence[Triage]):
    """A log may hold thousands of errors, of which a user looks at a few.

    Args:
        where: the log's name.
    """

    def __init__(self, reports: Sequence[OomReport], where: str) -> None:
        self._reports = reports
        self._where = where
        self._made: dict[int, Triage] = {}

    def __len__(self) -> int:
        return len(self._reports)

    @overload
    def __getitem__(self, at: int, /) -> Triage: ...

    @overload
    def __getitem__(self, at: slice, /) -> Sequence[Triage]: ...

    def __getitem__(self, at: int | slice, /) -> Triage | Sequence[Triage]:
        if isinstance(at, slice):
            return [self[index] for index in range(*at.indices(len(self)))]
        index = range(len(self))[at]
        if index not in self._made:
            self._made[index] = triage_of_report(self._reports[index], self._where)
        return self._made[index]
