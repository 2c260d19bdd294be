"""What the README's commands find: a home folder, programs that would need a network, and servers.

Run as a program, it is what stands behind those programs, and the servers: in a process of their own, for a terminal is
forked from the test's, which a process with gRPC's threads should not be.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from tests.support.imports import ROOT

RUNS = ("2026_11_19_03_00_00", "2026_11_20_03_00_00")
PLAIN = ("python", "python3", "pip", "pipx", "uv", "pytest", "ssh", "gcloud", "tpuprof-tui")
"""Programs that stand in the world's folder of programs."""

TRAIN = """import os, sys
print(os.environ.get("XLA_FLAGS", ""), open("train.log").read(), file=sys.stderr)
"""


def build(home: Path) -> None:
    """Fills a home folder: two runs, an XLA dump, a log with an error, a device memory profile, a program."""
    from tests.support.files.dumps import dumped
    from tests.support.files.pprof import pprof, training
    from tests.support.made.oom import MESSAGE
    from tpuprof.tui.demo import demo_path

    for run in RUNS:
        folder = home / "logs" / "plugins" / "profile" / run
        folder.mkdir(parents=True)
        shutil.copy(demo_path(), folder / "host0.xplane.pb.gz")
    (home / "host").mkdir()
    (home / "host" / "host0.xplane.pb").write_bytes(gzip.decompress(Path(demo_path()).read_bytes()))
    dumped(home / "xla_dump", ".hlo.pb")
    (home / "train.log").write_text(MESSAGE)
    (home / "train.py").write_text(TRAIN)
    (home / "memory.prof").write_bytes(pprof(training(12)))
    make_programs(home / "bin")


def make_programs(folder: Path) -> None:
    """Puts the stand-ins into a folder."""
    folder.mkdir(parents=True)
    for name in PLAIN:
        call = f"import sys; sys.path.insert(0, {str(ROOT)!r}); "
        call += f"from tests.tui.readme.world import stand_in; stand_in({name!r})"
        path = folder / name
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{call}" "$@"\n')
        path.chmod(0o755)


def stand_in(name: str) -> None:
    """Does what a program does, as far as that needs neither a network nor minutes; ends the process."""
    arguments = sys.argv[1:]
    if name == "tpuprof-tui":
        from tpuprof.tui.cli.main import main

        sys.exit(main(arguments))
    if name.startswith("python"):
        if arguments[:2] == ["-m", "venv"]:
            make_programs(Path(arguments[2]) / "bin")
            sys.exit()
        sys.exit(subprocess.call([sys.executable, *arguments]))
    if name == "pytest":
        few = ["-n", "0", "--collect-only", "-q", "tests/test_house.py"]
        sys.exit(subprocess.call([sys.executable, "-m", "pytest", *arguments, *few], cwd=ROOT))
    if name in ("pip", "pipx", "uv"):
        sys.exit(why_not_installed(arguments[1:] if arguments[0] == "tool" else arguments))
    if name == "ssh":
        rest = arguments[arguments.index("my-tpu") + 1 :]
        sys.exit(subprocess.call(rest) if rest else None)
    assert name == "gcloud" and arguments[:2] == ["storage", "cp"], arguments
    sys.exit()


def why_not_installed(arguments: list[str]) -> str | None:
    """What is wrong with `pip install …`: another command, or an extra that there is not; None if nothing is."""
    pyproject = (ROOT / "pyproject.toml").read_text("utf-8")
    extras = re.search(r"^\[project.optional-dependencies\]\n(.*?)^\[", pyproject, re.MULTILINE | re.DOTALL)
    assert extras is not None
    there = re.findall(r"^([a-z]+) = \[", extras[1], re.MULTILINE)
    wanted = re.fullmatch(r"(?:\.|tpuprof-tui)(?:\[([a-z]+)\])?", arguments[-1])
    if arguments[0] != "install" or arguments[1:-1] not in ([], ["-e"]) or wanted is None:
        return f"not a command that the README should have: pip {' '.join(arguments)}"
    return None if wanted[1] is None or wanted[1] in there else f"there is no extra {wanted[1]}"


def serve() -> None:
    """Serves a profiler, one that keeps its last seconds, and the bundled profile; until its input ends."""
    from tests.support.servers.profiler_server import FakeProfiler
    from tests.support.servers.web import Web, serving
    from tpuprof.parsers.formats.proto.services_pb2 import ProfileResponse
    from tpuprof.tui.demo import demo_path

    def sends_at_once(server: FakeProfiler, _request: object, _context: object) -> ProfileResponse:
        return ProfileResponse(xspace=server.profile)

    with ExitStack() as stack:
        profiler, keeping = (stack.enter_context(FakeProfiler(sends_at_once)) for _ in range(2))
        keeping.kept = True
        web = stack.enter_context(serving(Web({"/host0.xplane.pb.gz": Path(demo_path()).read_bytes()})))
        told = {"profiler": profiler.port, "keeping": keeping.port, "web": web.url}
        print(json.dumps(told), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    serve()
