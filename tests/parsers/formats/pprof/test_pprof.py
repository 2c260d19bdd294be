"""The reader of pprof profiles: what it reads, what it makes of damage, and that nothing makes it fail otherwise."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

import pytest

from tests.support.files.pprof import BATCH, JAX_TYPES, METRICS, Made, buffer, executable, pprof, training, written
from tests.support.files.reading import inflations
from tests.support.files.wire import field
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.formats.pprof import files, messages
from tpuprof.parsers.formats.pprof.files import is_pprof
from tpuprof.parsers.formats.pprof.messages import Frame, SampleType, read_pprof
from tpuprof.tui.demo import demo_path


def put(folder: Path, data: bytes, name: str = "memory.prof") -> str:
    path = folder / name
    path.write_bytes(data)
    return str(path)


def refused(path: str) -> ProfileError:
    with pytest.raises(ProfileError) as caught:
        read_pprof(path)
    return caught.value


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("names_first", [True, False])
@pytest.mark.parametrize("level", [0, 9, None])
def test_everything_is_read(tmp_path: Path, packed: bool, names_first: bool, level: int | None) -> None:
    made = [buffer(3, 1000, BATCH, 1), executable(77, METRICS), Made((-1, -5), (), {"kind": "buffer"})]
    data = pprof(made, packed=packed, names_first=names_first, time_ns=1_763_700_000 * 10**9)
    path = put(tmp_path, data if level is None else gzip.compress(data, level))
    assert is_pprof(path)
    profile = read_pprof(path)
    assert profile.types == tuple(SampleType(*one) for one in JAX_TYPES)
    first, program, last = profile.samples
    assert first.values == (3, 3000) and first.labels == {"kind": "buffer", "device": "TPU_1(process=0,(1,0,0,0))"}
    assert first.stack[1] == Frame("next_batch", "/home/ada/train/data.py", 57)
    assert first.stack[1].place == "/home/ada/train/data.py:57"
    assert program.values == (1, 77) and [frame.line for frame in program.stack] == [line for *_, line in METRICS]
    assert last.values == (-1, -5) and last.stack == ()
    assert (profile.time_ns, profile.notes) == (1_763_700_000 * 10**9, ())


def test_a_location_with_inlined_functions_is_a_frame_each(tmp_path: Path) -> None:
    texts = b"".join(field(6, word) for word in (b"", b"space", b"bytes", b"inner", b"outer", b"a.py"))
    line = [field(4, field(1, number) + field(2, 7 + number)) for number in (1, 2)]
    functions = b"".join(field(5, field(1, n) + field(2, 2 + n) + field(4, 5)) for n in (1, 2))
    data = field(1, field(1, 1) + field(2, 2)) + field(2, field(1, 9) + field(2, 4))
    data += field(4, field(1, 9) + line[0] + line[1]) + functions + texts
    (sample,) = read_pprof(put(tmp_path, data)).samples
    assert sample.stack == (Frame("inner", "a.py", 8), Frame("outer", "a.py", 9))


def test_other_files_are_not_taken_for_one(tmp_path: Path) -> None:
    other = {"a.txt": b"plain", "b.gz": gzip.compress(b"plain"), "c": b"", "d": b"\x0a\x02\x08\x01"}
    assert not any(is_pprof(put(tmp_path, data, name)) for name, data in other.items())
    assert not any(map(is_pprof, (demo_path(), str(tmp_path), "/nowhere/x.prof", "/dev/zero")))
    assert is_pprof(str(written(tmp_path, "any_name")))
    assert refused(put(tmp_path, b"plain")).code == "not_pprof"
    assert refused(put(tmp_path, b"")).code == "empty_file"
    assert refused(str(tmp_path / "gone.prof")).exit_code == 3
    assert refused(str(tmp_path)).code == "not_a_file"


def test_a_stream_that_begins_byte_by_byte_is_told_too(tmp_path: Path) -> None:
    packer = zlib.compressobj(wbits=31)
    data = pprof(training())
    pieces = [packer.compress(data[at : at + 1]) + packer.flush(zlib.Z_FULL_FLUSH) for at in range(40)]
    path = put(tmp_path, b"".join((*pieces, packer.compress(data[40:]), packer.flush())))
    assert is_pprof(path) and len(read_pprof(path).samples) == len(training())


def test_the_first_bytes_are_looked_at_before_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, gzip.compress(bytes(60_000_000)))
    given = inflations(monkeypatch)
    assert not is_pprof(path) and refused(path).code == "not_pprof"
    assert sum(given) <= 64 + files.CHUNK


def test_a_bomb_ends_at_its_bound(tmp_path: Path) -> None:
    path = put(tmp_path, gzip.compress(pprof(training()) + field(6, bytes(60_000_000))))
    assert os.path.getsize(path) < 100_000
    error = refused(path)
    assert error.code == "too_large" and "inflates to more than" in error.sentence


def test_too_many_messages_or_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MOST_MESSAGES", 20)
    assert refused(str(written(tmp_path))).code == "too_large"
    monkeypatch.undo()
    monkeypatch.setattr(messages, "MOST_FRAMES", 20)
    few = read_pprof(str(written(tmp_path)))
    assert few.notes[-1].endswith("have too many frames, which are left out") and any(
        each.stack for each in few.samples
    )


def test_what_is_left_of_a_file_that_is_cut(tmp_path: Path) -> None:
    data = pprof(training(step=3))
    whole = read_pprof(put(tmp_path, data))
    texts_begin = data.index(b"allocations") - 4
    lost = refused(put(tmp_path, data[: texts_begin - 10]))
    assert lost.code == "corrupt" and "its names, which stand at its end" in lost.sentence
    cut = read_pprof(put(tmp_path, data[:-40]))
    assert [sample.values for sample in cut.samples] == [sample.values for sample in whole.samples]
    assert "ends in the middle" in cut.notes[0] and any("names of some" in note for note in cut.notes)
    assert "gzip stream ends early" in read_pprof(put(tmp_path, gzip.compress(data)[:-9])).notes[0]
    assert read_pprof(put(tmp_path, data + field(2, b"\x0a\x05"))).samples == whole.samples
