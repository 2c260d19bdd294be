"""What the compiler says of variants of a program: a command runs once for each, until its dump holds the verdict.

The compiler is the judge: what it compiled fits, and what it gave up for lack of memory does not. On a TPU VM it needs
no chip, and the command needs to run no longer than until its program is compiled.
"""

from __future__ import annotations

import contextlib
import glob
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import IO, NamedTuple

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.hlo.files import CODEGEN
from tpuprof.parsers.memory.model import SpaceMemory
from tpuprof.parsers.memory.modules.target import stem_of
from tpuprof.parsers.memory.oom.dumps import FAILED, read_dumps
from tpuprof.parsers.pages.program.changes import compare_programs
from tpuprof.parsers.pages.program.facts import memory_of_program
from tpuprof.parsers.pages.program.ops import Band, ProgramRow, program_rows
from tpuprof.parsers.pages.program.programs import CompiledProgram, programs_at

FITS, TOO_LARGE, UNKNOWN = "fits", "does not fit", "unknown"
MOST_VARIANTS = 64
_COMPILED = ".after_codegen.hlo.pb"
_PS_PER_SECOND = 10**12
_POLL_SECONDS, _QUIET_SECONDS, _END_SECONDS = 0.2, 1.0, 5.0
_OUTPUT, _LAST_BYTES = "output.txt", 4096
_DUMPED = "--xla_dump_to={} --xla_dump_hlo_as_proto --xla_dump_hlo_as_text"
_RANGE = pattern(r"(\d{1,12})\.\.(\d{1,12})")


class Variant(NamedTuple):
    """Values for the names in the command, and flags of libtpu, as pairs."""

    values: tuple[tuple[str, str], ...]
    flags: tuple[tuple[str, str], ...]

    @property
    def label(self) -> str:
        """It in words, ``batch=8 scoped_vmem_limit_kib=65536``."""
        flags = ((name.removeprefix("xla_").removeprefix("tpu_"), value) for name, value in self.flags)
        return " ".join(f"{name}={value}" for name, value in (*self.values, *flags)) or "as it is"

    def command(self, template: str) -> str:
        """The command with the values in the places of their names in braces, quoted for the shell."""
        for name, value in self.values:
            template = template.replace(f"{{{name}}}", shlex.quote(value))
        return template


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a variant.

    Attributes:
        variant: what was tried.
        verdict: `FITS`, `TOO_LARGE` or `UNKNOWN`, for which `reason` says why.
        module: that the verdict is of; None where there is none.
        needed_bytes, there_bytes: of HBM, gaps between buffers included; None where the dump does not say.
        bound_ps, told: of the program, see `ProgramRow`; None where it was not compiled, or where nothing is known. The
            program itself is let go, since one may be large and there may be many.
        why_not_told: why `told` is None; empty where it is not.
        change: from the first variant that fits, a verdict of `parsers.pages.program.changes`; None where either has
            no program.
        ran_ps: how long the command ran.
    """

    variant: Variant
    verdict: str
    reason: str = ""
    module: str | None = None
    needed_bytes: int | None = None
    there_bytes: int | None = None
    bound_ps: int | None = None
    told: Band | None = None
    why_not_told: str = ""
    change: str | None = None
    ran_ps: int = 0

    @property
    def label(self) -> str:
        return self.variant.label


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be tried.

    Attributes:
        command: for the shell, with names in braces where values go.
        variants: in their order; of a search those of both ends.
        searched: the name whose largest value is searched for, of whole numbers between two; None for no search.
        module: the name of the program that is meant; None for the one that takes longest, once the command has ended.
        seconds: after which a variant is given up.
    """

    command: str
    variants: tuple[Variant, ...]
    searched: str | None
    module: str | None
    seconds: float


