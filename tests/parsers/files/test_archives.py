"""Archives of a logdir: read in place, within bounds, and never written outside the cache."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import tempfile
import tracemalloc
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.parsers.files.layouts import hosts, names, put, refused
from tests.support.files.dumps import DUMP
from tpuprof.parsers.base.cache import CacheFolder
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_UNREADABLE
from tpuprof.parsers.base.folders import cache_folder
from tpuprof.parsers.files import archives
from tpuprof.parsers.files.archives import unpacked
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.session.hlo import leads_to_hlo, open_hlo

CONTENT = b"\x0a\x02\x08\x01"
RUN = "2026_11_20_18_04_33"
HOST = f"logs/plugins/profile/{RUN}/host0.xplane.pb"


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def tar(path: Path, members: list[tuple[tarfile.TarInfo | str, bytes]], form: int = tarfile.PAX_FORMAT) -> str:
    """Writes a tar, packed where its name says so."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for member, content in members:
            info = tarfile.TarInfo(member) if isinstance(member, str) else member
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    path.write_bytes(gzip.compress(out.getvalue()) if path.name.endswith("gz") else out.getvalue())
    return str(path)


def zipped(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> str:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return str(path)


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def left_out(path: str) -> str:
    return " ".join(problem.sentence for problem in unpacked(path).problems)


@pytest.mark.parametrize("name", ["logs.zip", "logs.tar", "logs.tar.gz", "logs.tgz", "whatever"])
def test_a_logdir_in_an_archive_is_read_in_place(tmp_path: Path, name: str) -> None:
    place = tmp_path / "here"
    place.mkdir()
    members = {HOST: CONTENT, HOST.replace("host0", "host1"): CONTENT, "logs/checkpoint": bytes(5000)}
    path = zipped(place / name, members) if name.endswith("zip") else tar(place / name, [*members.items()])
    found = open_logdir(path)
    assert names(found) == [RUN]
    assert hosts(found.runs[0]) == ["host0", "host1"]
    assert found.query == path
    assert "unpacked 2 files of it" in found.searched[0]
    assert not found.problems
    assert files_below(place) == [name]
    assert found.runs[0].hosts[0].path.startswith(cache_folder())


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_names_of_any_length_and_times(tmp_path: Path, form: int) -> None:
    long = f"logs/{'a' * 60}/{'b' * 60}/h\u00f6st.xplane.pb"
    member = tarfile.TarInfo(long)
    member.mtime = 1_700_000_000
    archive = unpacked(tar(tmp_path / "a.tar", [(member, CONTENT * 1000)], form))
    assert (Path(archive.folder) / long).read_bytes() == CONTENT * 1000
    assert (Path(archive.folder) / long).stat().st_mtime == 1_700_000_000


def test_unpacked_once_for_each_state_of_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = zipped(tmp_path / "a.zip", {HOST: CONTENT})
    first = unpacked(path)
    with monkeypatch.context() as patch:
        patch.setattr(archives, "_unpack", None)
        assert unpacked(path) == first
    zipped(tmp_path / "a.zip", {HOST: CONTENT, HOST + ".gz": CONTENT})
    assert unpacked(path).files == 2


def test_one_of_the_same_size_and_time_in_its_place_is_another(tmp_path: Path) -> None:
    path = tar(tmp_path / "a.tar", [(HOST, CONTENT)])
    before = os.stat(path)
    assert (Path(unpacked(path).folder) / HOST).read_bytes() == CONTENT
    other = tar(tmp_path / "b.tar", [(HOST, CONTENT[::-1])])
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(other, path)
    assert (os.stat(path).st_size, os.stat(path).st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert (Path(unpacked(path).folder) / HOST).read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize("name", ["told.json", "in"])
def test_an_archive_may_have_any_name(tmp_path: Path, name: str) -> None:
    assert hosts(open_logdir(tar(tmp_path / name, [(HOST, CONTENT)])).runs[0]) == ["host0"]


def test_of_several_that_unpack_it_at_once_the_first_stays(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", {HOST: CONTENT * 10_000})
    with ThreadPoolExecutor(4) as pool:
        (archive,) = set(pool.map(unpacked, [path] * 4))
    assert len([*Path(archive.folder).parents[2].iterdir()]) == 1


def test_what_was_used_longest_ago_leaves_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [Path(unpacked(zipped(tmp_path / f"{n}.zip", {HOST: bytes([10, n]) * 500})).folder) for n in range(3)]
    for age, folder in enumerate(folders):
        os.utime(folder.parents[1], (1000 - age, 1000 - age))
    left = folders[0].parents[2] / "old.part"
    left.mkdir()
    os.utime(left, (1, 1))
    monkeypatch.setattr(archives, "BOUND_BYTES", 2600)
    unpacked(zipped(tmp_path / "new.zip", {HOST: CONTENT}))
    assert [folder.exists() for folder in folders] == [True, True, True], "this process may read them still"
    assert not left.exists()
    archives._in_use.cache_clear()
    for age, folder in enumerate(folders):
        os.utime(folder.parents[1], (1000 - age, 1000 - age))
    unpacked(zipped(tmp_path / "newer.zip", {HOST: CONTENT}))
    assert [folder.exists() for folder in folders] == [True, True, False]


HOSTILE = ["../up.xplane.pb", "/etc/x/../../../abs.xplane.pb", "a/../../b.xplane.pb", "..\\c.xplane.pb"]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_no_name_leads_out_of_the_cache(tmp_path: Path, name: str, kind: str) -> None:
    members = {name: CONTENT, HOST: CONTENT}
    path = tmp_path / "deep" / "er" / f"a.{kind}"
    path.parent.mkdir(parents=True)
    made = zipped(path, members) if kind == "zip" else tar(path, [*members.items()])
    assert unpacked(made).files == 1
    assert "names lead elsewhere" in left_out(made)
    assert [file for file in files_below(tmp_path) if file.endswith(".xplane.pb")] == [
        file for file in files_below(tmp_path) if file.startswith("cache/") and file.endswith(HOST)
    ]


def test_a_path_from_the_root_is_one_below_the_archive(tmp_path: Path) -> None:
    archive = unpacked(tar(tmp_path / "a.tar", [("/abs/x.xplane.pb", CONTENT)]))
    assert files_below(Path(archive.folder)) == ["abs/x.xplane.pb"]


def test_links_devices_and_sparse_files_are_left_out(tmp_path: Path) -> None:
    members: list[tuple[tarfile.TarInfo | str, bytes]] = [(HOST, CONTENT)]
    for number, kind in enumerate((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE)):
        link = tarfile.TarInfo(f"{number}.xplane.pb")
        link.type, link.linkname = kind, "/etc/passwd"
        members.append((link, b""))
    sparse = tarfile.TarInfo("s.xplane.pb")
    sparse.type = tarfile.GNUTYPE_SPARSE
    path = tar(tmp_path / "a.tar", [*members, (sparse, CONTENT), ("inner.zip", b"PK")])
    assert unpacked(path).files == 1
    assert "links and devices (4)" in left_out(path)
    assert "archives inside it (1)" in left_out(path)


def header(kind: bytes, content: bytes, claimed: int | None = None) -> bytes:
    """A header of a tar with what follows it; `claimed` is the size that it states."""
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, len(content) if claimed is None else claimed
    return info.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512)


WANTED = tarfile.TarInfo("a.xplane.pb")
WANTED.size = len(CONTENT)
BEHIND = WANTED.tobuf() + CONTENT + bytes(512 - len(CONTENT)) + bytes(1024)
MEGABYTE = 1 << 20
ODD_HEADERS = {
    "digits": header(b"x", b"1" * MEGABYTE),
    "records of no length": header(b"x", b"1 " * (MEGABYTE // 2)),
    "many records": header(b"x", b"6 a=b\n" * (MEGABYTE // 6)) * 4,
    "all in one record": header(b"x", b"6 a=b\n" * (5 * MEGABYTE)),
    "a chain of names": header(b"L", b"names.xplane.pb") * 5000 + header(b"L", b"a.xplane.pb"),
    "a name without end": header(b"L", bytes(30 * MEGABYTE)),
    "settings for all": header(b"g", b"6 a=b\n" * (5 * MEGABYTE)),
    "an unlikely digit": header(b"x", "15 size=\u0664\n".encode()),
}


@pytest.mark.parametrize("name", ODD_HEADERS)
def test_headers_that_are_long_or_many_hold_nothing_up(tmp_path: Path, name: str) -> None:
    """Standard `tarfile` never ends the first one before Python 3.12.6, and recurses too deep for the chain."""
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(ODD_HEADERS[name] + BEHIND, 1))
    archive = unpacked(str(path))
    assert (Path(archive.folder) / "a.xplane.pb").read_bytes() == CONTENT
    assert not archive.problems


@pytest.mark.parametrize("claimed", [-512, 1 << 70])
@pytest.mark.parametrize("kind", [b"0", b"x", b"L", b"S"])
def test_sizes_that_cannot_be_are_one_sentence(tmp_path: Path, kind: bytes, claimed: int) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(header(kind, b"", claimed) + BEHIND)
    error = refused(str(path))
    assert (error.code, error.exit_code) in (("corrupt", EXIT_UNREADABLE), ("not_found", EXIT_NOT_FOUND))
    assert "\n" not in error.sentence


def test_names_of_what_is_not_wanted_are_not_kept(tmp_path: Path) -> None:
    long = b"n" * 60_000
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress((header(b"L", long) + header(b"0", b"")) * 40 + bytes(1024), 1))
    tracemalloc.start()
    error = refused(str(path))
    assert tracemalloc.get_traced_memory()[1] < 12 * MEGABYTE
    tracemalloc.stop()
    assert error.sentence.endswith("nnn and 37 more.") and len(error.sentence) < 2000


@pytest.mark.parametrize("kind", ["a.zip", "a.tar.gz"])
def test_what_inflates_without_end_is_not_inflated(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_FLOOR", 1 << 20)
    members = {HOST: CONTENT, "logs/bomb.xplane.pb": bytes(40 << 20)}
    path = zipped(tmp_path / kind, members) if kind == "a.zip" else tar(tmp_path / kind, [*members.items()])
    archive = unpacked(path)
    assert "200 times" in left_out(path)
    assert (Path(archive.folder) / HOST).read_bytes() == CONTENT
    assert sum(file.stat().st_size for file in Path(archive.folder).rglob("*.pb")) < (10 << 20)


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz"])
def test_an_archive_that_is_cut(tmp_path: Path, name: str) -> None:
    members = {HOST: CONTENT * 2000, HOST.replace("host0", "host1"): os.urandom(20000)}
    path = zipped(tmp_path / name, members) if name == "a.zip" else tar(tmp_path / name, [*members.items()])
    whole = Path(path).read_bytes()
    Path(path).write_bytes(whole[: len(whole) * 2 // 3])
    if name == "a.zip":  # its table of files is at the end
        error = refused(path)
        assert (error.code, error.exit_code) == ("corrupt", EXIT_UNREADABLE)
        return
    assert hosts(open_logdir(path).runs[0])[0] == "host0"
    assert "its end is missing" in left_out(path)


def test_files_behind_a_password_are_named(tmp_path: Path) -> None:
    path = Path(zipped(tmp_path / "a.zip", {"x.xplane.pb": CONTENT, HOST: CONTENT}, zipfile.ZIP_STORED))
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1  # the first entry's flag, in the table
    path.write_bytes(data)
    assert unpacked(str(path)).files == 1
    assert "files behind a password (1)" in left_out(str(path))


def test_nothing_of_interest_says_what_there_is(tmp_path: Path) -> None:
    error = refused(tar(tmp_path / "a.tar.gz", [("code/train.py", b"x"), ("code/data.bin", b"y")]))
    assert (error.code, error.exit_code) == ("not_found", EXIT_NOT_FOUND)
    assert error.sentence.endswith("holds no profile (*.xplane.pb), only code/train.py, code/data.bin.")


def test_names_with_escapes_are_shown_harmless(tmp_path: Path) -> None:
    assert refused(tar(tmp_path / "a.tar", [("a\x1b]0;owned\x07\nb", b"x")])).sentence.isprintable()


def test_a_dump_in_an_archive_opens_as_one() -> None:
    assert leads_to_hlo(str(DUMP))
    run = open_hlo(str(DUMP)).find_run()
    assert run.path.startswith(cache_folder())
    assert os.path.basename(run.path) == "dump"


@pytest.mark.parametrize("make", [Path.touch, os.mkfifo, lambda path: path.symlink_to("cache")])
def test_a_cache_that_is_no_folder_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], object]
) -> None:
    make(tmp_path / "cache")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    path = zipped(tmp_path / "a.zip", {HOST: CONTENT})
    archive = unpacked(path)
    assert (Path(archive.folder) / HOST).read_bytes() == CONTENT
    assert archive.folder.startswith(str(tmp_path / "temporary")) and unpacked(path) == archive
    archives._for_now.cache_clear()  # as at the end of the process
    assert list((tmp_path / "temporary").iterdir()) == []


def test_what_another_user_unpacked_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where it can't be removed, as in a folder that all may write."""
    path = zipped(tmp_path / "a.zip", {HOST: CONTENT})
    theirs = Path(unpacked(path).folder) / HOST
    theirs.write_bytes(b"theirs")
    monkeypatch.setattr("os.getuid", lambda: os.stat(theirs).st_uid + 1)
    monkeypatch.setattr(CacheFolder, "remove", lambda *_: False)
    assert (Path(unpacked(path).folder) / HOST).read_bytes() == CONTENT


def test_no_room_at_all_is_one_plain_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "cache", b"")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert "can't be unpacked into" in refused(zipped(tmp_path / "a.zip", {HOST: CONTENT})).sentence
