"""What is fuzzed: for each reader undamaged input, and how it is read."""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import random
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from google.protobuf.message import DecodeError

from tests.fuzz import trees
from tests.fuzz.mutate import mutated
from tests.fuzz.structure import folders, kernels, made
from tests.fuzz.structure.graphs import products
from tests.fuzz.structure.logs import log
from tests.fuzz.trial import Outcome, asked, attempt
from tests.parsers.memory.oom.read import texts
from tests.parsers.pages.overview.model_use.test_programs import COMPILED
from tests.support.build import tpu_plane
from tests.support.files.chrome import packed, xprof_trace
from tests.support.files.counters import with_custom_calls, with_instructions, with_periodic, with_readings
from tests.support.files.dumps import DUMP, STEM
from tests.support.files.hlo_graphs import SMALL
from tests.support.files.pprof import pprof, training
from tests.support.files.riegeli import written
from tests.support.files.wire import field
from tests.support.made.serving import five_requests, serving_profile
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.formats.hlo.matrix import matrix_works
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.proto.hlo_pb2 import HloProto
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.thread_pool import ThreadPool
from tpuprof.parsers.formats.xspace.spool import Spool
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.hosts import codec
from tpuprof.parsers.hosts.summary import summarise
from tpuprof.parsers.pages.overview.model_use.hlo_flow import HloFlow
from tpuprof.parsers.pages.overview.model_use.samples import samples_of
from tpuprof.parsers.pages.overview.overview import overview
from tpuprof.parsers.session import opening
from tpuprof.parsers.session.session import Session
from tpuprof.tui.pages import PAGES as ALL_PAGES

PAGES = tuple(page for page in ALL_PAGES if not page.is_of_arrays)
"""All pages of a profile: a new one is asked for too."""

FORMS = ("json", "text", "csv", "md")
OPTIONS = (
    *("", "", "", "", "--limit 3", "--limit 0", "--core 0", "--core host0:1", "--host host0", "--width 40 --ascii"),
    *("--core /device:TPU:0", "--core x!y", "--host nobody", "--core host1:chip0", "--core host0:/device:TPU:1"),
    *("--filter fusion", "--filter self>1us", "--sort self", "--columns name"),
)
OF_PAGES = {
    "runs": ("--facts",),
    "ledger": ("--by op", "--by core", "--by scope", "--by step"),
    "timeline": ("--from 0 --to 5 --limit 50", "--from -1 --to 1e9", "--track XLA", "--track no_such"),
    "graph": (
        *(
            "--around 3",
            "--op no_such",
            "--op fusion.1",
            "--op call.43",
            "--op negate.11",
            "--op parameter.10 --around 9",
        ),
        *("--op custom-call.44 --around 9", "--op conditional.42", "--op copy.7 --around 9", "--op all-reduce-done"),
    ),
    "memory": ("--space vmem", "--fit", "--device v6e", "--module no_such"),
}
"""Options that some pages have."""

MADE = 0.7
"""The share of inputs that are damaged in what they mean, rather than in their bytes."""

Read = Callable[[Path, bytes, random.Random], Outcome]
"""Reads an input; it may use the folder, and choose between ways by the random numbers."""


@dataclass(frozen=True)
class Target:
    """One reader.

    Attributes:
        turns: it is read in one of so many rounds; more than 1 for what mostly waits.
        made: makes input whose parts mean something else, and whose checksums are right; most inputs are so, if it can.
    """

    name: str
    seeds: Callable[[], Sequence[bytes]]
    read: Read
    turns: int = 1
    made: Callable[[random.Random], bytes] | None = None

    def case(self, number: int) -> bytes:
        """The damaged input with a number: always the same one."""
        rng = random.Random(f"{self.name} {number}")
        if self.made is not None and rng.random() < MADE:
            return self.made(rng)
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


def _any_page(file: str) -> Read:
    """Reads a profile of that name by any page, format and options; now and then by `doctor`."""

    def read(folder: Path, data: bytes, rng: random.Random) -> Outcome:
        with small_rooms() if rng.random() < 0.3 else contextlib.nullcontext():
            return read_page(folder, data, rng)

    def read_page(folder: Path, data: bytes, rng: random.Random) -> Outcome:
        path = folder / file
        path.write_bytes(data)
        if rng.random() < 0.03:
            return attempt(["doctor", str(path), *rng.choice(([], ["--json"]))])
        page = rng.choice(PAGES)
        form = rng.choice((*FORMS, *(form for form in page.formats if form != "proto")))
        options = rng.choice((*OPTIONS, *OF_PAGES.get(page.name, ()))).split()
        cache = rng.choice(([], ["--no-cache"], ["--no-cache"]))
        return attempt(["report", page.name, str(path), *cache, "--format", form, *options])

    return read


