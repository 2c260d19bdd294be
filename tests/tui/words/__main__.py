"""Prints every sentence that a user can meet, with its place.

python -m tests.tui.words [--kind text|docstring|readme] [--banned] [PATH …]

Paths narrow the list to files that begin so, such as ``parsers/pages``. With ``--banned`` only the sentences that
`style.py` doesn't allow are printed, with what to write instead.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from tests.tui.words.collect import KINDS, sentences
from tests.tui.words.style import breaches


def main() -> int:
    """Command line; returns 1 where a banned word was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.tui.words", description="Prints what users can read.")
    parser.add_argument("--kind", choices=KINDS, help="one kind only")
    parser.add_argument("--banned", action="store_true", help="only sentences with words that the style doesn't allow")
    parser.add_argument("paths", metavar="PATH", nargs="*", help="how the paths of files begin (default: all)")
    given = parser.parse_args()
    found = [
        each
        for each in sentences()
        if given.kind in (None, each.kind) and (not given.paths or each.path.startswith(tuple(given.paths)))
    ]
    wrong = list(breaches(found))
    if given.banned:
        print(
            *(f"{each.path}:{each.line}: {words!r}: {instead}. {each.text}" for each, words, instead in wrong), sep="\n"
        )
    else:
        print(*(f"{each.path}:{each.line}: {each.text}" for each in found), sep="\n")
    counts = ", ".join(f"{count:,} {kind}" for kind, count in Counter(each.kind for each in found).items())
    print(f"{len(found):,} sentences ({counts}), {len(wrong):,} with banned words", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
