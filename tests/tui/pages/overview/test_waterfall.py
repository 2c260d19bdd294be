"""The parts of the bar of a step: the card of each, and where `o` leads from it."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.app.scene import after, press, scene
from tests.support.app.stage import ReadyPages, frame, input_tab, make_app, ops_tab, overview_tab, timeline_tab
from tests.support.build import present
from tests.support.golden import check_lines
from tests.support.golden import frame as text_of
from tests.support.made.pages import MS, training_account, training_overview, two_findings
from tpuprof.parsers.pages.findings.finding import Finding, OwnerClaim
from tpuprof.parsers.pages.overview.ledger import MeanStep, with_claims
from tpuprof.parsers.pages.overview.owner_ops import OwnerOp, OwnerOps
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES, OWNERS, Owner
from tpuprof.tui.draw.columns import PanelItem
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import ASCII, BLOCK, Glyphs
from tpuprof.tui.pages.overview.ledger.card import bar_details, bar_line, place_of
from tpuprof.tui.pages.overview.ledger.drawing import Bar, bars, owner_parts, stacked_bar, waterfall

LOSS = OwnerOps(
    3,
    400.0 * MS,
    (OwnerOp("mlp/dot_general (2 ops)", "fusion.3", 300.0 * MS, 0.75), OwnerOp("add.1", "add.1", 100.0 * MS, 0.25)),
)


def account_with_ops() -> MeanStep:
    return dataclasses.replace(training_account(), ops={"loss": LOSS, "collective_wait": LOSS})


def bar_of(owner: Owner, account: MeanStep) -> Bar:
    return next(bar for bar in bars(account) if bar.owners[0].owner == owner)


def card(owner: Owner, glyphs: Glyphs = BLOCK) -> str:
    account = account_with_ops()
    return text_of(bar_details(bar_of(owner, account), account, (), "somewhere", Pen(76, glyphs)))


def test_the_card_of_an_owner_has_its_definition_its_time_its_steps_its_cores_and_its_ops() -> None:
    said = card("loss")
    assert said.startswith("below the roof") and "compute time beyond the time at the roof." in said
    assert "50.0 ms, 23.6% of the mean step of 212 ms" in said
    assert [line.split()[:2] for line in said.splitlines() if line.startswith("step ")] == [
        ["step", n] for n in ("100", "101", "102")
    ]
    assert sum(line.startswith("demo-vm:") for line in said.splitlines()) == 3
    rows = [line.split() for line in said.splitlines() if line.startswith(("mlp/", "add.1"))]
    assert rows == [["mlp/dot_general", "(2", "ops)", "300", "ms", "75.0%"], ["add.1", "100", "ms", "25.0%"]]
    assert "All cores, whole capture, also between steps: 3 ops, 400 ms below the roof." in said


def reasoned(owner: Owner, *reasons: Finding) -> str:
    """The card of an owner where these are the reasons."""
    account = with_claims(account_with_ops(), reasons)
    return text_of(bar_details(bar_of(owner, account), account, reasons, "somewhere", Pen(76, BLOCK)))


def test_the_card_says_which_reasons_claim_how_much_and_what_none_claims() -> None:
    first, second = two_findings()
    reasons = (
        first,
        dataclasses.replace(first, claims=(OwnerClaim("loss", 10.0 * MS), OwnerClaim("input", 3.0 * MS))),
        dataclasses.replace(second, claims=(OwnerClaim("loss", 5.0 * MS),)),
    )
    said = reasoned("loss", *reasons)
    assert "2 and 3 explain 15.0 ms of 50.0 ms, none the other" in said and "35.0 ms" in said
    rows = [line.split() for line in said.splitlines() if line.startswith(("2  ", "3  "))]
    assert [row[-3:] for row in rows] == [["10.0", "ms", "20.0%"], ["5.00", "ms", "10.0%"]]
    assert first.title in said and second.title in said
    assert "none" in reasoned("copy", *reasons)
    assert "findings" not in reasoned("ideal", *reasons)
    said = reasoned("input", dataclasses.replace(first, claims=(OwnerClaim("input", 32.5 * MS),)))
    assert "1 explains 32.5 ms of 32.5 ms\n" in said and "none the other" not in said


def test_an_owner_without_ops_says_so_and_one_of_waits_that_its_ops_count_both() -> None:
    assert "It is time without an op" in card("host")
    assert "waiting and moving" in card("collective_wait").replace("\n", " ") and "No op" not in card("collective_wait")


def test_the_step_that_has_most_comes_first_with_its_share_of_that_step() -> None:
    rows = [line.split() for line in card("input").splitlines() if line.startswith("step 1")]
    assert rows[0] == ["step", "103", "180", "ms", "49.9%"] and len(rows) == 3


def test_the_smallest_owners_have_a_card_together_that_defines_each() -> None:
    account = account_with_ops()
    others = Bar(tuple(owner for bar in bars(account)[-4:-1] for owner in bar.owners))
    said = text_of(bar_details(others, account, (), "somewhere", Pen(76, BLOCK)))
    for title in ("copies", "collectives, waiting", "not counted"):
        assert title in said and title in text_of([bar_line(others, Pen(76, BLOCK))])
    assert "11.0 ms     5.2%" in said and "moving data within the device" in said


@given(st.integers(40, 160), st.sampled_from([BLOCK, ASCII]))
def test_bars_keep_their_width(width: int, glyphs: Glyphs) -> None:
    account, pen = training_account(), Pen(width, glyphs)
    check_lines(waterfall(account, pen), width, glyphs)
    check_lines(stacked_bar(owner_parts(account), pen, True, 1), width, glyphs)


@given(st.sampled_from(OWNERS), st.integers(40, 160), st.sampled_from([BLOCK, ASCII]), st.text(max_size=40))
def test_cards_keep_their_width_whatever_ops_are_called(owner: Owner, width: int, glyphs: Glyphs, name: str) -> None:
    account = training_account()
    ops = OwnerOps(1, 1.0, (OwnerOp(name, name, 1.0, 1.0),))
    account = dataclasses.replace(account, ops=dict.fromkeys(OWNERS, ops))
    for bar in bars(account):
        check_lines(bar_details(bar, account, (), name, Pen(width, glyphs)), width, glyphs)
        check_lines([bar_line(bar, Pen(width, glyphs))], width, glyphs)


def test_each_owner_leads_to_where_to_look() -> None:
    account = account_with_ops()
    places = {
        owner: place_of(bar_of(owner, account), account)
        for owner in ("loss", "input", "host", "copy", "collective_wait")
    }
    assert {owner: (place.tab, place.target) for owner, place in places.items()} == {
        "loss": ("op-profile", "fusion.3"),
        "input": ("input", "103"),
        "host": ("timeline", "103"),
        "copy": ("timeline", "100"),
        "collective_wait": ("timeline", "100"),
    }


async def test_enter_on_a_bar_opens_its_card_and_o_leads_on_from_it() -> None:
    page = dataclasses.replace(training_overview(), account=account_with_ops())
    async with scene(make_app(ReadyPages(page)), width=120, height=40) as (app, pilot):
        assert "23.6% of the mean step of 212 ms" in await after(pilot, "j", "j", "j", "enter")
        assert "o shows fusion.3 in tab 3, ops" in frame(app) and "O timeline" not in frame(app)
        await press(pilot, "o")
        assert app.main.tab_name == "op-profile" and ops_tab(app).selection == "fusion.3"
        await press(pilot, "escape")
        assert overview_tab(app).place == PanelItem("owners", 1)
        await press(pilot, "j", "o")
        assert app.main.tab_name == "input" and input_tab(app).place == PanelItem("steps", 3)
        await press(pilot, "escape", "j", "j", "o")
        assert app.main.tab_name == "timeline" and timeline_tab(app).selection == "103"


async def test_a_bar_is_found_by_a_search_and_its_name_is_what_is_copied() -> None:
    async with scene(width=120, height=40, keys=["/", *"moving", "enter"]) as (app, _):
        assert overview_tab(app).place == PanelItem("owners", 3)
        assert overview_tab(app).selection == "collectives, moving"


@pytest.mark.parametrize(("width", "height"), [(60, 15), (80, 24), (120, 33), (120, 40), (200, 50)])
async def test_the_cursor_reaches_every_owner_at_any_height(width: int, height: int) -> None:
    account = training_account()
    async with scene(width=width, height=height, keys=["j", "j"]) as (app, pilot):
        seen: set[Owner] = set()
        while (place := present(overview_tab(app).place)).panel == "owners":
            bar = overview_tab(app)._bars(present(overview_tab(app)._page))[place.index]
            seen |= bar.names
            assert app.main.look.glyphs.mark in frame(app), "the mark is in sight"
            said = await after(pilot, "enter")
            assert (OWNER_TITLES[bar.owners[0].owner] if len(bar.owners) == 1 else "The smallest parts") in said
            await press(pilot, "escape", "j")
        assert place == PanelItem("ops", 0)
        assert seen == {each.owner for each in account.owners if each.time_ps > 0}


async def test_on_a_low_screen_the_heading_names_the_part_under_the_cursor() -> None:
    async with scene() as (app, pilot):
        assert "at the roof 83.0 ms 39.2%" in await after(pilot, "j", "j")
        assert "▸█R 39.2%" in frame(app)
        assert "below the roof 50.0 ms 23.6%" in await after(pilot, "j")
