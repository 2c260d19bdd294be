"""The popup that compares hosts: what its keys do beyond the last host, and its foot on a narrow screen."""

from __future__ import annotations

from textual.geometry import Size

from tests.support.app.stage import LOOK
from tests.support.made.many_hosts import straggling_page
from tpuprof.tui.pages.hosts.popup import HostsList
from tpuprof.tui.widgets.lists.popup import ListPopup


def popup_of(opened: list[str | None], width: int = 80) -> ListPopup:
    listed = HostsList(straggling_page(), lambda host, core: opened.append(core or host))
    popup = ListPopup(LOOK, "Hosts", listed)
    popup.place(Size(width, 24))
    return popup


def drawn(popup: ListPopup, width: int = 80) -> list[str]:
    return ["".join(text for text, _ in line) for line in popup.draw(width, popup.room + 2)]


def test_the_end_of_the_hosts_is_a_stop_on_the_way_to_the_notes() -> None:
    opened: list[str | None] = []
    popup = popup_of(opened)
    drawn(popup)
    popup.press("G", "G")
    assert popup.listed.cursor == 13  # host4, which is left out, below four hosts with two cores each
    assert any("host4 left out" in " ".join(line.split()) for line in drawn(popup))
    popup.press("enter", None)
    assert popup.is_open and not opened
    popup.press("j", "j")
    assert any("─ Notes ─" in line for line in drawn(popup))
    popup.press("enter", None)
    assert popup.is_open and not opened
    popup.press("k", "k")
    popup.press("k", "k")
    drawn(popup)
    popup.press("enter", None)
    assert opened == ["host3:1"] and not popup.is_open


def test_escape_says_where_it_leads() -> None:
    popup = popup_of([], width=60)
    assert popup.leave_key.short == "back"
    popup.press("l", "l")
    assert popup.leave_key.short == "all steps"
