"""How a page is asked for, and what its maker asks of the session that is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from tpuprof.parsers.base.record import dataclass

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import HostFile, Run
    from tpuprof.parsers.formats.hlo.programs import HloModules
    from tpuprof.parsers.hosts.progress import Meter
    from tpuprof.parsers.hosts.reduction import Given, Reduced, Reduction, Result
    from tpuprof.parsers.hosts.summary import HostSummary

Page = TypeVar("Page")
Page_co = TypeVar("Page_co", covariant=True)

OnPartial: TypeAlias = Callable[[Page, int, int], None]
"""Receives a page over some hosts, how many these are, and how many there are in all."""


@dataclass(frozen=True, slots=True)
class PageKey(Generic[Page_co]):
    """Which page of a run.

    Attributes:
        make: takes a session and the host, None for all hosts, and returns the page.
        make_as_read: does the same, and before that makes pages over the hosts read so far; None where the page has to
            wait for all of them.
        is_held: whether the session holds the page once it is made.
        cached_as: the name under which the user's cache keeps it too; such a page has `hosts`. Empty for none.
    """

    make: Callable[[PageSession, str | None], Page_co]
    make_as_read: Callable[[PageSession, str | None, OnPartial[Any]], Page_co] | None = None
    is_held: bool = False
    cached_as: str = ""


@dataclass(frozen=True, slots=True)
class Later:
    """A function, ``module:function``, whose module is imported when it is called first."""

    place: str

    def __call__(self, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - those of the function
        """What the function returns."""
        return named_in(self.place)(*given, **named)


def named_in(place: str) -> Any:  # noqa: ANN401 - a function, a key
    """What ``module:name`` leads to; imports the module."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


class PageSession(Protocol):
    """What the maker of a page asks of a session (`parsers.session.session.Session`).

    Attributes:
        run: whose pages they are.
        modules: by path, the HLO modules of hosts' files that are open; programs: the ids of those that each file has.
        sources: by path, the same modules as the memory page has them.
    """

    run: Run
    modules: dict[str, HloModules]
    programs: dict[str, Sequence[int]]
    sources: dict[str, Any]

    def page(self, key: PageKey[Page], host: str | None = None) -> Page:
        """A page of one host, or of all hosts merged."""

    def reduced(
        self, reduction: Reduction[None, Result], host: str | None = None, on_host: Callable[[int], None] = ...
    ) -> Reduced[Result]:
        """The summaries of one host or of all, at least one."""

    def reduced_so_far(self, reduction: Reduction[None, Result], host: str | None = None) -> Reduced[Result]:
        """Those that are known by now."""

    def reduced_with(self, reduction: Reduction[Given, Result], given: Mapping[HostFile, Given]) -> Reduced[Result]:
        """Those of some files, for a reduction that is given something for each."""

    def of_core(self, core: str, host: str | None = None) -> PageSession:
        """A session of one core, chip or group of cores."""

    def meter(self, files: Sequence[HostFile], decodes: bool = True) -> Meter: ...

    def poll(self, size: int = 0, events: int = 0) -> None:
        """Ends the work where the user wants it."""

    @property
    def threads(self) -> int:
        """How many threads may decode at once."""

    @property
    def problems(self) -> list[str]: ...

    @property
    def only_shown(self) -> list[str]:
        """What to say where one core, or a part of the capture, is all that is looked at."""


MODULES: PageKey[tuple[HloModules, ...]] = PageKey(Later("tpuprof.parsers.pages.shared.modules:modules"))
SUMMARIES: PageKey[tuple[HostSummary, ...]] = PageKey(Later("tpuprof.parsers.pages.shared.summaries:summaries"))
