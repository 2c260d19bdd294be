"""What is fuzzed: for each reader undamaged input, and how it is read."""

from __future__ import annotations

import gzip
import io
import random
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.fuzz.mutate import mutated
from tests.fuzz.trial import Outcome, attempt
from tests.parsers.memory.oom.read import texts
from tests.support.build import tpu_plane
from tests.support.files.chrome import packed, xprof_trace
from tests.support.files.counters import with_custom_calls, with_instructions, with_periodic, with_readings
from tests.support.files.dumps import DUMP, STEM
from tests.support.files.hlo_graphs import SMALL
from tests.support.files.pprof import pprof, training
from tests.support.files.riegeli import written
from tests.support.made.op_pages import op_space
from tests.support.made.serving import five_requests, serving_profile
from tests.support.servers.web import Web, serving
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.hosts import codec
from tpuprof.parsers.hosts.summary import summarise
from tpuprof.parsers.pages.overview.overview import overview

PAGES = (
    "overview",
    "input",
    "ops",
    "op",
    "trend",
    "op-profile",
    "framework-ops",
    "timeline",
    "memory-profile",
    "findings",
    "ledger",
    "hosts",
)
FORMS = ("json", "text", "csv", "md")

Read = Callable[[Path, bytes, random.Random], Outcome]
"""Reads an input; it may use the folder, and choose between ways by the random numbers."""


@dataclass(frozen=True)
class Target:
    """One reader.

    Attributes:
        turns: it is read in one of so many rounds; more than 1 for what mostly waits.
    """

    name: str
    seeds: Callable[[], Sequence[bytes]]
    read: Read
    turns: int = 1

    def case(self, number: int) -> bytes:
        """The damaged input with a number: always the same one."""
        rng = random.Random(f"{self.name} {number}")
        return mutated(rng, rng.choice(self.seeds()))

    def run(self, folder: Path, data: bytes, number: int) -> Outcome:
        """Reads an input in the way of that number."""
        return self.read(folder, data, random.Random(f"way {number}"))


def _commands(file: str, *commands: str) -> Read:
    """Reads an input of that name by one of some commands; ``{}`` is its path."""

    def read(folder: Path, data: bytes, rng: random.Random) -> Outcome:
        path = folder / file
        path.write_bytes(data)
        return attempt([word.replace("{}", str(path)) for word in rng.choice(commands).split()])

    return read


def _reports(*pages: str) -> list[str]:
    return [f"report {page} {{}} --no-cache --format {form}" for page in pages for form in FORMS]


# --- profiles


@cache
def _profiles() -> tuple[bytes, ...]:
    small = XSpace()
    ops = [("fusion.1", "loop fusion", n * 100, 50) for n in range(4)]
    tpu_plane(small, 0, ops, steps=[(str(n), n * 100, (n + 1) * 100) for n in range(4)])
    return tuple(space.SerializeToString() for space in (small, op_space(), serving_profile(five_requests())))


@cache
def _counters() -> tuple[bytes, ...]:
    """Profiles with counters of each kind; of the registers of a chip as many as XProf's figures need."""
    return with_readings("TPU v6 Lite"), with_custom_calls(2, 6), with_periodic(), with_instructions()


@cache
def _befores() -> tuple[bytes, ...]:
    """Runs that damaged ones are compared with: of one program, with fewer steps, of other ops, of another kind."""
    small = XSpace()
    ops = [("fusion.1", "loop fusion", n * 90, 50) for n in range(3)] + [("copy.2", "copy", 300, 7)]
    tpu_plane(small, 0, ops, steps=[(str(n), n * 90, (n + 1) * 90) for n in range(3)])
    return (small.SerializeToString(), *_profiles())


_COMPARISONS = (
    *("diff before after --json", "diff after before --md", "diff before after --format csv", "diff after after"),
    *("diff before after --fail-on-regression 5 --format text", "diff after before --host host0 --json"),
    "diff after before --core host0:0",
)


def _comparison(folder: Path, data: bytes, rng: random.Random) -> Outcome:
    """A damaged run compared with an undamaged one, either with one host more than the other."""
    paths = {}
    for name, host0 in (("before", rng.choice(_befores())), ("after", data)):
        run = folder / name
        shutil.rmtree(run, ignore_errors=True)
        run.mkdir()
        (run / "host0.xplane.pb").write_bytes(host0)
        if rng.random() < 0.3:
            (run / "host1.xplane.pb").write_bytes(rng.choice((data, *_befores())))
        paths[name] = str(run)
    return attempt([paths.get(word, word) for word in rng.choice(_COMPARISONS).split()] + ["--no-cache"])


@cache
def _records() -> tuple[bytes, ...]:
    return tuple(written([data], codec) for data in _profiles()[:2] for codec in ("none", "brotli", "zstd", "snappy"))


@cache
def _traces() -> tuple[bytes, ...]:
    """As XProf writes them; damage to the bytes that gzip packed as well as to the packed ones."""
    traces = [xprof_trace(XSpace.FromString(data)) for data in _profiles()[:2]]
    return (*traces, packed(traces[0]))


@cache
def _protos() -> tuple[bytes, ...]:
    from tests.demo.profile.hlo_module import Module

    return tuple(Module(name).proto_bytes for name in ("jit_train_step", "jit_eval_step"))


@cache
def _arrays() -> tuple[bytes, ...]:
    plain = pprof(training(step=2))
    return (plain, pprof(training(), packed=False, names_first=True), gzip.compress(plain, mtime=0))


_OF_ARRAYS = ["{}", "doctor {}", "diff {} other --json", "diff other {} --md", *_reports("live-arrays")]


