"""A whole page: its style, its policy, which allows nothing but that style, and its sections."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape

from tpuprof.parsers.base.op_class import OP_CLASSES
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import printable
from tpuprof.tui.html.blocks import Masking, as_html
from tpuprof.tui.html.picture import Picture, picture_html
from tpuprof.tui.terminal.theme import SHADES

_NAMES = ("page", "bar", "text", "dim", "strong", "rule", "accent", "ink", "step", "module", *OP_CLASSES)


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Attributes:
        name: that a link leads to; letters, digits and dashes.
    """

    name: str
    title: str
    html: str


def report_html(markdown: str, pictures: Iterable[Picture], mask: Masking, level: int = 1) -> str:
    """A report: its head, its pictures, and the rest of its Markdown."""
    head, rule, rest = markdown.partition("\n## ")
    drawn = [picture_html(picture, mask) for picture in pictures]
    return "\n".join([as_html(head, mask, level), *drawn, as_html(rule.strip("\n") + rest, mask, level)])


def page_html(title: str, sections: Sequence[Section], written_by: str) -> str:
    """The page; with links to its sections where there are several.

    Args:
        title, written_by: as they are to be read; what is markup in them is escaped.
    """
    style, title = _style(), printable(title)
    allowed = f"default-src 'none'; style-src 'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'"
    policy = f"{allowed}; base-uri 'none'; form-action 'none'"
    links = "".join(f'<a href="#{each.name}">{escape(each.title)}</a>' for each in sections)
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        '<head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer"><meta name="color-scheme" content="light dark">',
        f"<title>{escape(title)}</title>",
        f"<style>{style}</style></head>",
        "<body>",
        f"<nav>{links}</nav>" if len(sections) > 1 else "",
        *(f'<section id="{each.name}">\n{each.html}\n</section>' for each in sections),
        f"<footer>{escape(written_by)}</footer>",
        "</body>",
        "</html>",
    ]
    return "\n".join(filter(None, lines)) + "\n"


def _style() -> str:
    colours = [";".join(f"--{name}:{SHADES[name][light][0]}" for name in _NAMES) for light in (1, 0)]
    areas = "".join(f".k-{name}{{fill:var(--{name});background:var(--{name})}}" for name in (*OP_CLASSES, *_NEUTRAL))
    dark = f"@media(prefers-color-scheme:dark){{:root{{{colours[1]}}}}}"
    return f":root{{color-scheme:light dark;{colours[0]}}}{dark}{areas}{_RULES}"


_NEUTRAL = ("step", "module", "rule")

_RULES = (
    "*{box-sizing:border-box}"
    "body{margin:0 auto;padding:1rem 1.25rem 3rem;max-width:80rem;background:var(--page);color:var(--text);"
    "font:15px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}"
    "h1,h2,h3,h4{color:var(--strong);line-height:1.25;margin:1.6em 0 .5em}"
    "h1{font-size:1.6rem;margin-top:.3em}h2{font-size:1.3rem}h3{font-size:1.08rem}h4{font-size:1rem}"
    "section+section{border-top:1px solid var(--rule);margin-top:2.5rem;padding-top:.5rem}"
    "nav{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;padding:.2rem 0 .6rem;border-bottom:1px solid var(--rule)}"
    "a{color:var(--accent)}"
    "p,ul,ol{margin:.4em 0}ul,ol{padding-left:1.5em}li{margin:.15em 0}"
    ".t{overflow-x:auto}"
    "table{border-collapse:collapse;font-size:13px;margin:.4em 0;font-variant-numeric:tabular-nums}"
    "th,td{padding:.22em .7em;border-bottom:1px solid var(--rule);text-align:left;vertical-align:top;"
    "overflow-wrap:break-word;max-width:24em}"
    "td.n,th.n{text-align:right;white-space:nowrap;max-width:none}"
    "th{color:var(--dim);font-weight:600;white-space:nowrap}tbody tr:hover{background:var(--bar)}"
    "figure{margin:1rem 0}figcaption{color:var(--strong);font-weight:600}"
    "svg{display:block;width:100%;min-width:860px;height:auto;font:11px system-ui,sans-serif}"
    ".w-label{fill:var(--text)}.w-dim{fill:var(--dim)}.w-head{fill:var(--accent);font-weight:600}"
    ".w-on{fill:var(--ink)}"
    ".legend{display:flex;flex-wrap:wrap;gap:.2rem 1rem;color:var(--dim);font-size:13px}"
    ".legend i{display:inline-block;width:.8em;height:.8em;margin-right:.35em}"
    "figure p,footer{color:var(--dim);font-size:13px}"
    "footer{border-top:1px solid var(--rule);margin-top:3rem;padding-top:.6rem}"
    "@media print{body{max-width:none}nav{display:none}section{break-inside:auto}}"
)
