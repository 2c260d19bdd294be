"""One HTML file of a run, and a page as one: whole, without a name that is masked, and harmless."""

from __future__ import annotations

import gzip
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

from tests.support.documents import check_page
from tests.support.files.dumps import dumped
from tests.tui.cli.calls import Call, Terminal, content, write_logdir
from tests.tui.report.test_hostile_names import hostile  # noqa: F401 - a fixture
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.tui.demo import demo_path
from tpuprof.tui.pages import PAGES
from tpuprof.tui.terminal.theme import SHADES

SECRET = ("secret-host-7", "alice", "secret_folder", "10.9.8.7")


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


def test_masked_names_are_not_in_it(tmp_path: Path, call: Call) -> None:
    folder = tmp_path / "alice" / "secret_folder"
    folder.mkdir(parents=True)
    space = XSpace.FromString(gzip.decompress(Path(demo_path()).read_bytes()))
    space.hostnames[:] = [b"secret-host-7"]
    space.warnings.append(b"10.9.8.7:8466 and /home/alice/secret_folder/x.py")
    for plane in space.planes:
        for event in plane.event_metadata.values():
            for stat in event.stats:
                if stat.WhichOneof("value") == "str_value" and b".py:" in stat.str_value:
                    stat.str_value = b"/home/alice/secret_folder/" + stat.str_value
    (folder / "secret-host-7.xplane.pb").write_bytes(space.SerializeToString())
    plain, masked = tmp_path / "plain.html", tmp_path / "masked.html"
    call("share", folder, "--output", plain)
    call("share", folder, "--output", masked, "--mask")
    assert all(name in plain.read_text("utf-8") for name in SECRET)
    assert not [name for name in SECRET if name in masked.read_text("utf-8")]
    assert "report collectives …<" in masked.read_text("utf-8")
    for page, named in (("timeline", "host1"), ("sources", "…/model.py:62"), ("runs", "…")):
        out = call("report", page, folder, "--format", "html", "--mask").out
        assert not [name for name in SECRET if name in out] and named in out and check_page(out)


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
