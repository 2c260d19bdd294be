"""What a front end asks of a session, whether that reads a profile, compiled modules alone, or is made up in a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from tpuprof.parsers.formats.hlo.programs import HloModules
    from tpuprof.parsers.memory.allocators.model import MemoryProfilePage, ModuleRuns
    from tpuprof.parsers.pages.collectives.model import CollectivesPage
    from tpuprof.parsers.pages.counters import CountersPage
    from tpuprof.parsers.pages.graph.programs import Programs
    from tpuprof.parsers.pages.hosts.model import HostsPage
    from tpuprof.parsers.pages.input.model import InputPipelinePage
    from tpuprof.parsers.pages.memory import CompiledModules
    from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
    from tpuprof.parsers.pages.ops.op_profile import OpProfilePage
    from tpuprof.parsers.pages.ops.ops import OpsPage
    from tpuprof.parsers.pages.ops.roofline import RooflinePage
    from tpuprof.parsers.pages.ops.sparse_core import SparseCorePage
    from tpuprof.parsers.pages.overview.model import Overview
    from tpuprof.parsers.timeline.model import Timeline
    from tpuprof.parsers.timeline.read.flows import Flows
    from tpuprof.parsers.timeline.read.timeline import OnPart


class Pages(Protocol):
    """What the screen needs of a session (`parsers.session.session.Session`)."""

    def overview(self, host: str | None = None) -> Overview:
        """The overview of one host, or of all merged."""

    def input_pipeline(self, host: str | None = None) -> InputPipelinePage:
        """The input pipeline."""

    def ops(self, host: str | None = None) -> OpsPage:
        """The HLO ops, which the other pages of ops are made of."""

    def op_profile(self, host: str | None = None, with_idle: bool = True) -> OpProfilePage:
        """The op profile's trees."""

    def framework_ops(self, host: str | None = None) -> FrameworkOpsPage:
        """Framework ops, on the device and on the host."""

    def roofline(self, host: str | None = None, with_infeed: bool = True) -> RooflinePage:
        """The roofline."""

    def collectives(self, host: str | None = None) -> CollectivesPage:
        """The collectives."""

    def counters(self, host: str | None = None) -> CountersPage:
        """The performance counters."""

    def has_counters(self, host: str | None = None) -> bool:
        """Whether there are any, without reading them."""

    def has_sparse_cores(self, host: str | None = None) -> bool:
        """Whether there are SparseCores."""

    def sparse_core(self, host: str | None = None) -> SparseCorePage:
        """What SparseCores do beside the TensorCores."""

    def modules(self, host: str | None = None) -> tuple[HloModules, ...]:
        """The HLO modules."""

    def timeline(self, host: str | None = None, *, on_part: OnPart | None = None) -> Timeline:
        """All events of one host; before that, what is read of them so far."""

    def flows(self, timeline: Timeline) -> Flows:
        """What leads from event to event."""

    def memory(self, host: str | None = None) -> CompiledModules:
        """The compiled modules."""

    def graphs(self, host: str | None = None) -> Programs:
        """The compiled modules as graphs."""

    def memory_profile(self, host: str | None = None) -> MemoryProfilePage:
        """What the allocators reported."""

    def module_runs(self, host: str | None = None) -> tuple[ModuleRuns, ...]:
        """Runs of compiled modules on the devices."""

    def hosts(self) -> HostsPage:
        """The hosts compared."""


@runtime_checkable
class NarrowPages(Protocol):
    """Pages that can be those of one core or chip alone (`parsers.session.session.Session`)."""

    def of_core(self, core: str, host: str | None = None) -> Pages:
        """The pages of a core, ``host:2``, or without a name one of that host or of the only one."""


@runtime_checkable
class PartialPages(Protocol):
    """Pages of which the overview is known before all hosts are read (`parsers.session.session.Session`)."""

    def overview_as_read(self, host: str | None, on_partial: Callable[[Overview, int, int], None]) -> Overview:
        """The overview; before that, now and then, one of the hosts read so far, their number, and of how many."""