def plan_of(command: str, sets: Sequence[str], flags: Sequence[str], module: str | None, seconds: float) -> Plan:
    """What some options ask for: every combination of ``NAME=VALUE,VALUE``; a range ``8..512`` is searched.

    Raises:
        ProfileError: a name is not in the command, there are too many variants, or a search among others.
    """
    given = {name: values for name, values in map(_listed, sets)}
    for name in given:
        if f"{{{name}}}" not in command:
            raise _usage(f"{{{name}}} is not in the command.", f"'… --{name} {{{name}}}'")
    chosen = [tuple((name, value) for value in values) for name, values in given.items()]
    flagged = [tuple((name, value) for value in values) for name, values in map(_listed, flags)]
    ranges = {name: match.groups() for name, values in given.items() if (match := _RANGE.fullmatch(values[0]))}
    if ranges:
        (searched, (low, high)), *more = ranges.items()
        if more or int(low) > int(high) or any(len(each) > 1 for each in (*chosen, *flagged)):
            raise _usage("A range is searched alone, from its lower end to its upper one.", "--set batch=8..512")
        ends = tuple((searched, end) for end in dict.fromkeys((low, high)))
        chosen = [ends if each[0][0] == searched else each for each in chosen]
    variants = tuple(Variant(values, switches) for values in product(*chosen) for switches in product(*flagged))
    if len(variants) > MOST_VARIANTS:
        raise _usage(f"These are {len(variants):,} variants.", f"at most {MOST_VARIANTS}")
    return Plan(command, variants, next(iter(ranges), None), module, seconds)


def _listed(text: str) -> tuple[str, list[str]]:
    name, is_there, values = text.strip().lstrip("-").partition("=")
    if not name.isidentifier() or not is_there:
        raise _usage(f"{printable(text)} is not NAME=VALUES.", "--set batch=8,16")
    return name, values.split(",")


def _usage(sentence: str, hint: str) -> ProfileError:
    return ProfileError("usage", sentence, hint, EXIT_USAGE)


def trials(plan: Plan, folder: str, environ: Mapping[str, str]) -> Iterator[Trial]:
    """Runs the variants one after the other; a search runs its ends, then what lies between, as it needs to.

    Args:
        folder: what the compiler and the command write goes into a folder in it, one a variant.
        environ: of the command; its own flags of XLA and libtpu are kept.
    """
    first: CompiledProgram | None = None

    def tried(variant: Variant, number: int) -> Trial:
        nonlocal first
        own = os.path.join(folder, f"{number:02}")
        os.mkdir(own, 0o700)
        ran = _run_until(variant.command(plan.command), own, _environ(variant, own, environ), plan)
        made, compiled = _judged(variant, own, plan, ran, first)
        first = first or compiled
        return replace(made, ran_ps=round(ran * _PS_PER_SECOND))

    known: dict[int, Trial] = {}
    for number, variant in enumerate(plan.variants):
        made = tried(variant, number)
        yield made
        if plan.searched is not None:
            known[int(dict(variant.values)[plan.searched])] = made
            if made.verdict != FITS:
                break  # the lower end is too large, or nothing can be said
    if len(known) < 2 or [*known.values()][-1].verdict != TOO_LARGE:
        return
    low, high = known
    while high - low > 1:
        middle = (low + high) // 2
        values = tuple((name, str(middle) if name == plan.searched else value) for name, value in variant.values)
        made = tried(Variant(values, variant.flags), len(known))
        yield made
        if made.verdict == UNKNOWN:
            return
        known[middle] = made
        low, high = (middle, high) if made.verdict == FITS else (low, middle)


