"""The steps of a program on the CPU of one host, or on its GPUs. `parsers.steps.generic.host_on_cpu` makes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import Sized, dataclass
from tpuprof.parsers.steps.accounts.owners import Owner


@dataclass(frozen=True, slots=True)
class HostFunction:
    """What a thread was in, of an owner's time.

    Attributes:
        owner: whose time it is.
        name: ``load (train.py:13)``, or the name of an annotation of the program.
        time_ps: in the steps and between them, without other functions of the program that it calls.
        occurrences: how often it was called or resumed.
        inside: the innermost event that most of the time is in, such as ``time sleep``; empty where it is itself that.
        thread: ``Thread tf_data``, or what else a sentence calls it; empty for the one that marks the steps.
        waits: whether most of the time is in a function of Python that does nothing but wait.
    """

    owner: Owner
    name: str
    time_ps: int
    occurrences: int
    inside: str
    thread: str = ""
    waits: bool = False


@dataclass(frozen=True, slots=True)
class HostPart:
    """A part of the host's time that is not the step's own code.

    Attributes:
        cause: the program's ops call the host's Python (``callback``), or another thread runs Python, which only one
            thread does at a time (``interpreter``).
        step_ps, between_ps: int64[steps]: its time in the steps and between them, all of it the owner `host`.
        functions: what the threads were in meanwhile, most time first.
        ops: the ops that call, as sentences name them, most time first.
    """

    cause: Literal["callback", "interpreter"]
    step_ps: Int64s
    between_ps: Int64s
    functions: tuple[HostFunction, ...]
    ops: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceTimes:
    """The devices of one host's CPU that its steps run on, or its GPUs.

    Attributes:
        numbers: their ordinals.
        compute_ps, waits_ps: int64[devices, steps]: how long each computes in a step, and is in collectives for longer
            than the one that is in them least.
    """

    numbers: tuple[int, ...]
    compute_ps: Int64s
    waits_ps: Int64s

    def take(self, steps: Sequence[int]) -> DeviceTimes:
        return DeviceTimes(self.numbers, self.compute_ps[:, steps], self.waits_ps[:, steps])


@dataclass(frozen=True, slots=True)
class HostOnCpu(Sized):
    """The steps on the CPU of one host, whose their time is, and what explains that.

    Attributes:
        names: of the steps, in the order of time.
        start_ps, step_ps: int64[steps].
        owner_ps, between_ps: int64[steps, len(OWNERS)]: a step's time, and that up to the next step.
        untraced_ps, untraced_between_ps: int64[steps]: the part of the owner `host` of which no event says anything.
        collective_names: names of the collectives.
        collective_ps: int64[steps, collectives], the time in which this one ran and no op computed.
        waits_ps: int64[steps], the part of the collectives' time that is no transfer (`SLOWEST_BYTES`), where some of
            their devices are of other processes; else 0.
        functions: what the step's thread was in, by owner and time.
        compiled: names of the functions that were compiled in or between steps, most time first.
        devices: how many devices the programs with collectives run on, as these say; 0 where they do not.
        local_devices: how many of them ran a collective here at a time.
        is_traced: whether the Python tracer ran for the step's thread.
        parts: what else the host did of its time, where it did any of that.
        of_devices: the devices beside each other; None without ops.
        met_ps: int64[steps], when the last collective of each step on GPUs ended, -1 without any; None for a CPU.
        began_ns: when the capture began, from which times count, in nanoseconds since 1970; None where the profile does
            not say.
    """

    names: tuple[str, ...]
    start_ps: Int64s
    step_ps: Int64s
    owner_ps: Int64s
    between_ps: Int64s
    untraced_ps: Int64s
    untraced_between_ps: Int64s
    collective_names: tuple[str, ...]
    collective_ps: Int64s
    waits_ps: Int64s
    functions: tuple[HostFunction, ...] = ()
    compiled: tuple[str, ...] = ()
    devices: int = 0
    local_devices: int = 0
    is_traced: bool = False
    parts: tuple[HostPart, ...] = ()
    of_devices: DeviceTimes | None = None
    began_ns: int | None = None
    met_ps: Int64s | None = None

    def rows(self, names: Sequence[str]) -> list[int]:
        """The places of the steps of these names; names that several steps have are those of all steps."""
        return list(range(len(self))) if self.names == tuple(names) else [self.names.index(name) for name in names]

    def functions_of(self, *owners: Owner) -> list[HostFunction]:
        """What the step's thread was in, of some owners' time, most first."""
        return sorted((each for each in self.functions if each.owner in owners), key=lambda each: -each.time_ps)

    @property
    def has_partners(self) -> bool:
        return 0 < self.local_devices < self.devices

    @property
    def meets_others(self) -> bool:
        """Whether it meets other processes in collectives, as far as the profile says how many devices they are of."""
        return self.has_partners or (not self.devices and bool(self.collective_names))
