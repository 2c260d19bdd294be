"""The pages of a run by their keys, and what a front end asks of a session for them.

A key says which page, of which type, and by its name which function makes it: that module is imported when the page is
asked for first, so that each report starts with what it shows, and the others cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

from tpuprof.parsers.base.record import dataclass

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.formats.hlo.programs import HloModules
    from tpuprof.parsers.hosts.summary import HostSummary
    from tpuprof.parsers.memory.allocators.model import DeviceModuleRuns, MemoryProfilePage
    from tpuprof.parsers.pages.collectives.model import CollectivesPage
    from tpuprof.parsers.pages.counters import CountersPage
    from tpuprof.parsers.pages.graph.programs import Programs
    from tpuprof.parsers.pages.hosts.model import HostsPage
    from tpuprof.parsers.pages.inference import InferencePage
    from tpuprof.parsers.pages.input.model import InputPipelinePage
    from tpuprof.parsers.pages.memory import CompiledModules
    from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
    from tpuprof.parsers.pages.ops.kernels.tpu import TpuKernelsPage
    from tpuprof.parsers.pages.ops.op_profile import OpProfilePage
    from tpuprof.parsers.pages.ops.ops import OpsPage
    from tpuprof.parsers.pages.ops.roofline import RooflinePage
    from tpuprof.parsers.pages.ops.sparse_core.page import SparseCorePage
    from tpuprof.parsers.pages.overview.accounts_of_ops import OpAccounts
    from tpuprof.parsers.pages.overview.model import Overview
    from tpuprof.parsers.pages.overview.use.model_use import ModelUse
    from tpuprof.parsers.pages.overview.use.page import ModelPage
    from tpuprof.parsers.steps.ledger import Ledger
    from tpuprof.parsers.timeline.hosts.joined import HostRead
    from tpuprof.parsers.timeline.model import Timeline
    from tpuprof.parsers.timeline.read.flows import Flows
    from tpuprof.parsers.timeline.read.timeline import OnPart

Page = TypeVar("Page")
Page_co = TypeVar("Page_co", covariant=True)

_MAKERS = "tpuprof.parsers.session.makers."


@dataclass(frozen=True, slots=True)
class PageKey(Generic[Page_co]):
    """Which page of a run.

    Attributes:
        maker: ``module:function`` in `parsers.session.makers`. The function takes the session and the host, None for
            all hosts, and returns the page.
        live_ranges: whether the session keeps the page once it is made.
        is_kept: whether the user's cache keeps it too; such a page has `hosts`.
    """

    maker: str
    live_ranges: bool = False
    is_kept: bool = False


def maker(name: str) -> Callable[..., Any]:
    """The function of that name, ``module:function``; imports its module."""
    module, _, function = name.partition(":")
    made: Callable[..., Any] = getattr(import_module(_MAKERS + module), function)
    return made


OVERVIEW: PageKey[Overview] = PageKey("overview:overview", live_ranges=True, is_kept=True)
INPUT: PageKey[InputPipelinePage] = PageKey("input:input_pipeline")
INFERENCE: PageKey[InferencePage] = PageKey("inference:inference")
HOSTS: PageKey[HostsPage] = PageKey("hosts:hosts")
OPS: PageKey[OpsPage] = PageKey("ops.ops:ops", live_ranges=True, is_kept=True)
OP_PROFILE: PageKey[OpProfilePage] = PageKey("ops.op_profile:op_profile")
FRAMEWORK_OPS: PageKey[FrameworkOpsPage] = PageKey("ops.framework_ops:framework_ops")
ROOFLINE: PageKey[RooflinePage] = PageKey("ops.roofline:roofline")
COLLECTIVES: PageKey[CollectivesPage] = PageKey("collectives:collectives")
COUNTERS: PageKey[CountersPage] = PageKey("counters:counters", live_ranges=True)
TPU_KERNELS: PageKey[TpuKernelsPage] = PageKey("ops.kernels:tpu_kernels", live_ranges=True)
SPARSE_CORE: PageKey[SparseCorePage] = PageKey("ops.sparse_core:sparse_core")
MEMORY: PageKey[CompiledModules] = PageKey("memory.compiled:compiled_modules", live_ranges=True)
MEMORY_PROFILE: PageKey[MemoryProfilePage] = PageKey("memory.over_time:memory_profile")
MODEL: PageKey[ModelPage] = PageKey("ops.model_use:model")
GRAPHS: PageKey[Programs] = PageKey("memory.graphs:graphs")

# what is no page of its own
OP_PROFILE_WITHOUT_IDLE: PageKey[OpProfilePage] = PageKey("ops.op_profile:without_idle")
ROOFLINE_WITHOUT_INFEED: PageKey[RooflinePage] = PageKey("ops.roofline:without_infeed")
HAS_COLLECTIVES: PageKey[bool] = PageKey("collectives:has_collectives")
HAS_COUNTERS: PageKey[bool] = PageKey("counters:has_counters")
HAS_TPU_KERNELS: PageKey[bool] = PageKey("ops.kernels:has_tpu_kernels")
HAS_SPARSE_CORES: PageKey[bool] = PageKey("ops.ops:has_sparse_cores")
MODULES: PageKey[tuple[HloModules, ...]] = PageKey("ops.modules:modules")
MODULE_RUNS: PageKey[tuple[DeviceModuleRuns, ...]] = PageKey("memory.over_time:module_runs")
LEDGER: PageKey[Ledger | None] = PageKey("overview:ledger")
MODEL_USE: PageKey[ModelUse] = PageKey("ops.model_use:model_use")
OP_ACCOUNTS: PageKey[OpAccounts | None] = PageKey("overview:op_accounts")
SUMMARIES: PageKey[tuple[HostSummary, ...]] = PageKey("summaries:summaries")

ONLY_HLO = (
    "These are compiled modules, not a profile: the memory tab shows them, and g there opens the graph.",
    "capture a profile for this page",
)
"""Why compiled modules without a profile lack a page, and what to do: sentence and hint."""


class Pages(Protocol):
    """What the screen needs of a session (`parsers.session.session.Session`)."""

    def page(self, key: PageKey[Page], host: str | None = None) -> Page:
        """The page of one host, or of all hosts merged."""

    def timeline(self, host: str | None = None, *, on_part: OnPart | None = None) -> Timeline:
        """All events of one host; before that, what is read of them so far."""

    def flows(self, timeline: Timeline) -> Flows:
        """What leads from event to event."""


@runtime_checkable
class NarrowPages(Pages, Protocol):
    """Pages that can be those of one core or chip alone (`parsers.session.session.Session`).

    Attributes:
        run: whose pages they are.
    """

    run: Run

    def of_core(self, core: str, host: str | None = None) -> NarrowPages:
        """The pages of a core, by any of its names; without a host in it one of that host or of the only one."""


@runtime_checkable
class HostPages(Protocol):
    """Pages of several hosts whose timelines are put on one time axis (`parsers.session.session.Session`)."""

    def host_timeline(
        self,
        host: str,
        with_steps: bool = True,
        on_part: Callable[[HostRead], None] | None = None,
        only_first: bool = False,
    ) -> HostRead:
        """All events of one host on the common axis, or those of its first section."""

    def flows(self, timeline: Timeline) -> Flows:
        """What leads from event to event on a host."""


@runtime_checkable
class PartialPages(Protocol):
    """Pages of which the overview is known before all hosts are read (`parsers.session.session.Session`)."""

    def overview_as_read(self, host: str | None, on_partial: Callable[[Overview, int, int], None]) -> Overview:
        """The overview; before that, now and then, one of the hosts read so far, their number, and of how many."""
