"""Folders as input: logdirs of any shape, and a compiler's dumps of which one file is damaged."""

from __future__ import annotations

import json
import random
import shutil
import zipfile
from functools import cache
from pathlib import Path

from tests.fuzz.structure import folders, made
from tests.fuzz.structure.logs import log
from tests.fuzz.trial import Outcome, attempt
from tests.support.files.dumps import DUMP, STEM
from tests.support.files.wire import field

_OF_FOLDERS = (
    *("{}", "report overview {} --format json", "report runs {} --facts --format json", "report runs {}", "doctor {}"),
    *("report ops {} --format json --no-cache", "report memory {} --format json", "report trend {} --format json"),
    *("report overview {} --run b", "report overview {} --run 2026", "report ops {} --host host1 --core host1:0"),
    *(
        "report overview {} --core 0 --no-cache",
        "report overview file://{} --no-cache",
        "report graph {}",
        "diff {} --json",
    ),
    *("oom {}", "report live-arrays {} --format json", "report hosts {} --format json --no-cache"),
)


def read_folder(folder: Path, data: bytes, rng: random.Random) -> Outcome:
    """A folder of any shape, or a path that leads nowhere."""
    path = folders.made(folder / "logs", data, _contents())
    return attempt([word.replace("{}", path) for word in rng.choice(_OF_FOLDERS).split()])


@cache
def _contents() -> dict[str, bytes]:
    data = made.profiles()[0]
    return {"profile": data, "old": data, "noise": b"none of these", "module": made.modules()[0]}


@cache
def folder_seeds() -> tuple[bytes, ...]:
    run = "plugins/profile/2026_01_02_03_04_05/"
    entries = [["profile", f"{run}host0.xplane.pb", ""], ["profile", f"{run}host1.xplane.pb", ""]]
    entries += [["module", f"{run}m.hlo_proto.pb", ""], ["profile", "plugins/profile/b/host0.xplane.pb", ""]]
    return (json.dumps({"entries": entries, "query": ""}).encode(),)


_DUMP_ENDS = (
    ".txt",
    "-buffer-assignment.txt",
    "-live-range.txt",
    ".hlo.pb",
    ".target_arguments.pb",
    ".oom_intermediate_module.hlo.pb",
)
_OF_DUMPS = (
    *(
        "memory {}",
        "report memory {} --format json",
        "report graph {} --format json",
        "oom {}/log {} --json",
        "oom {} --md",
    ),
    *("report memory {} --module no_such", "oom {}/log {}/FILE --json", "report memory {}/FILE --format csv"),
    *("report memory {} --format json --space vmem", "report graph {}/FILE --format hlo"),
)


def read_dump(folder: Path, data: bytes, rng: random.Random) -> Outcome:
    """Files of a compiler's dump, of which one holds these bytes, and a log of a compile that failed."""
    dump = folder / "dump"
    shutil.rmtree(dump, ignore_errors=True)
    dump.mkdir()
    for end in _DUMP_ENDS:
        if rng.random() < 0.6:
            (dump / f"{STEM}{end}").write_bytes(_of_dump(end))
    damaged = f"{STEM}{rng.choice(_DUMP_ENDS)}"
    (dump / damaged).write_bytes(data)
    (dump / "log").write_bytes(log(rng))
    words = rng.choice(_OF_DUMPS).replace("FILE", damaged).replace("{}", str(dump)).split()
    return attempt(words if words[0] != "memory" else ["report", *words])


@cache
def _of_dump(end: str) -> bytes:
    if end == ".target_arguments.pb":
        return field(6, field(1, 4) + field(2, b"lite"))
    if end.endswith(".pb"):
        return made.modules()[0]
    with zipfile.ZipFile(DUMP) as archive:
        return archive.read(f"dump/{STEM}{end}")


@cache
def dump_seeds() -> tuple[bytes, ...]:
    newer = field(6, field(3, 1) + field(2, b"v") + field(1, 5))
    return (*(_of_dump(end) for end in _DUMP_ENDS), newer)
