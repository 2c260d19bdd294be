"""The second look: what was read is not read again, and an entry that is not good loses nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.build import present, write_run
from tests.support.files import reading
from tests.support.files.reading import later, own_cache
from tests.support.made.many_hosts import profiles, steady
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.files.logdir import HostFile, open_logdir
from tpuprof.parsers.hosts import cache as cache_module
from tpuprof.parsers.hosts import reader as reader_module
from tpuprof.parsers.hosts.cache import HostCache
from tpuprof.parsers.hosts.reduction import Reduction, reduce_host
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.session.session import Session
from tpuprof.tui.cli.main import main


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache folder of its own, in which small files count."""
    return own_cache(monkeypatch, tmp_path)


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    """Three hosts."""
    return write_run(tmp_path / "log", **profiles({f"host{at}": steady(1000 + at) for at in range(3)}))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hosts whose files were read, in order."""
    return reading.reads(monkeypatch, lambda _, file: file.host)


def session(logdir: Path, cache: HostCache | None = None) -> Session:
    return Session(open_logdir(str(logdir)).find_run(None), cache=HostCache(later) if cache is None else cache)


def entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def test_a_new_host_is_read_alone(logdir: Path, reads: list[str]) -> None:
    session(logdir).page(OVERVIEW)
    run = next(logdir.glob("plugins/profile/*"))
    shutil.copyfile(run / "host0.xplane.pb", run / "host7.xplane.pb")
    reads.clear()
    assert session(logdir).page(OVERVIEW).hosts == ("host0", "host1", "host2", "host7")
    assert reads == ["host7"]


def test_a_file_that_changed_is_read_again(logdir: Path, reads: list[str]) -> None:
    session(logdir).page(OVERVIEW)
    run = next(logdir.glob("plugins/profile/*"))
    other = profiles({"host1": steady(5000)})["host1"]
    times = os.stat(run / "host1.xplane.pb")
    (run / "host1.xplane.pb").write_bytes(other)
    os.utime(run / "host1.xplane.pb", ns=(times.st_atime_ns, times.st_mtime_ns))  # the inode and the size may be equal
    reads.clear()
    assert session(logdir).page(OVERVIEW, "host1").steps[0].duration_ps > 5000
    assert reads == ["host1"]


def test_a_file_that_is_still_written_is_not_kept(logdir: Path, folder: Path) -> None:
    session(logdir, HostCache()).page(OVERVIEW)
    assert not folder.exists()


def test_a_file_that_changes_while_it_is_read_is_not_kept(logdir: Path, folder: Path) -> None:
    cache = HostCache(later)
    files = open_logdir(str(logdir)).find_run(None).hosts[:1]
    slot = cache.slot(files, "something")
    os.utime(files[0].path)
    cache.put(slot, Peaks())
    assert not folder.exists()


def test_other_code_makes_other_entries(logdir: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    session(logdir).page(OVERVIEW)
    monkeypatch.setattr(cache_module, "code_version", lambda: "a newer one")
    session(logdir).page(OVERVIEW)
    assert len(reads) == 6


def test_the_code_has_a_version_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "a.py").write_text("1")
    monkeypatch.setattr(cache_module, "_PARSERS", str(tmp_path))
    before = cache_module.code_version()
    assert cache_module.code_version() == before
    (tmp_path / "pages" / "a.py").write_text("2")
    os.utime(tmp_path / "pages" / "a.py", (1, 1))
    assert cache_module.code_version() != before


@pytest.mark.parametrize("size", [0, 10, 40, 200, -1])
def test_a_cut_entry_loses_nothing(logdir: Path, folder: Path, reads: list[str], size: int) -> None:
    page = session(logdir).page(OVERVIEW)
    for entry in entries(folder):
        entry.write_bytes(entry.read_bytes()[:size])
    reads.clear()
    assert session(logdir).page(OVERVIEW) == page
    assert len(reads) == 3
    assert session(logdir).page(OVERVIEW) == page  # whole again
    assert len(reads) == 3


def test_a_flipped_bit_anywhere_is_seen(logdir: Path, folder: Path) -> None:
    cache = HostCache(later)
    files = open_logdir(str(logdir)).find_run(None).hosts[:1]
    cache.put(cache.slot(files, "peaks"), Peaks(1.0, 2.0))
    (entry,) = entries(folder)
    good = entry.read_bytes()
    assert cache.get(cache.slot(files, "peaks")) == Peaks(1.0, 2.0)
    for place in range(len(good)):
        entry.write_bytes(good[:place] + bytes([good[place] ^ 4]) + good[place + 1 :])
        assert cache.get(cache.slot(files, "peaks")) is None


def test_an_entry_of_something_else_is_none(logdir: Path, folder: Path) -> None:
    cache = HostCache(later)
    first, second, _ = open_logdir(str(logdir)).find_run(None).hosts
    cache.put(cache.slot([first], "peaks"), Peaks(1.0))
    (entry,) = entries(folder)
    place = present(cache.slot([second], "peaks"))
    entry.rename(folder / place.name)
    assert cache.get(place) is None


def test_a_folder_that_cannot_be_written_loses_nothing(logdir: Path, folder: Path, reads: list[str]) -> None:
    folder.parent.parent.mkdir()
    folder.parent.write_text("a file where the folder should be")
    assert len(session(logdir).page(OVERVIEW).hosts) == 3
    assert len(session(logdir).page(OVERVIEW).hosts) == 3
    assert len(reads) == 6


def test_hosts_share_the_texts_of_their_program(
    logdir: Path, folder: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tpuprof.parsers.hosts.codec.LARGE", 1)
    page = session(logdir).page(OVERVIEW)
    texts = list(folder.glob("text-*"))
    assert len(texts) < 6  # two metadata maps a host would be six
    for entry in entries(folder):
        if not entry.name.startswith("text-") and b"Overview" in entry.read_bytes():
            entry.unlink()
    reads.clear()
    assert session(logdir).page(OVERVIEW) == page
    assert not reads
    for spoil in (texts[0].unlink, lambda: texts[0].write_bytes(b"damaged")):
        spoil()
        for entry in entries(folder):
            if b"Overview" in entry.read_bytes():
                entry.unlink()
        reads.clear()
        assert session(logdir).page(OVERVIEW) == page
        assert len(reads) == 3
        assert texts[0].read_bytes() != b"damaged"  # whole again


def test_a_host_that_failed_is_tried_again(logdir: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def out_of_memory(reduction: Reduction[Any, Any], file: HostFile, *rest: Any) -> object:
        if file.host == "host1":
            raise ProfileError("memory", "host1 could not be read: this machine's memory was not enough for it.", "")
        return reduce_host(reduction, file, *rest)

    counted: Callable[..., object] = vars(reader_module)["reduce_host"]
    monkeypatch.setattr(reader_module, "reduce_host", out_of_memory)
    assert session(logdir).page(OVERVIEW).hosts == ("host0", "host2")
    monkeypatch.setattr(reader_module, "reduce_host", counted)
    reads.clear()
    assert session(logdir).page(OVERVIEW).hosts == ("host0", "host1", "host2")
    assert reads == ["host1"]


def test_all_entries_together_are_bounded(logdir: Path, folder: Path) -> None:
    cache = HostCache(later)
    files = open_logdir(str(logdir)).find_run(None).hosts
    for number in range(5):
        slot = present(cache.slot(files[:1], f"entry {number}"))
        cache.put(slot, ("x" * 1000, number))
        os.utime(folder / slot.name, (number, number))
    size = max(entry.stat().st_size for entry in entries(folder))
    assert cache.get(cache.slot(files[:1], "entry 0")) is not None  # used just now
    cache.kept.bound = 2 * size
    cache.trim()
    left = [number for number in range(5) if cache.get(cache.slot(files[:1], f"entry {number}")) is not None]
    assert left == [0, 4]


def test_the_command_line_keeps_summaries_unless_told_not_to(
    logdir: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cache_module, "SETTLED_SECONDS", 0.0)
    inside = sorted(path.name for path in logdir.rglob("*"))
    printed = []
    for arguments in (["--no-cache"], [], [], ["--no-cache"]):
        assert main(["report", "overview", str(logdir), "--format", "json", *arguments]) == 0
        printed.append(capsys.readouterr().out)
        assert folder.exists() == (len(printed) > 1)
    assert len(set(printed)) == 1
    assert sorted(path.name for path in logdir.rglob("*")) == inside  # nothing beside the profiles