def _all_pages(folder: Path, data: bytes, _: random.Random) -> Outcome:
    """Every page in every format, made once and written in each."""
    path, worst = folder / "host0.xplane.pb", Outcome("refused")
    path.write_bytes(data)
    with one_session():
        for page in PAGES:
            for form in FORMS:
                outcome = attempt(["report", page.name, str(path), "--no-cache", "--format", form])
                if outcome.is_fault:
                    return replace(outcome, detail=f"{page.name} {form}: {outcome.detail}")
                worst = outcome if outcome.kind == "read" else worst
    return worst


@contextlib.contextmanager
def small_rooms() -> Iterator[None]:
    """Three threads read, and what is inflated lies in a file, as large ones do."""

    def of_three(self: ThreadPool, _: int) -> None:
        begin(self, 3)

    begin, in_memory = ThreadPool.__init__, Spool.__init__.__defaults__
    with mock.patch.object(ThreadPool, "__init__", of_three):
        Spool.__init__.__defaults__ = (200,)
        try:
            yield
        finally:
            Spool.__init__.__defaults__ = in_memory


@contextlib.contextmanager
def one_session() -> Iterator[None]:
    """Each run has one session: what one command read of it the next ones need not."""
    kept: dict[object, Session] = {}
    open_run = opening.open_run

    def kept_run(run: Run, *arguments: Any, **options: Any) -> Session:
        return kept.setdefault(run, open_run(run, *arguments, **options))

    with mock.patch.object(opening, "open_run", kept_run):
        yield


# --- profiles


@cache
def _profiles() -> tuple[bytes, ...]:
    return (*made.profiles(), serving_profile(five_requests()).SerializeToString())


@cache
def _counters() -> tuple[bytes, ...]:
    """Profiles with counters of each kind; of the registers of a chip as many as XProf's figures need."""
    return with_readings("TPU v6 Lite"), with_custom_calls(2, 6), with_periodic(), with_instructions()


@cache
def _small() -> tuple[bytes, ...]:
    return (*_profiles()[:2], _profiles()[-1])


@cache
def _befores() -> tuple[bytes, ...]:
    """Runs that damaged ones are compared with: of one program, with fewer steps, of other ops, of another kind."""
    small = XSpace()
    ops = [("fusion.1", "loop fusion", n * 90, 50) for n in range(3)] + [("copy.2", "copy", 300, 7)]
    tpu_plane(small, 0, ops, steps=[(str(n), n * 90, (n + 1) * 90) for n in range(3)])
    return (small.SerializeToString(), *_small())


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
    """Chunks in each compression."""
    return tuple(written([data], codec) for data in _profiles()[:2] for codec in ("none", "brotli"))


@cache
def _traces() -> tuple[bytes, ...]:
    """As XProf writes them; damage to the bytes that gzip packed as well as to the packed ones."""
    traces = [xprof_trace(XSpace.FromString(data)) for data in _profiles()[:2]]
    return (*traces, packed(traces[0]))


def _of_modules() -> list[str]:
    """Ways to read compiled modules: their pages, with the options of these."""
    more = [f"report {page} {{}} {option}" for page in ("memory", "graph") for option in OF_PAGES[page]]
    return [*_reports("memory", "graph"), *more, "report graph {} --format hlo"]


@cache
def _arrays() -> tuple[bytes, ...]:
    plain = pprof(training(step=2))
    return (plain, pprof(training(), packed=False, names_first=True), gzip.compress(plain, mtime=0))


def _of_module(work: Callable[[HloModule], object]) -> Read:
    """Asks a module for something."""

    def read(_: Path, data: bytes, __: random.Random) -> Outcome:
        try:
            module = HloModule(HloProto.FromString(data))
        except DecodeError:
            return Outcome("refused")

        def works() -> bool:
            work(module)
            return True

        return asked(works)

    return read


