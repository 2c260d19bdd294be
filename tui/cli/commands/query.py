"""``tpuprof-tui query PATH SQL``: answers a SQL query over a profile, or prints the tables that it can name."""

from __future__ import annotations

import argparse
import os

from tpuprof.parsers.base.errors import EXIT_OK, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.files.logdir import Logdir, Run, open_logdir
from tpuprof.parsers.session.one_core import narrowed
from tpuprof.parsers.session.session import Session
from tpuprof.tui.api.profile import Profile
from tpuprof.tui.api.sql.printing import ANSWERS, SCHEMAS, QueryResult
from tpuprof.tui.api.sql.query import MIB, SCHEMA_HINT, Limits, query
from tpuprof.tui.api.sql.tables import EventsAsked
from tpuprof.tui.cli import common, printing
from tpuprof.tui.cli.arguments.options import HERE
from tpuprof.tui.cli.arguments.query import EXAMPLE, example_queries
from tpuprof.tui.report.output import write_stderr
from tpuprof.tui.report.page import WITHOUT_WARNINGS

_SELECT, _SEVERAL_WORDS = pattern(r"(?i)\s*(?:select|with)\s"), pattern(r"\S[\s(]+\S")


def run_query(args: argparse.Namespace) -> int:
    """Runs the command.

    Raises:
        ProfileError: the query can't be run, or not within its limits (exit code 2); and as of `report`.
    """
    look = printing.report_look(args)
    if args.schema or args.examples:
        printing.check_output(args, Logdir(args.path, (), (), ()))
        examples = "".join(f"{what}:\n  {sql}\n" for what, sql in example_queries().items())
        printing.write_report(args, SCHEMAS[args.format](look) if args.schema else examples, most=args.max_bytes)
        return EXIT_OK
    only = args.path if args.sql is None else args.sql
    if only == HERE or (args.sql is None and (os.path.lexists(only) or not _SEVERAL_WORDS.search(only))):
        raise ProfileError("usage", "No query is given.", f"{EXAMPLE}; {SCHEMA_HINT}", EXIT_USAGE)
    if args.sql is None or (_SELECT.match(args.path) and not _SELECT.match(args.sql)):  # the query came first
        args.path, args.sql = args.sql or HERE, args.path
    made = _answered(args)
    printing.write_report(args, ANSWERS[args.format](made, look), most=printing.most_bytes(args))
    if args.format in WITHOUT_WARNINGS:
        for sentence in made.answer.warnings:
            common.note(f"note: {sentence}")
        if made.answer.has_more:
            common.note(f"note: {made.extent}")
    return EXIT_OK


def made_query(args: argparse.Namespace) -> str:
    """What is printed of a query, as JSON; see `run_query`."""
    return ANSWERS["json"](_answered(args), printing.report_look(args))


def _answered(args: argparse.Namespace) -> QueryResult:
    config = common.configured(args)
    limits = Limits(args.time_limit, args.memory_limit * MIB, args.limit or 0)
    if args.from_ps is not None and args.to_ps is not None and args.from_ps >= args.to_ps:
        raise ProfileError("usage", "The interval is empty: --to must be later than --from.", EXAMPLE, EXIT_USAGE)
    asked = EventsAsked(args.from_ps, args.to_ps, args.track or "")
    with common.decoding_shown() as on_progress:

        def session(run: Run) -> Session:
            return common.session_of(run, args, config, on_progress)

        logdir = open_logdir(common.existing(args.path))
        printing.check_output(args, logdir)
        run = logdir.find_run(args.run)
        run = run if args.core is None else narrowed(run, args.core, args.host)
        run.files(args.host)
        profile = Profile(logdir, session(run), args.host, session)
        answer = query(args.sql, profile, limits, asked, _give_up)
    return QueryResult(args.sql, answer, run, profile.hosts)


def _give_up() -> None:
    """Ends the process where a query does not stop: there is no other way to take its memory and its core from it."""
    write_stderr("The query did not stop in its time, so this program ended.\ntry: --time-limit SECONDS\n")
    os._exit(EXIT_USAGE)
