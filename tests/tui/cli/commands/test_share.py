"""One HTML file of a run, and a page as one: whole, without a name that is masked, and harmless."""

from __future__ import annotations

import gzip
import itertools
import shutil
import struct
import subprocess
import zlib
from base64 import b64encode
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.support.documents import check_page
from tests.support.files.dumps import dumped
from tests.tui.cli.calls import Call, Terminal, content, write_logdir
from tests.tui.report.test_hostile_names import hostile  # noqa: F401 - a fixture
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE
from tpuprof.parsers.formats.proto.hlo_pb2 import HloProto
from tpuprof.parsers.formats.proto.xplane_pb2 import XEventMetadata, XSpace, XStatMetadata
from tpuprof.tui.cli.commands import share
from tpuprof.tui.demo import demo_path
from tpuprof.tui.pages import PAGES
from tpuprof.tui.terminal.theme import SHADES


def test_a_run_is_shared_as_one_file(tmp_path: Path, call: Call) -> None:
    file = tmp_path / "run.html"
    call("share", "demo", "--output", file)
    html = file.read_text("utf-8")
    read = check_page(html)
    assert read.of("a") == ["Overview", "Why is it slow?", "Ops", "Timeline", "Memory"]
    assert read.of("h2") == [f"{title} of demo" for title in ("Overview", "Findings", "HLO ops", "Timeline", "Memory")]
    assert read.of("figcaption") == [
        "Where a step goes",
        "Steps, mean over cores",
        "What ran when",
        "Step 109",
        "HBM in use over the program",
    ]
    findings = call.json("report", "findings", "demo", "--limit", "0", "--format", "json")["findings"]
    assert all(any(finding["title"] in text for text in read.of("h4")) for finding in findings)
    assert "XLA Ops" in read.of("text") and "fusion.397" in read.of("td") and "10.6 GiB (67.2% of the capacity)" in html
    assert len(html.encode()) < 150_000
    call("share", "demo", "--output", file)
    assert file.read_text("utf-8") == html, "the same run is the same file"


@pytest.mark.parametrize("page", [page.name for page in PAGES if not page.is_of_arrays])
def test_every_page_can_be_html(page: str, call: Call) -> None:
    read = check_page(call("report", page, "demo", "--format", "html", "--limit", "3").out)
    text = call("report", page, "demo", "--format", "md", "--limit", "3").out
    assert read.of("h1") == [text.partition("\n")[0].removeprefix("# ").replace("\\", "")]
    assert len(read.of("h2")) == text.count("\n## ")


def test_chosen_rows_can_be_html(call: Call) -> None:
    words = ("--filter", "bound:hbm", "--columns", "name,self_time_ps", "--limit", "4")
    read = check_page(call("report", "ops", "demo", "--format", "html", *words).out)
    rows = call.json("report", "ops", "demo", "--format", "json", *words)["rows"]
    assert [text for text in read.of("td") if text in {row["name"] for row in rows}] == [row["name"] for row in rows]


BUILT = r"""/home/{}/x.py:12 | /home/{} | ~/{}/x.py | ~{}/x | ./{}/x | ../{} | {}/x.py | {}.py | x/{}.py:62 | /mnt/{}:ro
C:\Users\{}\x.py | c:/Users/{}/x | \\{}\share\x | \\server\{}\x.py | C:\Program Files\{}\x.exe | ({}/x.py) | '/home/{}'
/home/Jo {}/My {}/x.py | /data/My {} | /home/My Own {}/x | in /home/{}/x.py:1, or | {}.ipynb | file:///home/{}/x | gs://{}/x
s3://b/{} | https://{}.example.com/x?y={} | ssh://{}@h:22/x | git@h.com:{}/x.git | {}@example.com | jo@{}.org | {}@host7
{}:/export/data | nas7:/export/{} | n7.{}.internal | {}.corp.example.com | {}.local:8431 | {}:8431 | fe80::1%{}
USER={} | --user={} | --xla_dump_to=/{} | HOME='/{}' | a=/x/{},b | {}::x | x::{}::y | %2Fhome%2F{} | /{}%20x/y.py
…/{}0... | ...{} | .../{}/x.py:1 | [2001:db8::7]:84/{} | metadata={{f="/{}"}}""".replace("\n", " | ").split(" | ")
"""What names of people, machines and places stand in, in any text."""
ALONE = ("{}", "{}-1", "{}:7", "my {}")
"""How else they stand in a field that holds nothing else."""
WORD = "Zq7Alice"
ADDRESSES = ("10.9.8.7:8466", "2001:db8::77", "2001:db8:1:2:3:4:5:6")


