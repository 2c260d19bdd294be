"""The account of the steps of a program on the host's CPU. `parsers.steps.generic.cpu_account` makes it."""

from __future__ import annotations

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.steps.accounts.owners import Owner


@dataclass(frozen=True, slots=True)
class HostFunction:
    """What the step's thread was in, of an owner's time.

    Attributes:
        owner: whose time it is.
        name: ``load (train.py:13)``, or the name of an annotation of the program.
        time_ps: in the steps and between them, without other functions of the program that it calls.
        occurrences: how often it was called or resumed.
        inside: the innermost event that most of the time is in, such as ``time sleep``; empty where it is itself that.
    """

    owner: Owner
    name: str
    time_ps: int
    occurrences: int
    inside: str


@dataclass(frozen=True, slots=True)
class CpuAccount:
    """The account of one host's steps on its CPU.

    Attributes:
        names: of the steps, in the order of time.
        start_ps, step_ps: int64[steps].
        owner_ps, between_ps: int64[steps, len(OWNERS)]: a step's time, and that up to the next step.
        untraced_ps, untraced_between_ps: int64[steps]: the part of the owner `host` of which no event says anything.
        functions: what the step's thread was in, by owner and time.
        compiled: names of the functions that were compiled in or between steps, most time first.
        collective_names: names of the collectives.
        collective_ps: int64[steps, collectives], the time in which this one ran and no op computed.
        waits_ps: int64[steps], the part of the collectives' time that is no transfer (`SLOWEST_BYTES`), where some of
            their devices are of other processes; else 0.
        devices: how many devices the programs with collectives run on, as these say; 0 where they do not.
        local_devices: how many of them ran a collective here at a time.
        is_traced: whether the Python tracer ran for the step's thread.
    """

    names: tuple[str, ...]
    start_ps: Int64s
    step_ps: Int64s
    owner_ps: Int64s
    between_ps: Int64s
    untraced_ps: Int64s
    untraced_between_ps: Int64s
    functions: tuple[HostFunction, ...]
    compiled: tuple[str, ...]
    collective_names: tuple[str, ...]
    collective_ps: Int64s
    waits_ps: Int64s
    devices: int
    local_devices: int
    is_traced: bool

    def __len__(self) -> int:
        return len(self.names)

    @property
    def has_partners(self) -> bool:
        """Whether collectives run over devices of other processes too."""
        return 0 < self.local_devices < self.devices
