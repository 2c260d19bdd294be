"""Pages as GitHub-flavoured Markdown, to paste into an issue; nothing in a profile's strings is taken as markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import by_reason, printable
from tpuprof.tui.draw.format import count
from tpuprof.tui.report.fields import Rows, Source, Table, markdown_rows

# An underscore inside a word is no markup, and names of ops are full of them.
_MARKUP = pattern(r"[\\`|*<>\[\]~&#$]|(?<![^\W_])_|_(?![^\W_])")


def page_head(
    title: str, hosts: Sequence[str], simulated: bool = False, warnings: Sequence[str] = (), facts: Sequence[str] = ()
) -> list[str]:
    """Title, hosts, further facts, and warnings."""
    facts = [*([f"hosts: {', '.join(hosts)}"] if hosts else []), *facts]
    lines = [f"# {escaped(title)}", "", *(f"- {escaped(fact)}" for fact in facts)]
    lines += ["- **the times of this profile are simulated, not measured**"] if simulated else []
    return [*lines, *(f"- warning: {escaped(warning)}" for warning in warnings)]


def comparison_head(
    title: str, before: str, after: str, sentence: str, warnings: Sequence[str], judged: str = ""
) -> list[str]:
    """What a comparison of two files begins with, as a comment on a pull request: its sentences, and warnings."""
    lines = [f"### {title}: {escaped(before)} → {escaped(after)}", "", escaped(sentence), ""]
    lines += [f"**{escaped(judged)}**", ""] if judged else []
    return [*lines, *(f"- warning: {escaped(warning)}" for warning in warnings)]


def metrics_table(rows: Iterable[tuple[str, str]]) -> list[str]:
    """The section of figures."""
    return ["", "## Figures", "", *table(("figure", "value"), "lr", rows)]


def main_table(
    title: str, fields: Table[Source], source: Source, rows: Rows, whole: int, keys: Sequence[str] = ()
) -> list[str]:
    """A section with some of the `whole` rows of a table, and how many are not in it; nothing for an empty one."""
    cells = markdown_rows(fields, source, rows, keys)
    return [*rows_table(title, fields, cells, keys), *(not_shown(whole - len(cells)) if cells else [])]


def rows_table(
    title: str, fields: Table[Source], cells: Sequence[Sequence[str]], keys: Sequence[str] = ()
) -> list[str]:
    """A section with rows that are written already, under the headings of a table; nothing for an empty one."""
    return ["", f"## {title}", "", *fields_table(fields, cells, keys)] if cells else []


def fields_table(fields: Table[Any], cells: Iterable[Sequence[str]], keys: Sequence[str] = ()) -> list[str]:
    """Rows that are written already, under the headings of a table."""
    chosen = fields.chosen(keys or fields.markdown)
    sides = "".join("l" if quantity.unit.is_text else "r" for quantity in chosen)
    return table([quantity.heading for quantity in chosen], sides, cells)


def not_shown(number: int) -> list[str]:
    """How many rows a limit leaves out of a table, if any."""
    return ["", f"Not shown: {count(number)} more."] if number > 0 else []


def notes_block(notes: Sequence[str]) -> list[str]:
    """The section of notes; nothing where there are none."""
    return ["", "## Notes", "", *(f"- {escaped(note)}" for note in notes)] if notes else []


def unknown_block(unknown: Iterable[tuple[str, str]]) -> list[str]:
    """The section of what is unknown, names of figures, and why; nothing where all is known."""
    lines = [f"- {escaped(line)}" for line in by_reason(unknown)]
    return ["", "## Unknown", "", *lines] if lines else []


def numbered(texts: Iterable[str]) -> list[str]:
    """A numbered list."""
    return [f"{number}. {escaped(text)}" for number, text in enumerate(texts, 1)]


def table(head: Sequence[str], sides: str, rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; `sides` has an `l` or an `r` a column."""
    ruler = ["---:" if side == "r" else "---" for side in sides]
    return [_row(head), _row(ruler), *(_row([escaped(cell) for cell in row]) for row in rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    """Text that reads as itself: on one line, no character of it markup."""
    return _MARKUP.sub(r"\\\g<0>", printable(text))


def joined(lines: Sequence[str]) -> str:
    """The document without empty lines next to each other, and with a newline at its end."""
    kept = [line for index, line in enumerate(lines) if line or (index and lines[index - 1])]
    return "\n".join(kept).rstrip("\n") + "\n"
