"""Pages as HTML: what Markdown says is said, names are text and nothing else, and the network is not needed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.support.documents import Read, check_page
from tpuprof.parsers.base.text import printable
from tpuprof.tui.html.blocks import as_html
from tpuprof.tui.html.mask import Mask
from tpuprof.tui.html.page import Section, page_html, report_html
from tpuprof.tui.html.picture import Area, Picture, Words
from tpuprof.tui.report import markdown

EVIL = "</td><script>alert(1)</script>\" onload='x' | `a` [b](http://c) \\ &amp; <!-- 日"


def same(text: str) -> str:
    return text


@settings(max_examples=EXAMPLES)
@given(st.lists(st.lists(st.text(), min_size=2, max_size=2), min_size=1, max_size=4), st.text())
def test_any_text_comes_back_as_text(rows: list[list[str]], title: str) -> None:
    lines = [f"# {markdown.escaped(title)}", "", *markdown.table(("a", "b"), "lr", rows)]
    html = as_html("\n".join(lines), same)
    read = Read(html)
    cells = re.findall(r"<td(?: class=\"n\")?>(.*?)</td>", html, re.DOTALL)
    assert len(cells) == 2 * len(rows)
    shown = [" ".join(printable(cell).split()) for row in rows for cell in row]
    assert [" ".join(text.split()) for text in read.of("td")] == list(filter(None, shown))


def test_names_are_never_markup() -> None:
    escaped = markdown.escaped(EVIL)
    text = "\n".join([f"# {escaped}", "", f"- {escaped}", "", *markdown.table(("a",), "l", [[EVIL]]), "", escaped])
    words = [Words(0, 10, EVIL, 4000), Words(0, 10, EVIL, 20, "on")]
    picture = Picture(EVIL, 30, [Area("compute", [(0, 0, 1.25, 2)])], words, EVIL, [("copy", EVIL)])
    html = page_html(EVIL, [Section("a", EVIL, report_html(text, [picture], same)), Section("b", "b", "")], EVIL)
    read = check_page(html)
    for tag in ("title", "a", "h1", "li", "td", "p", "figcaption", "text", "span", "footer"):
        assert EVIL in [text.strip() for text in read.of(tag)], tag
    assert 'd="M0 0h1.2v2h-1.2z"' in html, "boxes are drawn with a tenth of a unit"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("/home/alice/secret/train.py:12", "file1.py:12"),
        ("~/secret/train.py, not ~/train.py, and ~/secret/train.py:3", "file1.py, not file2.py, and file1.py:3"),
        ("in /home/alice, or ~/alice/", "in path1, or path2"),
        ("read gs://bucket/secret/a.pb now", "read file1.pb now"),
        ("/home/Jo Doe/My Own/x.py (late)", "path1 file1.py (late)"),
        ("to 10.0.0.7:8431 from tpu-b-7:8431", "to name1:8431 from name2:8431"),
        ("USER=alice limit=12 --xla_flag=true LIBTPU_INIT_ARGS='--xla_flag=true'", None),
        ("tpu-a-10: late, tpu-a-1:3", "host2: late, host1:3"),
        ("tpu-a-100 and my-tpu-a-1", "tpu-a-100 and my-tpu-a-1"),
        ("run of 2026_exp on host1 and host2", "run of run on host3 and host4"),
        ("jit(step)/transpose(jvp(layers))/while/body/add: 3%", "jit(step)/transpose(jvp(layers))/while/body/add: 3%"),
        (".../while/body/add, jit(st... of body/add", "…/while/body/add, jit(st… of body/add"),
        (".../home/body/add, alice...", "path1, name1"),
        ("bf16[8,128]{1,0:T(8,128)} 12 MB/s of 1/2", "bf16[8,128]{1,0:T(8,128)} 12 MB/s of 1/2"),
        ("Chip 0: TPU core 0 / Alice 7", "Chip 0: TPU core 0 / track1"),
        ("Alice 7", "track1"),
    ],
)
def test_hosts_and_folders_are_masked_and_nothing_else(text: str, masked: str | None) -> None:
    page = {"framework_op": "jit(step)/transpose(jvp(layers))/while/body/add:", "tracks": [{"line": "Alice 7"}]}
    mask = Mask(["tpu-a-1", "tpu-a-10", "host1", "host2"], [("2026_exp", "run")], [page])
    assert mask(text) == (text.replace("alice", "…") if masked is None else masked)
