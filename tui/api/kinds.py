"""What may be open: a profile, and other files that have some of its pages."""

from __future__ import annotations

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import printable
from tpuprof.tui.pages import PAGE_NAMES, PageName


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of what may be open.

    Attributes:
        what: it is, with an article.
        pages: that it has.
        has: how what it has is asked for, for a hint.
    """

    what: str
    pages: tuple[PageName, ...]
    has: str = ""

    def lacks(self, path: str, page: str = "") -> ProfileError:
        """The error for what it does not have."""
        sentence = f"{printable(path)} is {self.what}: it has no {f'page {page}' if page else 'profile of a program'}."
        return ProfileError("lacks_page", sentence, self.has, EXIT_NOT_FOUND)


PROFILE = Kind("a profile", PAGE_NAMES)
MODULES = Kind(
    "a dump of compiled modules", ("memory", "graph"), 'memory(), fit(), table("memory", "buffers") or table("graph")'
)
ARRAYS = Kind("a device memory profile", ("live-arrays",), 'table("live-arrays")')
LOG = Kind("a log", (), "oom() looks for out-of-memory errors")

OF_MODULES = ("memory.key:MEMORY", "memory.key:MEMORY_PROFILE")
"""Keys of the pages that compiled modules have too."""
