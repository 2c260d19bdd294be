"""Tests of `tpuprof.parsers.files.source_lines`: the right lines, and nothing but text of regular source files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.source_lines import LONGEST_LINE, MOST_BYTES, SUFFIXES, SourceExcerpt, source_excerpt

TEN_LINES = "".join(f"line {number}\n" for number in range(1, 11))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, and nothing else to import from."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [])
    return folder


def write(path: Path, text: str | bytes = TEN_LINES) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("place", "first", "lines", "marked"),
    [
        ("5", 3, (3, 4, 5, 6, 7), 2),
        ("5:12", 3, (3, 4, 5, 6, 7), 2),
        ("1", 1, (1, 2, 3), 0),
        ("2", 1, (1, 2, 3, 4), 1),
        ("10", 8, (8, 9, 10), 2),
        ("0010", 8, (8, 9, 10), 2),
    ],
)
def test_lines_around_a_place(here: Path, place: str, first: int, lines: tuple[int, ...], marked: int) -> None:
    path = write(here / "model.py")
    expected = SourceExcerpt(str(path), first, tuple(f"line {line}" for line in lines), marked)
    assert source_excerpt(f"{path}:{place}") == expected
    assert expected.lines[expected.marked] == f"line {int(place.partition(':')[0])}"


@pytest.mark.parametrize("place", ["0", "11", "999999999", "9999999999", "9" * 4000, "-1", "", "1.5", "٣", "5:", "5:x"])
def test_no_such_line(here: Path, place: str) -> None:
    assert source_excerpt(f"{write(here / 'model.py')}:{place}") is None


@pytest.mark.parametrize(
    "source",
    [
        ":5",
        "model.py",
        "<embedded module '_launcher'>:35:2",
        "<string>:1",
        "model.py\0:1",
        "model\0.py:1",
        "/absent/model.py:1",
        "../here/model.py:1",
        "sub/../model.py:1",
        "a" * 300 + ".py:1",
        "a/" * 2000 + "a.py:1",
        "a/" * 50_000 + "a.py:1",
    ],
)
def test_what_is_no_place(here: Path, source: str) -> None:
    write(here / "model.py")
    assert source_excerpt(source) is None


@pytest.mark.parametrize("name", ["a:b.py", "a:3.py", "a b.py", "a.py:7.py", "größe.py", "\x1b[2J.py", "-.py", "~.py"])
def test_odd_names(here: Path, name: str) -> None:
    path = write(here / name)
    for source in (f"{path}:5", f"{path}:5:1", f"{name}:5"):
        excerpt = source_excerpt(source)
        assert excerpt is not None
        assert excerpt.lines[excerpt.marked] == "line 5"
        assert excerpt.path in (printable(name), printable(str(path)))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_suffixes_of_source_files(here: Path, suffix: str) -> None:
    write(here / f"model{suffix}")
    assert source_excerpt(f"model{suffix}:5") is not None


@pytest.mark.parametrize("name", ["notebook.ipynb", "id_rsa", "notes.txt", ".env", "model.py.bak", "x.pyc", "py"])
def test_other_files_are_not_read(here: Path, name: str) -> None:
    assert source_excerpt(f"{write(here / name)}:5") is None


def test_a_relative_path_under_roots_and_import_folders(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, site = tmp_path / "one", tmp_path / "two", tmp_path / "site"
    write(site / "pkg/sub/model.py", "site\n")
    monkeypatch.setattr(sys, "path", ["", str(tmp_path / "absent.zip"), str(site)])

    def found(source: str, *roots: Path) -> tuple[str, str] | None:
        excerpt = source_excerpt(source, roots=[str(root) for root in roots])
        return None if excerpt is None else (excerpt.path, excerpt.lines[0])

    in_site = (str(site / "pkg/sub/model.py"), "site")
    assert found("pkg/sub/model.py:1", one, two) == in_site
    assert found("/pkg/sub/model.py:1", one, two) is None  # absolute paths are taken as they are
    assert found("./third_party//py/pkg/sub/model.py:1", one, two) == in_site  # by its longest tail here
    write(two / "sub/model.py", "two\n")
    assert found("third_party/pkg/sub/model.py:1", one, two) == in_site  # a longer tail, in a later folder
    write(two / "pkg/sub/model.py", "two, longer\n")
    assert found("third_party/pkg/sub/model.py:1", one, two) == (str(two / "pkg/sub/model.py"), "two, longer")
    write(one / "pkg/sub/model.py", "one\n")
    assert found("third_party/pkg/sub/model.py:1", one, two) == (str(one / "pkg/sub/model.py"), "one")
    assert found("third_party/pkg/sub/model.py:2", one, two) is None  # the first file decides
    assert source_excerpt("pkg/sub/model.py:1") == SourceExcerpt(*in_site[:1], 1, ("site",), 0)


def test_a_files_name_alone_is_not_enough_for_a_path_with_folders(here: Path) -> None:
    write(here / "app.py")
    assert source_excerpt("app.py:5") is not None
    assert source_excerpt("absl/app.py:5") is None
    assert source_excerpt("third_party/py/absl/app.py:5") is None


def test_an_import_path_with_things_that_are_no_folders(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [None, 7, "\0", "\ud800", str(write(here / "file.py"))])
    assert source_excerpt("pkg/model.py:1") is None


def test_what_is_no_regular_file(here: Path) -> None:
    """A FIFO without a writer would make a plain `open` wait for ever."""
    os.mkfifo(here / "fifo.py")
    (here / "folder.py").mkdir()
    (here / "device.py").symlink_to("/dev/zero")
    (here / "terminal.py").symlink_to("/dev/tty")
    (here / "dangling.py").symlink_to(here / "absent")
    (here / "loop.py").symlink_to(here / "loop.py")
    for name in ("fifo", "folder", "device", "terminal", "dangling", "loop"):
        assert source_excerpt(f"{here / name}.py:1") is None
        assert source_excerpt(f"{name}.py:1") is None


def test_a_link_to_a_source_file_is_followed(here: Path) -> None:
    (here / "link.py").symlink_to(write(here / "model.py"))
    excerpt = source_excerpt("link.py:5")
    assert excerpt is not None
    assert (excerpt.path, excerpt.lines[excerpt.marked]) == ("link.py", "line 5")


@pytest.mark.parametrize(
    "path", ["/proc/self/cwd/model.py", "//proc/self/cwd/model.py", "/tmp/../proc/self/cwd/model.py", "/dev/model.py"]
)
def test_kernel_folders_are_left_alone(here: Path, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write(here / "model.py")
    opened: list[object] = []

    def refuse(path: object, *_: object) -> int:
        opened.append(path)
        raise OSError

    monkeypatch.setattr(os, "open", refuse)
    assert source_excerpt(f"{path}:5") is None
    assert source_excerpt(f"{here}/x.py:5") is None
    assert opened == [f"{here}/x.py"]


@pytest.mark.parametrize("call", ["open", "fstat"])
def test_a_file_that_cant_be_read(here: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    write(here / "model.py")
    assert source_excerpt("model.py:1") is not None
    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        excerpt = source_excerpt("model.py:1")
    assert excerpt is None


def test_no_descriptor_stays_open(here: Path) -> None:
    write(here / "model.py")
    (here / "folder.py").mkdir()
    before = os.open(here, os.O_RDONLY)
    os.close(before)
    for _ in range(20):
        source_excerpt("model.py:5")
        source_excerpt("folder.py:5")
    after = os.open(here, os.O_RDONLY)
    os.close(after)
    assert after == before


def test_the_start_of_a_large_file(here: Path) -> None:
    line = b"x" * 99 + b"\n"
    path = here / "model.py"
    with path.open("wb") as file:
        file.write(line * 10)
        file.truncate(10 * MOST_BYTES)
    assert source_excerpt("model.py:10") == SourceExcerpt("model.py", 8, ("x" * 99,) * 3, 2)
    assert source_excerpt("model.py:11") is None  # cut off, its end is not known
    write(path, line * (MOST_BYTES // 100))
    assert source_excerpt(f"model.py:{MOST_BYTES // 100}") is not None
    write(path, line * (MOST_BYTES // 100 + 1))
    assert source_excerpt(f"model.py:{MOST_BYTES // 100 + 1}") is None
    write(path, b"x" * (MOST_BYTES + 1))
    assert source_excerpt("model.py:1") is None


def test_lines_are_cut_and_safe_to_print(here: Path) -> None:
    lines = [
        b"\xef\xbb\xbfbegin",
        b"\ta\tb",
        b"x" * 5000,
        "🚀".encode() * 500,
        b"\x1b[2Jred\x1b[0m\x07",
        b"\x00\xff\x9b latin \xe9",
        "a\u202eb\u200bc\u2028d".encode(),
        b"\x1b" * 500,
        b"\t" * 500,
        "\u202e".encode() * 500,
        b"form\x0cfeed",
    ]
    write(here / "model.py", b"\r\n".join(lines))
    excerpts = [source_excerpt(f"model.py:{number}") for number in range(1, len(lines) + 1)]
    assert [found and found.lines[found.marked] for found in excerpts] == [
        "begin",
        "    a   b",
        "x" * LONGEST_LINE,
        "🚀" * LONGEST_LINE,
        "␛[2Jred␛[0m␇",
        "␀�� latin �",
        "a\\u202eb\\u200bc\\u2028d",
        "␛" * LONGEST_LINE,
        " " * LONGEST_LINE,
        ("\\u202e" * LONGEST_LINE)[:LONGEST_LINE],
        "form␌feed",
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(content=st.binary(max_size=300), line=st.integers(0, 20))
def test_any_content(here: Path, content: bytes, line: int) -> None:
    write(here / "model.py", content)
    excerpt = source_excerpt(f"model.py:{line}")
    count = len(content.removeprefix(b"\xef\xbb\xbf").splitlines())
    assert (excerpt is not None) == (1 <= line <= count)
    if excerpt is not None:
        assert excerpt.first_line + excerpt.marked == line
        assert len(excerpt.lines) == min(count, line + 2) - max(1, line - 2) + 1
        for text in excerpt.lines:
            assert printable(text) == text
            assert len(text) <= LONGEST_LINE


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.one_of(
        st.text(st.characters(exclude_categories=())),
        st.text(alphabet="/.:1apy\0\udc80\n", max_size=12),
        st.lists(st.sampled_from(["/", "..", ".", ".py", ":", "1", "a", "\0", "\udc80", "\n"])).map(
            lambda parts: "".join(parts) + ".py:1"
        ),
    )
)
def test_never_raises(here: Path, source: str) -> None:
    """In an empty folder nothing is found, and nothing goes wrong."""
    assert source_excerpt(source) is None