def full_of_names(folder: Path) -> Path:
    """The demo, a name of somebody in every field but the names of ops, modules, framework ops and events."""
    built = [form.format(*[WORD] * 2).encode() for form in BUILT]
    names = itertools.cycle([*built, *(form.format(WORD).encode() for form in ALONE)])
    space = XSpace.FromString(gzip.decompress(Path(demo_path()).read_bytes()))
    space.hostnames[:] = [next(names)]
    space.warnings[:] = [*built, *(address.encode() for address in ADDRESSES)]
    space.errors.append(WORD.encode())
    for plane in space.planes:
        is_device = plane.name.startswith(b"/device")
        titles = {number: each.name for number, each in plane.stat_metadata.items()}
        unknown = max(titles, default=0) + 1
        for number, title in enumerate((b"command_line_args", b"user", b"env", next(names)), unknown):
            plane.stat_metadata[number].MergeFrom(XStatMetadata(id=number, name=title, description=next(names)))
            plane.stats.add(metadata_id=number, str_value=next(names))
        for event in plane.event_metadata.values():
            for stat in event.stats:
                if titles[stat.metadata_id] in (b"source", b"source_stack"):
                    stat.str_value = next(names) + b":76"
                elif titles[stat.metadata_id] == b"Hlo Proto":
                    stat.bytes_value = module_full_of_names(stat.bytes_value, names)
            event.stats.add(metadata_id=unknown, str_value=next(names))
            event.metadata = next(names)
        for line in plane.lines:
            if not is_device:
                line.name, line.display_name = next(names), next(names)
            elif line.name in (b"Overlay", b"XLA TraceMe"):
                line.display_name = next(names)
            for traced in line.events[:40]:
                traced.stats.add(metadata_id=unknown, str_value=next(names))
        if plane.name == b"/host:CPU":
            plane.event_metadata[999].MergeFrom(XEventMetadata(id=999, name=b"step", display_name=next(names)))
            for number, name in enumerate(built, 1000):
                plane.event_metadata[number].MergeFrom(XEventMetadata(id=number, name=name))
                plane.lines[0].events.add(metadata_id=number, offset_ps=number * 10**8, duration_ps=10**8)
    other = space.planes.add(id=99, name=next(names))
    other.event_metadata[1].MergeFrom(XEventMetadata(id=1, name=b"event"))
    other.lines.add(name=next(names)).events.add(metadata_id=1, offset_ps=10**9, duration_ps=10**9)
    run = folder / WORD / "plugins" / "profile" / f"{WORD} 1"
    run.mkdir(parents=True)
    (run / f"{WORD}.corp.xplane.pb").write_bytes(space.SerializeToString())
    return folder / WORD


def module_full_of_names(data: bytes, names: Iterator[bytes]) -> bytes:
    proto = HloProto.FromString(data)
    for computation in proto.hlo_module.computations:
        for instruction in computation.instructions:
            instruction.metadata.source_file = next(names)
            instruction.frontend_attributes.map["key"] = next(names)
    index = proto.hlo_module.stack_frame_index
    index.file_names[:] = [next(names) for _ in index.file_names]
    index.function_names[:] = [next(names) for _ in index.function_names]
    return proto.SerializeToString()


def test_masked_names_are_not_in_it(tmp_path: Path, call: Call) -> None:
    folder = full_of_names(tmp_path)
    names = [page.name for page in PAGES if not page.is_of_arrays]
    pages: list[tuple[object, ...]] = [("report", name, folder, "--limit", "0", "--format", "html") for name in names]
    pages = [(*words, "--op", "fusion.397") if words[1] == "op" else words for words in pages]
    pages += [(*pages[names.index("timeline")], "--from", "0", "--to", "1000"), ("share", folder)]
    there = [b64encode(bytes(at) + WORD.encode()).decode()[4:10] for at in range(3)]
    there += [WORD, "".join(f"&#{ord(letter)};" for letter in WORD), "10.9.8.7", "2001:db8"]
    assert WORD in call(*pages[0]).out and WORD in call("share", folder).out
    for words in pages:
        out = call(*words, "--mask").out
        assert not [name for name in there if name.casefold() in unescape(out).casefold()], words
        assert check_page(out)
    for name in ("fusion.397", "jit(train_step)/", "TPU core 0", "XLA Ops", "host1", "loop fusion", "jit_train_step"):
        assert name in out, f"{name} is to stay"