def _environ(variant: Variant, folder: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of the command, with what makes the compiler write to a folder, and with its flags."""
    flags = " ".join(f"--{name}={value}" for name, value in variant.flags)
    added = {"XLA_FLAGS": _DUMPED.format(shlex.quote(folder)), "LIBTPU_INIT_ARGS": flags}
    return {**environ, **{name: f"{environ.get(name, '')} {words}".strip() for name, words in added.items()}}


def _run_until(command: str, folder: str, environ: Mapping[str, str], plan: Plan) -> float:
    """Runs a command until the folder holds the verdict, it ends, or its time is up; the seconds that it took.

    It gets a process group of its own, of which nothing is left running. Its output goes to a file in the folder.
    """
    begun = time.monotonic()
    with open(os.path.join(folder, _OUTPUT), "wb") as output:
        process = _started(command, environ, output)
        try:
            while process.poll() is None and time.monotonic() - begun < plan.seconds and not _has(folder, plan.module):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_SECONDS)
        finally:
            _end(process)
    return time.monotonic() - begun


def _started(command: str, environ: Mapping[str, str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    shell, nothing = ["/bin/sh", "-c", command], subprocess.DEVNULL
    return subprocess.Popen(  # noqa: S603 - the user's own command, which the user was shown
        shell, stdin=nothing, stdout=output, stderr=subprocess.STDOUT, env=dict(environ), start_new_session=True
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends all that a command started: asks it to, and does not ask again."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)


def _has(folder: str, module: str | None) -> bool:
    """Whether the verdict on a module is written: of one without a name only that it does not fit, which ends all."""
    for path in (*_files(folder, FAILED, module), *(_files(folder, _COMPILED, module) if module is not None else ())):
        with contextlib.suppress(OSError):
            if time.time() - os.stat(path).st_mtime > _QUIET_SECONDS:
                return True
    return False


def _files(folder: str, ending: str, module: str | None) -> list[str]:
    """Files of a dump, ``module_0001.jit_step.cl_9.….pb``, those of a module if one is named."""
    paths = glob.glob(f"{glob.escape(folder)}/*{ending}")
    return [path for path in paths if module is None or module in os.path.basename(stem_of(path)).split(".")]


def _judged(
    variant: Variant, folder: str, plan: Plan, ran: float, first: CompiledProgram | None
) -> tuple[Trial, CompiledProgram | None]:
    """What the dump in a folder says of the module of that name, or of the one that failed or takes longest.

    The program is there where it was compiled.
    """
    with contextlib.suppress(ProfileError):
        for failed in read_dumps(_files(folder, FAILED, plan.module)):
            return Trial(variant, TOO_LARGE, "", failed.name, *_bytes_of(failed.memory)), None
    row = _compiled(folder, plan.module)
    if row is None or row.compiled is None:
        return Trial(variant, UNKNOWN, _why_nothing(folder, plan, ran)), None
    trial = Trial(
        variant,
        FITS,
        "",
        row.name,
        *_bytes_of(memory_of_program(row.compiled, row.chip)),
        bound_ps=None if row.total is None else row.total.bound_ps,
        told=row.told,
        why_not_told=row.reason or row.problem,
        change=None if first is None else compare_programs(("", ""), [first], [row.compiled]).verdict,
    )
    return trial, row.compiled


def _bytes_of(memory: SpaceMemory | None) -> tuple[int | None, int | None]:
    """What is needed, and what is there."""
    if memory is None:
        return None, None
    return memory.needed_bytes, memory.capacity.size_bytes if memory.capacity is not None else None


def _compiled(folder: str, module: str | None) -> ProgramRow | None:
    """The program of that name, or the one that takes longest, of those that were compiled to the end."""
    with contextlib.suppress(ProfileError):
        compiled = (one for one in programs_at(folder) if CODEGEN.fullmatch(one.origin))
        return next(iter(program_rows(one for one in compiled if module in (None, one.name))), None)
    return None


def _why_nothing(folder: str, plan: Plan, ran: float) -> str:
    """Why there is no verdict, with the last line that the command printed."""
    what = "a program" if plan.module is None else printable(plan.module)
    why = f"{what} was not compiled" + (f" within {plan.seconds:.0f} s" if ran >= plan.seconds else "")
    with open(os.path.join(folder, _OUTPUT), "rb") as output:
        output.seek(max(0, os.stat(output.fileno()).st_size - _LAST_BYTES))
        lines = [line.strip() for line in output.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return f"{why}; the command printed {f'last: {printable(lines[-1])}' if lines else 'nothing'}"
