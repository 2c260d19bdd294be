"""What is taken from each host's file: declared once, and read in this process or in several.

A page that reads hosts declares a `Reduction`. `parsers.hosts.reader` runs any of them, and keeps what it gives in the
user's cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any, Generic, TypeVar

from tpuprof.parsers.base.errors import ProfileError, one_part
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Trace
from tpuprof.parsers.hosts.progress import ProgressReceiver
from tpuprof.parsers.ops.device import open_host

Given = TypeVar("Given")
Result = TypeVar("Result")
Made = tuple[Result, tuple[ProfileError, ...]]
"""A host's summary, and the errors of parts of its file that it is without."""


@dataclass(frozen=True, slots=True, eq=False)
class Reduction(Generic[Given, Result]):
    """How one host's file becomes a small summary. Reductions of several hosts do not know of each other.

    Attributes:
        name: what the summaries are called in the cache; no two reductions have the same.
        kind: the class of the summaries: a frozen dataclass of what `parsers.hosts.codec` can keep.
        needed_bytes: how many bytes `reduce` decodes, for the progress.
        reduce: makes the summary of an open file. It receives the file, what it is given besides, a function to call
            after each decoded chunk, and how many threads it may use. Other processes import it by its name.
        tables: attributes of the summaries that are tables of ops. All hosts of a program have the same metadata
            there, which is kept once.
        includes: another reduction, whose summaries these are as well.
        given_by: names of the reductions that include this one: where the cache has one of their summaries, no file is
            read for this one.
    """

    name: str
    kind: type[Result]
    needed_bytes: Callable[[Trace], int]
    reduce: Callable[[Trace, HostFile, Given, ChunkDone, int], Result]
    tables: tuple[str, ...] = ()
    includes: Reduction[Any, Any] | None = None
    given_by: tuple[str, ...] = ()

    def gives(self, other: Reduction[Any, Any]) -> bool:
        """Whether its summaries are those of the other reduction as well."""
        return self is other or (self.includes is not None and self.includes.gives(other))


def reduce_host(
    reduction: Reduction[Given, Result], file: HostFile, given: Given, watch: ProgressReceiver, threads: int
) -> Made[Result]:
    """Reads one host's file, or one core of it; workers call this.

    Raises:
        ProfileError: as `open_host`, or the file can't be read to its end; as `one_part`.
        Cancelled: `watch` said so.
    """
    opening = (file.path, file.host, file.core, watch.fetched, file.part)
    with one_part(f"read {printable(file.path)}"), closing(open_host(*opening)) as trace:
        watch.opened(reduction.needed_bytes(trace))
        return reduction.reduce(trace, file, given, watch.chunk, threads), tuple(trace.failed)


@dataclass(frozen=True, slots=True, eq=False)
class Reduced(Generic[Result]):
    """What a reduction made of some hosts.

    Attributes:
        read: the hosts that could be read, in their order, with their summaries.
        failed: the others, and why.
        without: why parts of those that were read are missing.
    """

    read: tuple[tuple[HostFile, Result], ...]
    failed: tuple[tuple[HostFile, ProfileError], ...]
    without: tuple[tuple[HostFile, ProfileError], ...] = ()

    def __iter__(self) -> Iterator[tuple[HostFile, Result]]:
        return iter(self.read)

    @property
    def files(self) -> list[HostFile]:
        return [file for file, _ in self.read]

    @property
    def summaries(self) -> list[Result]:
        return [part for _, part in self.read]

    @property
    def left_out(self) -> list[str]:
        without = [f"{printable(file.label)}: {error.sentence}" for file, error in self.without]
        return [*left_out(error for _, error in self.failed), *without]


def left_out(failures: Iterable[ProfileError]) -> list[str]:
    """A sentence for each host that can't be read."""
    return [f"{error.sentence.rstrip('.')}; this host is left out" for error in failures]
