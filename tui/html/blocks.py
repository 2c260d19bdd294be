"""The Markdown that reports write, as HTML: headings, lists, tables, paragraphs, and text that is escaped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from html import escape

Masking = Callable[[str], str]
"""What a text becomes before it is shown: itself, or with names masked."""

_ESCAPED = re.compile(r"\\(.)")
_CELL = re.compile(r"(?<!\\)((?:\\\\)*)\|")
_HEADING = re.compile(r"(#{1,4}) (.*)")
_NUMBERED = re.compile(r"\d+\. (.*)")
_STRONG = re.compile(r"\*\*(.+)\*\*")


def as_html(markdown: str, mask: Masking, level: int = 1) -> str:
    """A report's Markdown as HTML; nothing in it is taken as a tag."""
    return "\n".join(_blocks(markdown.splitlines(), mask, level))


def _blocks(lines: Sequence[str], mask: Masking, level: int) -> Iterator[str]:
    place = 0
    while place < len(lines):
        line = lines[place]
        end = place + 1
        if heading := _HEADING.fullmatch(line):
            number = min(len(heading[1]) + level - 1, 6)
            yield f"<h{number}>{_text(heading[2], mask)}</h{number}>"
        elif line.startswith("| "):
            end = _while(lines, place, lambda each: each.startswith("| "))
            yield _table(lines[place:end], mask)
        elif line.startswith("- "):
            end = _while(lines, place, lambda each: each.startswith("- "))
            yield _list("ul", [each[2:] for each in lines[place:end]], mask)
        elif _NUMBERED.fullmatch(line):
            end = _while(lines, place, lambda each: _NUMBERED.fullmatch(each) is not None)
            yield _list("ol", [each.partition(". ")[2] for each in lines[place:end]], mask)
        elif line:
            yield f"<p>{_text(line, mask)}</p>"
        place = end


def _while(lines: Sequence[str], place: int, holds: Callable[[str], bool]) -> int:
    """The place behind the lines, from one on, of which something holds."""
    while place < len(lines) and holds(lines[place]):
        place += 1
    return place


def _list(kind: str, items: Sequence[str], mask: Masking) -> str:
    return f"<{kind}>{''.join(f'<li>{_text(item, mask)}</li>' for item in items)}</{kind}>"


def _table(lines: Sequence[str], mask: Masking) -> str:
    head, ruler, *rows = map(_cells, lines)
    sides = [' class="n"' if cell.endswith(":") else "" for cell in ruler]
    made = ["<table>"]
    if any(head):
        made.append(f"<thead>{_row('th', head, sides, mask)}</thead>")
    made.append(f"<tbody>{''.join(_row('td', row, sides, mask) for row in rows)}</tbody></table>")
    return f'<div class="t">{"".join(made)}</div>'


def _row(tag: str, cells: Sequence[str], sides: Sequence[str], mask: Masking) -> str:
    shown = (f"<{tag}{side}>{_text(cell, mask)}</{tag}>" for cell, side in zip(cells, sides, strict=True))
    return f"<tr>{''.join(shown)}</tr>"


def _cells(line: str) -> list[str]:
    """The cells of a line of a table; a bar behind a backslash is none of its borders."""
    marked = _CELL.sub(r"\1" + "\n", line)
    return [cell.strip(" ") for cell in marked.split("\n")[1:-1]]


def _text(markdown: str, mask: Masking) -> str:
    strong = _STRONG.fullmatch(markdown)
    shown = escape(mask(_ESCAPED.sub(r"\1", strong[1] if strong else markdown)))
    return f"<strong>{shown}</strong>" if strong else shown
