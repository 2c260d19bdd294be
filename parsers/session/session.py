"""What a front end holds: one run, opened lazily, its pages computed on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from tpuprof.parsers.base.errors import Cancelled
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.files.logdir import HostFile, Run
from tpuprof.parsers.hosts.plan import decoding_threads
from tpuprof.parsers.hosts.progress import Meter, OnProgress, Progress
from tpuprof.parsers.hosts.reader import HostReader, ReadOptions
from tpuprof.parsers.hosts.reduction import Given, Reduced, Reduction, Result
from tpuprof.parsers.pages.shared.host_files import nothing_to_read
from tpuprof.parsers.pages.shared.key import Later, OnPartial, Page, PageKey
from tpuprof.parsers.session.one_core import narrowed

if TYPE_CHECKING:
    from tpuprof.parsers.formats.hlo.programs import HloModules
    from tpuprof.parsers.hosts.cache import HostCache, Slot
    from tpuprof.parsers.pages.memory.compiled import ModuleSource
    from tpuprof.parsers.timeline.hosts.clocks import HostClocks
    from tpuprof.parsers.timeline.hosts.joined import HostRead
    from tpuprof.parsers.timeline.model import Timeline
    from tpuprof.parsers.timeline.read.flows import Flows
    from tpuprof.parsers.timeline.read.timeline import OnPart


_PARTS, _TIMELINES = "tpuprof.parsers.pages.ops.parts:", "tpuprof.parsers.session.timeline:"
_IN_STEPS, _BETWEEN = Later(f"{_PARTS}in_steps"), Later(f"{_PARTS}between")
_INTERVAL_OF_STEPS = Later(f"{_PARTS}interval_of_steps")
_TIMELINE, _HOST_TIMELINE = Later(f"{_TIMELINES}timeline"), Later(f"{_TIMELINES}host_timeline")
_SPLIT_WORDS = Later("tpuprof.parsers.pages.shared.split_runs:split_words")
_FLOWS = Later("tpuprof.parsers.timeline.read.flows:flows_of")


class Session:
    """One run of a logdir. One thread at a time asks for pages; the work on a page takes several.

    Args:
        run: what `parsers.files.logdir` found.
        on_progress: called often, on the decoding threads; it must be cheap and thread-safe.
        is_cancelled: called between chunks; when it returns True the work stops with `parsers.base.errors.Cancelled`.
        cache: where what was read of hosts is kept from one session to the next; None to keep none.
        jobs: how many cores may be busy; None for all that there are (`parsers.hosts.plan`).

    Attributes:
        modules: by path, the HLO modules of hosts' files that are open; programs: the ids of those that each file has.
        sources: by path, the same modules as the memory page has them.
        timelines: the last timeline, by its file and whether it has steps.
        clocks: how the hosts' clocks come to one axis; None as long as nothing was put on it.
    """

    def __init__(
        self,
        run: Run,
        on_progress: OnProgress = lambda _: None,
        is_cancelled: Callable[[], bool] = lambda: False,
        *,
        cache: HostCache | None = None,
        jobs: int | None = None,
    ) -> None:
        self.run = run
        self.modules: dict[str, HloModules] = {}
        self.programs: dict[str, Sequence[int]] = {}
        self.sources: dict[str, ModuleSource] = {}
        self.timelines: dict[tuple[HostFile, bool], Timeline] = {}
        self.clocks: HostClocks | None = None
        self._options = ReadOptions(on_progress, is_cancelled, cache, jobs)
        self._readers: dict[str, HostReader[Any, Any]] = {}
        self._held: dict[tuple[PageKey[Any], str | None], object] = {}
        self._narrowed: Session | None = None

    def of_core(self, core: str, host: str | None = None) -> Session:
        """A session whose pages are all of one core, chip or group of cores; only the last such session is kept.

        Raises:
            ProfileError: as `narrowed`.
        """
        run = narrowed(self.run, core, host, self)
        if run == self.run:
            return self
        if self._narrowed is None or self._narrowed.run != run:
            one = Session(run)
            one._options = self._options
            one.modules, one.programs = self.modules, self.programs  # of all cores
            one.timelines = self.timelines  # of which only one is kept
            self._narrowed = one
        return self._narrowed

    def in_steps(self, steps: str, host: str | None = None) -> Session:
        """A session whose pages are all made of the events that start in a step, or in a range of steps, ``104-108``.

        Raises:
            ProfileError: `no_steps`, `unknown_step`, exit code 3; and as for `page`.
            Cancelled: as for `page`.
        """
        return self._of_part(_IN_STEPS(self, host, steps))

    def interval_of_steps(self, steps: str, host: str | None = None) -> tuple[int, int]:
        """From the first core's begin to the last core's end of some steps, on the clock of the first host asked for.

        Raises:
            ProfileError, Cancelled: as for `in_steps`.
        """
        found: tuple[int, int] = _INTERVAL_OF_STEPS(self, host, steps)
        return found

    def between(self, start_ps: int | None, end_ps: int | None, host: str | None = None) -> Session:
        """The same of the events that start in an interval of the trace's clock, which one host has.

        Args:
            start_ps, end_ps: None for the begin or the end of the trace; the end is outside.

        Raises:
            ProfileError: `usage`, exit code 2, where several hosts are asked for.
        """
        return self._of_part(_BETWEEN(self, host, start_ps, end_ps))

    def _of_part(self, run: Run) -> Session:
        one = Session(run)
        one._options = replace(self._options, cache=None)
        one.modules, one.programs = self.modules, self.programs  # of the whole capture
        return one

    @property
    def threads(self) -> int:
        """How many threads may decode at once."""
        return decoding_threads(self._options.jobs)

    # --- pages

    def page(self, key: PageKey[Page], host: str | None = None) -> Page:
        """A page of one host, or of all hosts merged when `host` is None.

        A host that cannot be read is left out and named in the page's warnings.

        Raises:
            ProfileError: no host of the run is readable (exit code 4), or `host` names none (exit code 3).
            Cancelled: `is_cancelled` said so.
        """
        return self._page(key, host, lambda: key.make(self, host))

    def page_as_read(self, key: PageKey[Page], host: str | None, on_partial: OnPartial[Page]) -> Page:
        """A page; before that, where its key has such a maker, pages over the hosts that are read so far.

        Args:
            on_partial: called with a page soon after the first host is read, and again now and then until all are. The
                page's warnings say how many hosts it covers.

        Raises:
            ProfileError, Cancelled: as for `page`.
        """
        as_read = key.make_as_read
        if as_read is None:
            return self.page(key, host)
        return self._page(key, host, lambda: as_read(self, host, on_partial))

    def timeline(self, host: str | None = None, with_steps: bool = True, on_part: OnPart | None = None) -> Timeline:
        """All events of one host; when `host` is None, of the first with a device. It keeps only the last timeline.

        Args:
            with_steps: whether to add the overview's steps, for which it decodes all that the overview needs.
            on_part: receives what is read so far, section by section, on this thread.

        Raises:
            ProfileError, Cancelled: as for `page`.
        """
        made: Timeline = _TIMELINE(self, host, with_steps, on_part)
        return made

    def host_timeline(
        self,
        host: str,
        with_steps: bool = True,
        on_part: Callable[[HostRead], None] | None = None,
        only_first: bool = False,
    ) -> HostRead:
        """All events of one of several hosts, on the time axis that they share: the first one's that is asked for.

        Args:
            with_steps, on_part: as for `timeline`.
            only_first: whether to read the first section alone.

        Raises:
            ProfileError: the host can't be read, or the run has none of that name.
            Cancelled: `is_cancelled` said so.
        """
        made: HostRead = _HOST_TIMELINE(self, host, with_steps, on_part, only_first)
        return made

    def flows(self, timeline: Timeline) -> Flows:
        """Finds what launched what, and which asynchronous ops belong together.

        Raises:
            ProfileError: the file cannot be read any more.
            Cancelled: `is_cancelled` said so.
        """
        found: Flows = _FLOWS(timeline, self.poll)
        return found

    def _page(self, key: PageKey[Page], host: str | None, make: Callable[[], Page]) -> Page:
        page = cast("Page | None", self._held.get((key, host)))  # what `make` gave once
        if page is None:
            page = self._kept(key, host, make) if key.cached_as else make()
        if key.cached_as and self._is_outdated(cast("_OfHosts", page), host):
            page = make()
        if key.is_held:
            self._held[key, host] = page
        return page

    def _kept(self, key: PageKey[Page], host: str | None, make: Callable[[], Page]) -> Page:
        """A page that the hosts' files alone decide: from the cache where it has it."""
        if (cache := self._options.cache) is None:
            return make()
        files = self.run.files(host)
        slot = self._slot_of(key, files, cache)
        page = cast("Page | None", cache.get(slot))
        if page is None:
            page = make()
            if not any(reader.so_far(files).left_out for reader in self._readers.values()):  # this may end
                cache.put(slot, page)
                cache.trim()
        return page

    def kept_page(self, key: PageKey[Page]) -> Page | None:
        """A page of all hosts that an earlier session has left in the cache; None where none did. It reads no file."""
        if (cache := self._options.cache) is None:
            return None
        return cast("Page | None", cache.get(self._slot_of(key, self.run.files(), cache)))

    def _slot_of(self, key: PageKey[Page], files: Sequence[HostFile], cache: HostCache) -> Slot | None:
        return cache.slot(files, f"page {key.cached_as} {self.problems}")

    def _is_outdated(self, page: _OfHosts, host: str | None) -> bool:
        """Whether hosts that could be read for a page can't be read any more, as a more thorough page has found."""
        files = self.run.files(host)
        whole = [reader for reader in self._readers.values() if reader.reduction.includes is not None]
        return any(
            all(map(reader.knows, files)) and page.hosts != tuple(file.label for file in reader.so_far(files).files)
            for reader in whole
        )

    # --- what pages are made of

    def reduced(
        self,
        reduction: Reduction[None, Result],
        host: str | None = None,
        on_host: Callable[[int], None] = lambda _: None,
    ) -> Reduced[Result]:
        """The summaries of one host or of all, at least one; the session keeps them.

        Args:
            on_host: called after each host with how many of them are known by now.

        Raises:
            ProfileError, Cancelled: as for `page`.
        """
        files = self.run.files(host)
        found = self._reader(reduction, files).read(files, on_host)
        if not found.read:
            raise next((error for _, error in found.failed), nothing_to_read(self.run))
        return found

    def reduced_so_far(self, reduction: Reduction[None, Result], host: str | None = None) -> Reduced[Result]:
        """The summaries that are known by now."""
        files = self.run.files(host)
        return self._reader(reduction, files).so_far(files)

    def reduced_with(self, reduction: Reduction[Given, Result], given: Mapping[HostFile, Given]) -> Reduced[Result]:
        """The summaries of some hosts' files for a reduction that is given something for each; none is kept here.

        Raises:
            Cancelled: `is_cancelled` said so.
        """
        return HostReader(reduction, self._options, given.__getitem__).read(tuple(given))

    def _reader(self, reduction: Reduction[None, Result], files: Sequence[HostFile]) -> HostReader[None, Result]:
        """What reads hosts for a reduction: one that does more, where it has read all of some files already."""
        for known in self._readers.values():
            does_more = known.reduction is not reduction and known.reduction.gives(reduction)
            if does_more and all(map(known.knows, files)):
                return known
        if reduction.name not in self._readers:
            self._readers[reduction.name] = HostReader(reduction, self._options, lambda _: None)
        return self._readers[reduction.name]

    def meter(self, files: Sequence[HostFile], decodes: bool = True) -> Meter:
        """Reports the progress of what is read here, one file after the other.

        Args:
            decodes: whether events are decoded; without that there is nothing to report but files that are fetched.
        """
        on_progress = self._options.on_progress

        def fetched(progress: Progress) -> None:
            if progress.is_fetching:
                on_progress(progress)

        return Meter(files, on_progress if decodes else fetched, self._options.is_cancelled)

    @property
    def cache(self) -> HostCache | None:
        """Where what was read of hosts is kept from one session to the next."""
        return self._options.cache

    def is_cancelled(self) -> bool:
        return self._options.is_cancelled()

    def poll(self, size: int = 0, events: int = 0) -> None:
        """Ends the work where the user wants it.

        Raises:
            Cancelled: `is_cancelled` said so.
        """
        if self.is_cancelled():
            raise Cancelled

    @property
    def problems(self) -> list[str]:
        told = self.run.warnings
        return [*told, *_SPLIT_WORDS(self.run)] if self.run.beside else told

    @property
    def only_shown(self) -> list[str]:
        """What to say where one core, or a part of the capture, is all that is looked at."""
        return list(dict.fromkeys(sentence for file in self.run.hosts for sentence in file.only_shown))


class _OfHosts(Protocol):
    """A page that names its hosts."""

    @property
    def hosts(self) -> tuple[str, ...]: ...
