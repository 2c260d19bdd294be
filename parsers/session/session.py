"""What a front end holds: one run, opened lazily, its pages computed on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tpuprof.parsers.base.errors import Cancelled, ProfileError
from tpuprof.parsers.files.logdir import HostFile, Run
from tpuprof.parsers.files.places import only_shown
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.hosts.plan import decoding_threads
from tpuprof.parsers.hosts.progress import Meter, OnProgress
from tpuprof.parsers.session.files import best_first, each_host, left_out, nothing_to_read, opened

if TYPE_CHECKING:  # a page's modules are imported when the page is asked for: each report starts with its own alone
    from concurrent.futures import Executor

    from tpuprof.parsers.formats.hlo.programs import HloModules
    from tpuprof.parsers.hosts.cache import HostCache
    from tpuprof.parsers.hosts.op_summary import OpSummary
    from tpuprof.parsers.hosts.reader import HostReader
    from tpuprof.parsers.hosts.summary import HostSummary
    from tpuprof.parsers.memory.allocators.model import MemoryProfilePage, ModuleRuns
    from tpuprof.parsers.memory.allocators.profile import HostMemory
    from tpuprof.parsers.memory.model import Capacity
    from tpuprof.parsers.pages.collectives.model import CollectivesPage
    from tpuprof.parsers.pages.counters import CountersPage
    from tpuprof.parsers.pages.graph.programs import Programs
    from tpuprof.parsers.pages.hosts.model import HostsPage
    from tpuprof.parsers.pages.inference import InferencePage
    from tpuprof.parsers.pages.input.model import InputPipelinePage
    from tpuprof.parsers.pages.memory import CompiledModules, ModuleSource
    from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
    from tpuprof.parsers.pages.ops.op_profile import OpProfilePage
    from tpuprof.parsers.pages.ops.ops import OpsPage
    from tpuprof.parsers.pages.ops.roofline import RooflinePage
    from tpuprof.parsers.pages.ops.sparse_core import SparseCorePage
    from tpuprof.parsers.pages.overview.model import Overview
    from tpuprof.parsers.session.partials import OnPartial, Partials
    from tpuprof.parsers.timeline.model import StepSpan, Timeline
    from tpuprof.parsers.timeline.read.flows import Flows
    from tpuprof.parsers.timeline.read.timeline import OnPart

_Summary = TypeVar("_Summary", bound="OpSummary")
_Page = TypeVar("_Page")


class Session:
    """One run of a logdir. One thread at a time asks for pages; the work on a page takes several.

    Args:
        run: what `parsers.files.logdir` found.
        on_progress: called often, on the decoding threads; it must be cheap and thread-safe.
        is_cancelled: called between chunks; when it returns True the work stops with `parsers.base.errors.Cancelled`.
        executor, scheduler: where hosts are summarised, see `HostReader`; without either, this process does it, or
            several where there is enough to do (`parsers.hosts.plan`).
        cache: where what was read of hosts is kept from one session to the next; None to keep none.
    """

    def __init__(
        self,
        run: Run,
        on_progress: OnProgress = lambda _: None,
        is_cancelled: Callable[[], bool] = lambda: False,
        *,
        executor: Executor | None = None,
        scheduler: str | None = None,
        cache: HostCache | None = None,
    ) -> None:
        self.run = run
        self._on_progress = on_progress
        self._is_cancelled = is_cancelled
        self._where = executor, scheduler
        self.cache = cache
        self._narrowed: Session | None = None
        self._readers: list[HostReader[Any]] = []
        self._whole_reader: HostReader[HostSummary] | None = None
        self._modules: dict[str, HloModules] = {}
        self._programs: dict[str, Iterable[int]] = {}
        self._overviews: dict[str | None, Overview] = {}
        self._ops: dict[str | None, OpsPage] = {}
        self._counters: dict[str | None, CountersPage] = {}
        self._timelines: dict[tuple[HostFile, bool], Timeline] = {}
        self._sources: dict[str, ModuleSource] = {}
        self._compiled: dict[str | None, CompiledModules] = {}
        self._host_memory: dict[str, HostMemory] = {}

    def _reader_of(self, kind: type[_Summary], work: Callable[..., _Summary]) -> HostReader[_Summary]:
        from tpuprof.parsers.hosts.reader import HostReader  # noqa: PLC0415

        core = next((file.core for file in self.run.hosts if file.core), "")
        of_core = partial(work, core=core) if core else work
        reader = HostReader(kind, of_core, self._on_progress, self._is_cancelled, *self._where, self.cache)
        self._readers.append(reader)
        return reader

    @cached_property
    def _op_reader(self) -> HostReader[OpSummary]:
        """What each host adds to the pages of ops."""
        from tpuprof.parsers.hosts.op_summary import OpSummary, summarise_ops  # noqa: PLC0415

        return self._reader_of(OpSummary, summarise_ops)

    @property
    def _reader(self) -> HostReader[HostSummary]:
        """What each host adds to all pages."""
        if self._whole_reader is None:
            from tpuprof.parsers.hosts.summary import HostSummary, summarise_file  # noqa: PLC0415

            self._whole_reader = self._reader_of(HostSummary, summarise_file)
        return self._whole_reader

    def of_core(self, core: str, host: str | None = None) -> Session:
        """A session whose pages are all of one core or chip; only the last such session is kept.

        Raises:
            ProfileError: as `Run.of_core`.
        """
        run = self.run.of_core(core, host)
        if self._narrowed is None or self._narrowed.run != run:
            tell, poll, cache = self._on_progress, self._is_cancelled, self.cache
            executor, scheduler = self._where
            one = Session(run, tell, poll, executor=executor, scheduler=scheduler, cache=cache)
            one._modules, one._programs = self._modules, self._programs  # of all cores
            one._timelines = self._timelines  # of which only one is kept
            self._narrowed = one
        return self._narrowed

    def overview(self, host: str | None = None) -> Overview:
        """The overview of one host, or of all hosts merged when `host` is None.

        A host that cannot be read is left out and named in `Overview.warnings`.

        Raises:
            ProfileError: no host of the run is readable (exit code 4), or `host` names none (exit code 3).
            Cancelled: `is_cancelled` said so.
        """
        return self._overview(host, None)

    def overview_as_read(self, host: str | None, on_partial: OnPartial) -> Overview:
        """The same; before that it makes pages over the hosts that are read so far.

        Args:
            on_partial: called with a page soon after the first host is read, and again now and then until all are. The
                page's warnings say how many hosts it covers.

        Raises:
            ProfileError, Cancelled: as for `overview`.
        """
        from tpuprof.parsers.session.partials import Partials  # noqa: PLC0415

        return self._overview(host, Partials(self._overview_so_far, self.run.files(host), on_partial))

    def _overview(self, host: str | None, partials: Partials | None) -> Overview:
        known = self._overviews.get(host)
        if known is None:
            known = self._overviews[host] = self._kept("overview", host, lambda: self._new_overview(host, partials))
        return known

    def _new_overview(self, host: str | None, partials: Partials | None) -> Overview:
        from tpuprof.parsers.pages.overview.overview import overview  # noqa: PLC0415

        summaries, notes = self._summarised(host, partials)
        page = overview(summaries, self._modules_of(host))
        return replace(page, warnings=(*page.warnings, *notes))

    def _kept(self, name: str, host: str | None, make: Callable[[], _Page]) -> _Page:
        """A page that the hosts' files alone decide: from the cache where it has it."""
        if self.cache is None:
            return make()
        files = self.run.files(host)
        problems = [problem.sentence for problem in self.run.problems]
        slot = self.cache.slot(files, f"page {name} {problems}")
        page = cast("_Page | None", self.cache.get(slot))  # what `make` gave once
        if page is None:
            page = make()
            if not any(reader.unreadable(files) for reader in self._readers):  # that may be over next time
                self.cache.put(slot, page)
                self.cache.trim()
        return page

    def _overview_so_far(self, files: Sequence[HostFile], done: int) -> Overview | None:
        """The overview of those of some hosts that are read; None where none is readable so far."""
        from tpuprof.parsers.pages.overview.overview import overview  # noqa: PLC0415

        summaries = self._reader.readable(files)
        if not summaries:
            return None
        page = overview(summaries, self._modules_in(files))
        note = f"{done:,} of {len(files):,} hosts so far: the others are still being read"
        return replace(
            page, warnings=(note, *page.warnings, *left_out(error for _, error in self._reader.unreadable(files)))
        )

    def hosts(self) -> HostsPage:
        """The hosts of the run compared; errors as for `overview`."""
        from tpuprof.parsers.pages.hosts.hosts import hosts_page  # noqa: PLC0415
        from tpuprof.parsers.pages.hosts.model import LeftOut  # noqa: PLC0415

        summaries = self._summarised(None)[0]
        left_out = [LeftOut(file.host, error.sentence) for file, error in self._reader.unreadable(self.run.hosts)]
        return hosts_page(summaries, left_out, self.run.problems)

    def ops(self, host: str | None = None) -> OpsPage:
        """All HLO ops, of one host or of all; errors as for `overview`."""
        known = self._ops.get(host)
        if known is None:
            known = self._kept("ops", host, lambda: self._new_ops(host))
        if self._is_whole(host) and known.hosts != tuple(summary.host for summary in self._summarised(host)[0]):
            known = self._new_ops(host)  # a file has changed
        self._ops[host] = known
        return known

    def _new_ops(self, host: str | None) -> OpsPage:
        from tpuprof.parsers.pages.ops.ops import ops_page  # noqa: PLC0415

        summaries, notes = self._ops_summarised(host)
        page = ops_page(summaries)
        return replace(page, warnings=(*page.warnings, *notes))

    def op_profile(self, host: str | None = None, with_idle: bool = True) -> OpProfilePage:
        """The op profile's trees; errors as for `overview`."""
        from tpuprof.parsers.pages.ops.op_profile import op_profile_page  # noqa: PLC0415

        return op_profile_page(self.ops(host), with_idle)

    def framework_ops(self, host: str | None = None) -> FrameworkOpsPage:
        """Framework ops, on the device and on the host; errors as for `overview`."""
        from tpuprof.parsers.pages.ops.framework_ops import framework_ops_page  # noqa: PLC0415

        summaries = self._summarised(host)[0]
        return framework_ops_page(self.ops(host), [summary.host_ops for summary in summaries])

    def roofline(self, host: str | None = None, with_infeed: bool = True) -> RooflinePage:
        """The roofline; errors as for `overview`."""
        from tpuprof.parsers.pages.ops.roofline import roofline_page  # noqa: PLC0415

        summaries = self._summarised(host)[0]  # before the ops: what can't be read any more is in neither
        return roofline_page(self.ops(host), summaries, with_infeed)

    def collectives(self, host: str | None = None) -> CollectivesPage:
        """What moves between cores, and what compute hides of it; errors as for `overview`."""
        from tpuprof.parsers.session.collectives import read_collectives  # noqa: PLC0415

        files = self.run.files(host)
        return read_collectives(files, self.summaries(host), Meter(files, self._on_progress, self._is_cancelled))

    def has_sparse_cores(self, host: str | None = None) -> bool:
        """Whether a profile of one host, or of any, has SparseCores; reads what the pages of ops need."""
        return any(summary.sparse_core_count for summary in self._ops_summarised(host)[0])

    def sparse_core(self, host: str | None = None) -> SparseCorePage:
        """What SparseCores do beside the TensorCores; errors as for `overview`."""
        from tpuprof.parsers.session.sparse_core import read_sparse_core  # noqa: PLC0415

        meter = Meter(self.run.files(host), self._on_progress, self._is_cancelled)
        return read_sparse_core(self.run, host, meter, self.summaries, lambda: self.overview(host).warnings)

    def input_pipeline(self, host: str | None = None) -> InputPipelinePage:
        """The input pipeline; errors as for `overview`."""
        from tpuprof.parsers.pages.input.input import input_pipeline_page  # noqa: PLC0415

        page = self.overview(host)
        return input_pipeline_page(self._summarised(host)[0], page)

    def inference(self, host: str | None = None) -> InferencePage:
        """Latencies of requests, or of module runs; errors as for `overview`."""
        from tpuprof.parsers.pages.common import why_no_ops  # noqa: PLC0415
        from tpuprof.parsers.pages.inference import inference  # noqa: PLC0415

        page = self.overview(host)
        if page.inference is not None:
            return replace(page.inference, warnings=page.warnings)
        summaries, is_training = self._summarised(host)[0], page.environment.is_training
        parts, programs = [summary.requests for summary in summaries], self._modules_of(host)
        return inference(parts, page.hosts, is_training, why_no_ops(summaries), page.warnings, programs)

    def timeline(self, host: str | None = None, with_steps: bool = True, on_part: OnPart | None = None) -> Timeline:
        """All events of one host; when `host` is None, of the first with a device. It keeps only the last timeline.

        Args:
            with_steps: whether to add the overview's steps, for which it decodes all that the overview needs.
            on_part: receives what is read so far, section by section, on this thread.

        Raises:
            ProfileError: as for `overview`.
            Cancelled: `is_cancelled` said so.
        """
        from tpuprof.parsers.timeline.read.timeline import needed_bytes as timeline_bytes  # noqa: PLC0415
        from tpuprof.parsers.timeline.read.timeline import read_timeline  # noqa: PLC0415

        failures: list[ProfileError] = []
        for file in best_first(self.run.files(host)):
            known = self._timelines.get((file, with_steps))
            if known is not None:
                return known
            meter = Meter((file,), self._on_progress, self._is_cancelled)
            try:
                steps, inferred = self._step_spans(file.host) if with_steps else ((), False)
                meter.begin(0)
                with closing(opened(file)) as trace:
                    meter.opened(timeline_bytes(trace))
                    self._timelines.clear()  # never two at once
                    made = read_timeline(
                        trace, file.label, file.path, steps, inferred, meter.chunk, decoding_threads(), on_part
                    )
            except ProfileError as error:
                failures.append(error)
                continue
            made = replace(made, warnings=(*made.warnings, *self._of_core))
            self._timelines[file, with_steps] = made
            return made
        raise failures[0] if failures else nothing_to_read(self.run)

    def _step_spans(self, host: str) -> tuple[tuple[StepSpan, ...], bool]:
        """The steps of a host's overview, and whether they are inferred."""
        from tpuprof.parsers.timeline.model import StepSpan  # noqa: PLC0415

        page = self.overview(host)
        spans = tuple(StepSpan(step.name, step.start_ps, step.start_ps + step.duration_ps) for step in page.steps)
        return spans, page.performance.step_time is not None and page.performance.step_time.source == "modules"

    def flows(self, timeline: Timeline) -> Flows:
        """Finds what launched what, and which asynchronous ops belong together.

        Raises:
            ProfileError: the file cannot be read any more.
            Cancelled: `is_cancelled` said so.
        """
        from tpuprof.parsers.timeline.read.flows import read_flows  # noqa: PLC0415

        with closing(Trace.open(timeline.path)) as trace:
            return read_flows(trace, timeline, self._poll)

    def counters(self, host: str | None = None) -> CountersPage:
        """The performance counters of one host, or of all hosts; errors as for `overview`."""
        from tpuprof.parsers.session.counters import read_counters  # noqa: PLC0415

        if host not in self._counters:
            meter = Meter(files := self.run.files(host), self._on_progress, self._is_cancelled)
            self._counters[host] = read_counters(files, meter, self._of_core, partial(nothing_to_read, self.run))
        return self._counters[host]

    def has_counters(self, host: str | None = None) -> bool:
        """Whether a host's devices have performance counters; of many hosts it asks a few."""
        from tpuprof.parsers.session.counters import any_counters  # noqa: PLC0415

        return any_counters(self.run.files(host))

    def memory(self, host: str | None = None) -> CompiledModules:
        """The compiled modules of one host, or of all hosts each once, and of HLO files in the run's folder.

        It decodes only metadata; `CompiledModules.page` makes the memory page.

        Raises:
            ProfileError: as for `overview`.
        """
        from tpuprof.parsers.pages.memory import CompiledModules, files_in_run  # noqa: PLC0415

        known = self._compiled.get(host)
        if known is None:
            files = self.run.files(host)
            meter = Meter(files, lambda _: None, self._is_cancelled)
            sources, failures = each_host(files, meter, self._module_source)
            beside = files_in_run(self.run.path)
            sources += [beside] if beside is not None else []
            if not sources:
                raise failures[0] if failures else nothing_to_read(self.run)
            notes = (*left_out(failures), *self._of_core)
            known = CompiledModules(sources, lambda: self._reported_capacity(host), lambda: self._poll(0, 0), notes)
            self._compiled[host] = known
        return known

    def _module_source(self, file: HostFile, meter: Meter) -> ModuleSource:
        from tpuprof.parsers.pages.memory import ModuleSource  # noqa: PLC0415

        known = self._sources.get(file.path)
        if known is None:
            with closing(opened(file)) as trace:
                known = self._sources[file.path] = ModuleSource.of(trace, file.label)
        return known

    def _reported_capacity(self, host: str | None) -> Capacity | None:
        """The smallest capacity that a device's allocator reported, where one did."""
        from tpuprof.parsers.pages.memory import reported_capacity  # noqa: PLC0415

        return reported_capacity(allocator for part in self._memory_over_time(host)[0] for allocator in part.allocators)

    def graphs(self, host: str | None = None) -> Programs:
        """The compiled modules as graphs with the times of their ops, none parsed yet; errors as for `overview`."""
        from tpuprof.parsers.pages.graph.programs import Programs  # noqa: PLC0415 - when asked for

        return Programs(self.memory(host), self.ops(host))

    def memory_profile(self, host: str | None = None) -> MemoryProfilePage:
        """The memory that the allocators of one host, or of all hosts, reported; errors as for `overview`."""
        from tpuprof.parsers.pages.memory import memory_profile_page  # noqa: PLC0415

        parts, notes = self._memory_over_time(host)
        return memory_profile_page(
            [part.allocators for part in parts],
            [part.host for part in parts],
            [part.why_empty for part in parts],
            notes,
        )

    def module_runs(self, host: str | None = None) -> tuple[ModuleRuns, ...]:
        """Runs of compiled modules on the devices, one entry for each host, to lay over the memory profile."""
        return tuple(part.runs for part in self._memory_over_time(host)[0])

    def _memory_over_time(self, host: str | None) -> tuple[list[HostMemory], list[str]]:
        """Each host's allocators, at least one host, and what to say about hosts that are left out."""
        files = self.run.files(host)
        meter = Meter(files, self._on_progress, self._is_cancelled)
        parts, failures = each_host(files, meter, self._allocators_of)
        if not parts:
            raise failures[0] if failures else nothing_to_read(self.run)
        return parts, [*left_out(failures), *self._of_core]

    def _allocators_of(self, file: HostFile, meter: Meter) -> HostMemory:
        from tpuprof.parsers.memory.allocators.profile import host_memory  # noqa: PLC0415
        from tpuprof.parsers.ops.device import device_numbers  # noqa: PLC0415

        known = self._host_memory.get(file.path)
        if known is None:
            with closing(opened(file)) as trace:
                known = self._host_memory[file.path] = host_memory(
                    trace, file.label, meter.chunk, device_numbers(trace) if file.core else None
                )
        return known

    @property
    def _of_core(self) -> list[str]:
        """What to say where one core is all that is looked at."""
        return [only_shown(file.label) for file in self.run.hosts if file.core]

    def _poll(self, size: int, events: int) -> None:
        """Ends the work where the user wants it."""
        if self._is_cancelled():
            raise Cancelled

    def modules(self, host: str | None = None) -> tuple[HloModules, ...]:
        """The HLO modules that the hosts' profiles hold, parsed when asked for; errors as for `overview`."""
        self._ops_summarised(host)
        return self._modules_of(host)

    def _modules_of(self, host: str | None) -> tuple[HloModules, ...]:
        """The HLO modules of the hosts that are summarised; each program once, because they are large."""
        return self._modules_in(self.run.files(host))

    def _modules_in(self, chosen: Sequence[HostFile]) -> tuple[HloModules, ...]:
        """The modules of the summarised hosts that have a program which no host before them has."""
        distinct: list[HloModules] = []
        seen: set[int] = set()
        for file in chosen:
            if not self._is_summarised(file) or (distinct and seen.issuperset(self._programs_of(file))):
                continue
            self._poll(0, 0)
            try:
                modules = self._host_modules(file)
            except ProfileError:  # it was readable a moment ago
                continue
            if not distinct or not seen.issuperset(modules.names):
                self._modules[file.path] = modules
                distinct.append(modules)
                seen.update(modules.names)
        return tuple(distinct)

    def _is_summarised(self, file: HostFile) -> bool:
        whole = self._whole_reader
        known = whole.summaries if whole is not None and whole.knows(file) else self._op_reader.summaries
        return file.path in known

    def _programs_of(self, file: HostFile) -> Iterable[int]:
        """The programs that a summarised host's file holds; one that none has where only opening it would tell."""
        whole = self._whole_reader.summaries.get(file.path) if self._whole_reader is not None else None
        return self._programs.get(file.path, (-1,)) if whole is None else whole.hlo_programs

    def summaries(self, host: str | None = None) -> Sequence[HostSummary]:
        """What each readable host adds to the pages, in the order of the hosts; errors as for `overview`."""
        return self._summarised(host)[0]

    def _summarised(
        self, host: str | None, on_host: Callable[[int], None] | None = None
    ) -> tuple[list[HostSummary], list[str]]:
        """The hosts' summaries, at least one, and what to say about hosts that are left out."""
        return self._read(self._reader, host, on_host)

    def _ops_summarised(self, host: str | None) -> tuple[Sequence[OpSummary], list[str]]:
        """What the pages of ops need of the hosts; from the whole summaries where there are some already."""
        return self._summarised(host) if self._is_whole(host) else self._read(self._op_reader, host)

    def _is_whole(self, host: str | None) -> bool:
        """Whether more than ops has been asked for of all these hosts."""
        return self._whole_reader is not None and all(map(self._whole_reader.knows, self.run.files(host)))

    def _read(
        self, reader: HostReader[_Summary], host: str | None, on_host: Callable[[int], None] | None = None
    ) -> tuple[list[_Summary], list[str]]:
        """The same of any kind of summary."""
        files = self.run.files(host)
        reader.read(files, on_host or (lambda _: None))
        summaries, failed = reader.readable(files), reader.unreadable(files)
        if not summaries:
            raise next((error for _, error in failed), nothing_to_read(self.run))
        notes = left_out(error for _, error in failed)
        return summaries, [*notes, *(problem.sentence for problem in self.run.problems)]

    def _host_modules(self, file: HostFile) -> HloModules:
        from tpuprof.parsers.formats.hlo.programs import HloModules  # noqa: PLC0415

        if (known := self._modules.get(file.path)) is None:
            with closing(Trace.open(file.path)) as trace:
                known = HloModules.of(trace)
            self._programs[file.path] = tuple(known.names)
        return known