def _products(module: HloModule) -> None:
    """The matrix products, which pages of ops ask for by an op's name."""
    for name in [one.name for part in module.proto.hlo_module.computations for one in part.instructions]:
        matrix_works(module, name.decode("utf-8", "replace"), 128)


def _flows(module: HloModule) -> None:
    """The blocks of a model that its ops belong to, which the page on the model asks for."""
    flow = HloFlow(module)
    flow.places()
    samples_of(module, True, 4)


@cache
def _models() -> tuple[bytes, ...]:
    """Programs with attention, a router, loops and an optimizer."""
    names = ("decode_plain", "maxtext_moe", "scan_plain")
    return tuple(lzma.decompress((COMPILED / f"{name}.pb.xz").read_bytes()) for name in names)


@cache
def _protos_of_products() -> tuple[bytes, ...]:
    return tuple(proto.SerializeToString() for proto in products())


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
    return (*_profiles()[:1], *made.modules()[:1], *_logs()[:1], *_texts()[:1], *_archives()[-1:])


def _beginning(rng: random.Random) -> bytes:
    """What is none of these, and is named: or its like, damaged."""
    packet = field(1, field(8, 17) + field(10, 1) + field(3, b"a")) * 3
    texts = (b"brain.Event:2", b"<!DOCTYPE html><html>", "a log\n".encode("utf-16"), b"HloModule a", b"\xef\xbb\xbf a")
    data = rng.choice((*texts, b"\x80\x04\x95 pickle", packet, b"\x0a\xff\xff", rng.choice(_files())))
    return data if rng.random() < 0.2 else mutated(rng, data)


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

    def decoded() -> bool:
        try:
            codec.decode(memoryview(data), lambda _: b"kept")
        except codec.DAMAGED:
            return False
        return True

    return asked(decoded)


# --- all


def _kept() -> tuple[bytes, ...]:
    host = summarise(Trace.from_bytes(_profiles()[1]), "host0")
    return (codec.encode(host, lambda _: "kept"), codec.encode(overview((host,)), lambda _: "kept"))


_all_kept = cache(_kept)

TARGETS = (
    Target("xspace", _profiles, _any_page("host0.xplane.pb"), made=made.profile),
    Target("pages", _small, _all_pages, turns=20, made=made.profile),
    Target("counters", _counters, _commands("host0.xplane.pb", *_reports("counters", "timeline"))),
    Target("diff", _small, _comparison, made=made.profile),
    Target("riegeli", _records, _any_page("host0.xplane.riegeli"), made=made.riegeli),
    Target("trace", _traces, _any_page("host0.trace.json.gz"), made=made.trace),
    Target("hlo", made.modules, _commands("module_1.jit_step.hlo_proto.pb", *_of_modules()), made=made.module),
    Target("hlo-text", _hlo_texts, _commands(f"{STEM}.txt", *_reports("graph"), "report graph {} --format hlo")),
    Target("pprof", _arrays, _commands("memory.prof", "{}", "doctor {}", *_reports("live-arrays")), made=made.arrays),
    Target("texts", _texts, _commands(f"{STEM}-buffer-assignment.txt", *_reports("memory"), "{}")),
    Target(
        "archive",
        _archives,
        _commands(
            *("logs.tar.gz", "{}", "doctor {} --json", "report runs {} --format json", "report runs {} --facts"),
            *("report memory {} --format json", "report graph {} --format json", "report overview {} --format json"),
        ),
        made=made.archive,
    ),
    Target(
        *("file", _files, _commands("what", "{}", "report overview {} --no-cache", "report memory {}")), made=_beginning
    ),
    Target(
        "oom", _logs, _commands("train.log", "oom {}", "oom {} --json", "oom {} --md", "oom {} {} --json"), made=log
    ),
    Target("folder", trees.folder_seeds, trees.read_folder, made=folders.folder),
    Target("dump", trees.dump_seeds, trees.read_dump),
    Target("products", _protos_of_products, _of_module(_products), made=made.product),
    Target("blocks", _models, _of_module(_flows), made=made.product),
    Target("kernel", kernels.modules, kernels.read_module, made=kernels.made_module),
    Target("schedule", kernels.schedules, kernels.read_schedule, made=kernels.made_schedule),
    Target("cache", _all_kept, _decode, made=lambda rng: made.kept(rng, _all_kept())),
)
