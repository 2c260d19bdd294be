"""What threads tell the screen. Messages about a load name it, so that those of an older one are ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from tpuprof.parsers.base.errors import ProfileError
    from tpuprof.parsers.files.logdir import Logdir, Run
    from tpuprof.parsers.hosts.progress import Progress
    from tpuprof.parsers.memory.allocators.model import MemoryProfilePage, ModuleRuns
    from tpuprof.parsers.pages.hosts.model import HostsPage
    from tpuprof.parsers.pages.input.model import InputPipelinePage
    from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
    from tpuprof.parsers.pages.overview.model import Overview
    from tpuprof.parsers.timeline.model import Timeline
    from tpuprof.parsers.timeline.read.flows import Flows
    from tpuprof.tui.pages.memory.modules import MemoryPages
    from tpuprof.tui.pages.ops.shelf import OpPages


class LoadMessage(Message):
    """Something about load number `generation`."""

    def __init__(self, generation: int) -> None:
        super().__init__()
        self.generation = generation


class RunsFound(LoadMessage):
    """The path led to these runs, and this one is being read."""

    def __init__(self, generation: int, logdir: Logdir, run: Run) -> None:
        super().__init__(generation)
        self.logdir = logdir
        self.run = run


class LoadProgress(LoadMessage):
    """How far decoding is, and how many seconds it will take yet (None where that is too early to say)."""

    def __init__(self, generation: int, progress: Progress, seconds_left: float | None) -> None:
        super().__init__(generation)
        self.progress = progress
        self.seconds_left = seconds_left


class OverviewReady(LoadMessage):
    """The overview of a run, of one host or (None) of all; of the first `hosts_done` of them where that is no None."""

    def __init__(
        self,
        generation: int,
        run: Run,
        host: str | None,
        page: Overview,
        hosts_done: int | None = None,
        hosts_total: int | None = None,
    ) -> None:
        super().__init__(generation)
        self.run = run
        self.host = host
        self.page = page
        self.hosts_done = hosts_done
        self.hosts_total = hosts_total

    @property
    def is_partial(self) -> bool:
        """More hosts are being read; another message follows."""
        return self.hosts_done is not None


class HostsReady(LoadMessage):
    """The hosts of the same run compared."""

    def __init__(self, generation: int, page: HostsPage) -> None:
        super().__init__(generation)
        self.page = page


class InputReady(LoadMessage):
    """The input pipeline of the same run and host."""

    def __init__(self, generation: int, page: InputPipelinePage) -> None:
        super().__init__(generation)
        self.page = page


class OpsReady(LoadMessage):
    """The ops of the same run and host."""

    def __init__(self, generation: int, pages: OpPages) -> None:
        super().__init__(generation)
        self.pages = pages


class FrameworkOpsReady(LoadMessage):
    """The framework ops, which take the host threads' lines."""

    def __init__(self, generation: int, page: FrameworkOpsPage) -> None:
        super().__init__(generation)
        self.page = page


class TimelineReady(LoadMessage):
    """All events of one host of the same run."""

    def __init__(self, generation: int, timeline: Timeline) -> None:
        super().__init__(generation)
        self.timeline = timeline


class FlowsReady(LoadMessage):
    """What leads from event to event on the timeline."""

    def __init__(self, generation: int, flows: Flows) -> None:
        super().__init__(generation)
        self.flows = flows


class MemoryReady(LoadMessage):
    """The compiled modules of the same run and host."""

    def __init__(self, generation: int, pages: MemoryPages) -> None:
        super().__init__(generation)
        self.pages = pages


class MemoryProfileReady(LoadMessage):
    """What the allocators reported, of the same run and host."""

    def __init__(self, generation: int, page: MemoryProfilePage, runs: tuple[ModuleRuns, ...]) -> None:
        super().__init__(generation)
        self.page = page
        self.runs = runs


class LoadDone(LoadMessage):
    """Everything that was asked for is there."""


class LoadFailed(LoadMessage):
    """The load came to nothing, for a reason that a user can understand."""

    def __init__(self, generation: int, error: ProfileError) -> None:
        super().__init__(generation)
        self.error = error
