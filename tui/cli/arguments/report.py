"""Arguments of the command `report`: of each page its own, and of `trend` and `share`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from itertools import groupby
from types import ModuleType
from typing import Any, NoReturn

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import nearest_hint, printable
from tpuprof.tui.cli.arguments import options
from tpuprof.tui.cli.arguments.help import COMMON
from tpuprof.tui.cli.arguments.options import DEMO, NO_OPTION, PROGRAM, UsageParser, add
from tpuprof.tui.pages import PAGE_NAMES, PAGES, Page, page_named
from tpuprof.tui.report.page import FORMATS, HTML, OF_SOME_PAGES, PARQUET

_PARTS = ("--step", "--from", "--to", "--track")
_INTERVAL = f"{PROGRAM} report timeline or {PROGRAM} report ops with --from MS --to MS"
_INSTEAD = {
    "--step": f"{PROGRAM} report ledger --step STEP, or {PROGRAM} report ops --step STEP",
    "--from": _INTERVAL,
    "--to": _INTERVAL,
}
"""What other pages have in place of an option."""


class PageParser(UsageParser):
    """The options of one page; its help has the keys of its columns."""

    def __init__(self, page: Page, *args: Any, **more: Any) -> None:  # noqa: ANN401 - as `argparse` takes them
        super().__init__(*args, **more)
        self.page = page

    def format_help(self) -> str:
        pages = _pages()
        self.description = pages.sentence(self.page.name)
        command = self.prog.removeprefix(f"{PROGRAM} ")
        self.examples = tuple(f"{command} {example}" for example in pages.examples(self.page.name))
        hidden = ("host", "core") if self.page.without_host else ()
        for action in self._actions:
            action.help = argparse.SUPPRESS if action.dest in hidden else action.help
        if keys := column_keys(self.page):
            self.part("rows").description = f"KEY: {', '.join(_shortened(keys))}"
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Raises usage errors; of an option that other pages have, with these.

        Raises:
            ProfileError: always.
        """
        given = NO_OPTION.match(message)
        owners = [page.name for page in PAGES if given is not None and given[1] in page.options.values()]
        if given is not None and owners:
            raise _of_others(given[1], owners, self.page.name)
        super().error(message)


def column_keys(page: Page) -> list[str]:
    """The keys of the columns of a page's table; none of a page without one."""
    report = page.load_report()
    table = report.chosen_table or report.csv_table
    return [] if table is None else [field.key for field in table.fields if not field.key.endswith("_bar")]


def _shortened(keys: Iterable[str]) -> Iterator[str]:
    """Keys of columns; those of one object are put together, ``a.{b,c}``."""
    for parent, of_parent in groupby(keys, lambda key: key.rpartition(".")[0]):
        names = [key.rpartition(".")[2] for key in of_parent]
        if not parent:
            yield from names
        else:
            yield f"{parent}.{{{', '.join(names)}}}"


def _of_others(option: str, owners: Sequence[str], page: str) -> ProfileError:
    sentence = f"{option} is for the page{'s' * (len(owners) > 1)} {', '.join(owners)}, not {page}."
    if option == "--step":
        sentence = f"The page {page} can't be shown for one step. It is not divided by steps."
    hint = f"{PROGRAM} report {owners[0]} --help" if len(owners) == 1 else f"{PROGRAM} report --help"
    return ProfileError("usage", sentence, _INSTEAD.get(option, hint), EXIT_USAGE)


def report_parser(words: Sequence[str] = ()) -> UsageParser:
    """The options of the page that the words of a call name; where they name none, what lists the pages.

    Raises:
        ProfileError: `usage`: there is no page of that name.
    """
    if (page := _page_in(words)) is not None:
        return _page_parser(f"report {page.name}", page)
    if words and not words[0].startswith("-"):
        raise _no_page(words[0], words[1:])
    first = ("report overview demo", "report ops demo --limit 10", "report ops --help")
    parser = options.new_parser("report", "Prints a page of a profile: text, JSON, CSV, Markdown or HTML.", first)
    listed = parser.part("pages, each with options and a help of its own")
    listed.description = "\n".join(f"{page.name:16}{_pages().about(page.name)}" for page in PAGES)
    parser.add_argument("page", metavar="PAGE", help=argparse.SUPPRESS)
    return parser


def _pages() -> ModuleType:
    """What the help says of pages: few calls read it."""
    return import_module("tpuprof.tui.cli.arguments.pages")


def _page_in(words: Sequence[str]) -> Page | None:
    """The page that a call names: its first word, or where options come first the first one that can be a page."""
    named = [at for at, word in enumerate(words) if word in PAGE_NAMES]
    if not named or (named[0] and not words[0].startswith("-")):
        return None
    places = (at for at in named if not at or words[at - 1] == "--" or not words[at - 1].startswith("-"))
    return page_named(words[next(places, named[0])])


def _no_page(name: str, rest: Sequence[str]) -> ProfileError:
    shown = printable(name)
    if name == DEMO or os.path.exists(os.path.expanduser(name)):
        return ProfileError("usage", f"{shown} is not a page.", f"{PROGRAM} report overview {shown}", EXIT_USAGE)
    near = import_module("tpuprof.tui.cli.habits").nearest_in_meaning(name)
    sentence, hint = f"There is no page {shown}.", nearest_hint(name, PAGE_NAMES, f"{PROGRAM} report --help")
    if near:
        sentence = f"There is no page {shown}; {near} shows {_pages().about(near)}."
        hint = f"{PROGRAM} report {' '.join([near, *map(printable, rest)])}"
    return ProfileError("usage", sentence, hint, EXIT_USAGE)


def trend_parser() -> UsageParser:
    """The options of the command `trend`, which are those of `report trend`."""
    page = page_named("trend")
    assert page is not None, "the registry has it"
    return _page_parser("trend", page)


def _page_parser(command: str, page: Page) -> UsageParser:
    parser = options.new_parser(command, "", of=partial(PageParser, page))
    if command == "trend":
        parser.set_defaults(page=page.name)
    else:
        parser.add_argument("page", metavar="PAGE", help=argparse.SUPPRESS)
    profile = "logdir, run, file, glob, - for standard input (default: .)"
    options.add_choice_of_profile(parser, f"{profile}; NAME" if "op" in page.options else profile)
    own, groups = parser.part("of this page"), (*page.groups, *page.other_groups)
    for flag in page.options.values():
        add(own, flag, **({"help": f"rows by {', '.join(groups)}"} if flag == "--by" else {}))
    rows = parser.part("rows")
    add(rows, "--filter", "--sort", "--columns")
    add(rows, "--limit", help=options.ALL_ROWS)
    output = options.add_output(parser, (*FORMATS, HTML, *page.formats, PARQUET), (*FORMATS, HTML, *OF_SOME_PAGES))
    add(output, "--keys", "--mask")
    options.add_common(parser, reads=True, width=True)
    parser.part(COMMON).add_argument("--describe", action="store_true", help="what the keys mean")
    return parser


def share_parser() -> UsageParser:
    """The arguments of the command `share`."""
    what = "Writes one HTML file to send to others: overview, findings, ops, timeline and memory of a run. It has no "
    what += "scripts and does not use the network."
    parser = options.new_parser("share", what, ("share ~/logs -o run.html", "share demo --mask -o run.html"))
    options.add_choice_of_profile(parser)
    output = parser.part("output")
    add(output, "--output", "--mask")
    add(output, "--limit", help="rows of each table; 0: all (default: 10 to 30)")
    return options.add_common(parser, reads=True, look=False)
