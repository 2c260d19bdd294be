"""What the parts of the app act on, and how their workers send them news."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from textual.message import Message

from tpuprof.parsers.base.record import dataclass
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.popup import Popup
from tpuprof.tui.widgets.tab import Tab

N = TypeVar("N")
N_contra = TypeVar("N_contra", contravariant=True)


class AppPart(Protocol[N_contra]):
    """A part of the app with workers."""

    def take(self, news: N_contra) -> None:
        """Takes news from one of its workers; on the screen's thread."""


@dataclass()
class WorkerNews(Message):
    """News from a worker to its part."""

    part: AppPart[Any]
    news: object


class AppContext(Protocol):
    """What parts act on: the main screen, or what a test puts in its place. The footer shows `flash` until a key."""

    look: ScreenLook
    flash: str

    @property
    def tabs(self) -> Mapping[str, Tab]: ...

    @property
    def tab_name(self) -> str: ...

    @property
    def popup(self) -> Popup | None: ...

    def show_tab(self, name: str) -> None: ...

    def open(self, popup: Popup) -> None: ...

    def open_screen(self, name: str, content: object) -> None: ...

    def redraw(self) -> None:
        """Draws again what surrounds the page, and what is open above it."""

    def work(self, group: str, job: Callable[[], object], *, exclusive: bool = True) -> None:
        """Does a job on a thread; where it is exclusive, instead of older ones of its group."""

    def post_news(self, part: AppPart[N], news: N) -> None:
        """Hands what a worker found to its part; to be called on any thread."""