def test_a_page_that_fails_costs_its_own_names(monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    monkeypatch.setattr(share, "_json", Mock(side_effect=KeyError(1)))
    assert check_page(call("share", "demo", "--mask").out)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
@pytest.mark.parametrize("is_dark", [False, True])
def test_a_browser_shows_it_as_it_is_meant(is_dark: bool, hostile: Path, tmp_path: Path, call: Call) -> None:  # noqa: F811
    """Its policy lets the style through, and refuses nothing, for nothing else is there."""
    call("share", hostile, "--output", tmp_path / "run.html")
    picture = tmp_path / "run.png"
    command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += [f"--user-data-dir={tmp_path / 'browser'}", "--enable-logging=stderr", "--virtual-time-budget=1000"]
    command += [f"--blink-settings=preferredColorScheme={0 if is_dark else 1}", "--window-size=600,400"]
    done = subprocess.run(
        [*command, f"--screenshot={picture}", (tmp_path / "run.html").as_uri()], capture_output=True, check=True
    )
    assert b"Content Security Policy" not in done.stderr and b"Refused" not in done.stderr
    assert corner(picture.read_bytes()) == SHADES["page"][not is_dark][0]


def corner(png: bytes) -> str:
    """The colour of a PNG's first pixel."""
    place, data = 8, b""
    while place < len(png):
        length, kind = struct.unpack_from(">I4s", png, place)
        data += png[place + 8 : place + 8 + length] if kind == b"IDAT" else b""
        place += length + 12
    return f"#{zlib.decompress(data)[1:4].hex()}"  # the first row begins with its filter, which leaves its first pixel


def test_hostile_names_are_text(hostile: Path, call: Call) -> None:  # noqa: F811
    out = call("share", hostile).out
    read = check_page(out)
    assert out.replace("\n", "").isprintable() and any("owned" in text for text in read.of("td"))


def test_what_a_run_lacks_is_said_in_its_place(tmp_path: Path, call: Call) -> None:
    out = call("share", write_logdir(tmp_path / "logs")).out
    read = check_page(out)
    assert read.of("a")[-1] == "Memory" and any("HLO" in text for text in read.of("p"))


def test_what_does_not_go_is_said(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--mask works only with --format html" in call.error(EXIT_USAGE, "report", "ops", "demo", "--mask")[0]
    call.error(EXIT_NOT_FOUND, "share", tmp_path / "none")
    logs = tmp_path / "logs"
    (logs / "plugins" / "profile" / "a").mkdir(parents=True)
    shutil.copy(demo_path(), logs / "plugins" / "profile" / "a" / "host0.xplane.pb.gz")
    before = content(logs)
    call.error(EXIT_USAGE, "share", logs, "--output", logs / "plugins" / "profile" / "a" / "a.html")
    assert content(logs) == before
    dumped(tmp_path / "dump", ".hlo.pb")
    call.error(EXIT_NOT_FOUND, "share", tmp_path / "dump")
    for words in (("share", "demo"), ("report", "ops", "demo", "--format", "html")):
        monkeypatch.setattr("sys.stdout", Terminal())
        assert "can't be read on a terminal" in call.error(EXIT_USAGE, *words)[0]


def test_of_many_hosts_each_is_in_the_picture(tmp_path: Path, call: Call) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for number in range(12):
        shutil.copy(demo_path(), folder / f"host{number}.xplane.pb.gz")
    read = check_page(call("report", "timeline", folder, "--format", "html", "--limit", "1").out)
    drawn = [text for text in read.of("text") if text.endswith("TPU core 0")]
    assert drawn == [f"host{number} / Chip 0: TPU core 0" for number in range(10)] * 2, "of all, and of a step"
    assert any("not drawn: 50 more sections" in text for text in read.of("p"))