def _memory(folder: Path, data: bytes, rng: random.Random) -> Outcome:
    """A device memory profile, alone or compared with an undamaged one."""
    other = folder / "other.prof"
    other.write_bytes(_arrays()[0])
    commands = (words.replace("other", str(other)) for words in _OF_ARRAYS)
    return _commands("memory.prof", *commands)(folder, data, rng)


# --- logs


# --- what else a path may lead to


@cache
def _archives() -> tuple[bytes, ...]:
    """A logdir as zip and tar, packed and not, with long names, and a dump."""
    made = []
    for mode in ("w", "w:gz"):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode=mode) as archive:
            for name, data in (
                ("run/host0.xplane.pb", _profiles()[0]),
                (f"{'n' * 120}/h\u00f6st.xplane.pb", b"\x0a\x00"),
            ):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
        made.append(out.getvalue())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("run/host0.xplane.pb", _profiles()[0])
    return (*made, out.getvalue(), DUMP.read_bytes())


@cache
def _texts() -> tuple[bytes, ...]:
    with zipfile.ZipFile(DUMP) as archive:
        ends = ("-buffer-assignment.txt", "-live-range.txt", ".txt")
        assigned, live, hlo = (archive.read(f"dump/{STEM}{end}") for end in ends)
    return (assigned, assigned + live, assigned + live + hlo)


@cache
def _hlo_texts() -> tuple[bytes, ...]:
    with zipfile.ZipFile(DUMP) as archive:
        return (archive.read(f"dump/{STEM}.txt"), SMALL.encode())


@cache
def _files() -> tuple[bytes, ...]:
    """Beginnings of all kinds: which of them one is must never break anything."""
    return (*_profiles()[:1], *_protos()[:1], *_logs()[:1], *_texts()[:1], *_archives()[-1:])


@cache
def _logs() -> tuple[bytes, ...]:
    hbm, vmem = texts.HBM.text(), texts.VMEM.text()
    return tuple(text.encode() for text in (hbm, vmem, f"step 12 loss 3.1\n{hbm}step 13\n{vmem}", prefixed(hbm)))


def prefixed(text: str) -> str:
    """As a logger prints it."""
    return "".join(
        f"E1121 12:00:{n % 60:02}.000001 4711 pjrt.py:12] {line}\n" for n, line in enumerate(text.splitlines())
    )


# --- what was kept


def _decode(_: Path, data: bytes, __: random.Random) -> Outcome:
    """Bytes behind a checksum that fits, so that the codec sees them."""
    try:
        codec.decode(memoryview(data), lambda _: b"kept")
    except codec.DAMAGED:
        return Outcome("refused")
    except Exception as error:  # noqa: BLE001 - which one is what the trial is for
        return Outcome("raised", f"{type(error).__name__}: {error}"[:300])
    return Outcome("read")


# --- web servers


def _index(folder: Path, data: bytes, rng: random.Random) -> Outcome:
    """A folder's page on a web server, with these bytes among its links."""
    web = Web(files={"/logs/plugins/profile/run/host.xplane.pb": _profiles()[0]}, links=[data.decode("latin-1")])
    with serving(web):
        words = rng.choice(("report runs", "report runs --format json", "report ops --format json"))
        return attempt([*words.split(), f"{web.url}/logs/"])


@cache
def _links() -> tuple[bytes, ...]:
    names = ("host2.xplane.pb", "/logs/other/", "?C=M;O=A", "%2e%2e/", "http://localhost:1/x/", "a b%20c.xplane.pb.gz")
    return ('"><a href="'.join(names).encode(), b"host.xplane.pb")


# --- all


def _kept() -> tuple[bytes, ...]:
    host = summarise(Trace.from_bytes(_profiles()[1]), "host0")
    return (codec.encode(host, lambda _: "kept"), codec.encode(overview((host,)), lambda _: "kept"))


TARGETS = (
    Target("xspace", _profiles, _commands("host0.xplane.pb", *_reports(*PAGES), "doctor {}", "doctor {} --json")),
    Target("counters", _counters, _commands("host0.xplane.pb", *_reports("counters", "timeline"))),
    Target("diff", _profiles, _comparison),
    Target(
        "riegeli",
        _records,
        _commands("host0.xplane.riegeli", *_reports("overview", "ops", "timeline"), "doctor {}", "doctor {} --json"),
    ),
    Target(
        "trace",
        _traces,
        _commands("host0.trace.json.gz", *_reports("overview", "ops", "timeline"), "doctor {}", "doctor {} --json"),
    ),
    Target("hlo", _protos, _commands("module_1.jit_step.hlo_proto.pb", *_reports("memory", "graph"))),
    Target(
        "hlo-text",
        _hlo_texts,
        _commands(
            f"{STEM}.txt", *_reports("graph"), *(f"report graph {{}} --format {form}" for form in ("hlo", "dot"))
        ),
    ),
    Target("pprof", _arrays, _memory),
    Target("texts", _texts, _commands(f"{STEM}-buffer-assignment.txt", *_reports("memory"), "{}")),
    Target(
        "archive",
        _archives,
        _commands(
            "logs.tar.gz", "{}", "doctor {} --json", "report runs {} --format json", "report memory {} --format json"
        ),
    ),
    Target("file", _files, _commands("what", "{}", "report overview {} --no-cache", "report memory {}")),
    Target("oom", _logs, _commands("train.log", "oom {}", "oom {} --json", "oom {} --md")),
    Target("cache", cache(_kept), _decode),
    Target("http", _links, _index, turns=10),
)
