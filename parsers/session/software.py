"""What a profile records of the software that ran: versions, builds, flags, and what the profiler was asked for.

Most profiles record little. The plane ``Task Environment`` has stats of the process: those that the profiler's library
knows are ``build_changelist``, ``build_time``, ``build_target``, ``clean_build``, ``command_line_args``,
``system_topology``, ``compilation_task_info`` and ``profile_options`` (a serialised ``ProfileOptions``), beside times
and what the process used, which are no settings. libtpu and JAX write two times alone by default. Other planes may have
stats whose names speak of versions or flags. A compiled module keeps what JAX attached to it (``xla.sdy.meshes``).

Values are fit to print: of what is named like a secret only the name is kept.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from typing import Literal

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.base.urls import masked
from tpuprof.parsers.formats.xspace.metadata import StatValue
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.ops.device import ENVIRONMENT_PLANE

SettingKind = Literal["version", "flag", "profiler", "program", "other"]
"""What a setting is of: a version or build, a flag, the profiler's options, a compiled program; or none of these."""

KINDS: tuple[SettingKind, ...] = ("version", "flag", "program", "profiler", "other")

NOT_RECORDED = (
    "the profile names no version of JAX, libtpu or XLA, and no flag: neither the Task Environment plane nor the "
    "stats of another plane have any"
)
"""Why nothing is known of the software."""

VERSIONS_NOT_RECORDED = "the profile names no version of JAX, libtpu or XLA"

_NO_SETTINGS = pattern(r"time$|^time_|usage|^borg_|^task_bns$|^tpuprof_|_(?:id|snapshot)$")
_BUILD_TIME = "build_time"
_PROFILE_OPTIONS = "profile_options"
_VERSION = pattern(
    r"version|^build_|^clean_build$|changelist|revision|^(?:jax|jaxlib|libtpu|xla|python)$", re.IGNORECASE
)
_OF_FLAGS = pattern(r"flags|args|command_?line|libtpu_init", re.IGNORECASE)
_ELSEWHERE = pattern(r"version|flags$|init_args|^build_|changelist", re.IGNORECASE)
"""Stats of other planes that describe software."""

_FLAG = pattern(r"--?(?=[A-Za-z])([\w.\-]+)(?:=(.*))?", re.DOTALL)
_VARIABLE = pattern(r"([A-Z][A-Z0-9_]+)=(.*)", re.DOTALL)
_COMPILER_FLAG = pattern(r"(?:xla|libtpu|tpu|megascale|jax)_(?!.*(?:token|secret|passw|credential))", re.IGNORECASE)
"""Flags that are no secrets although ``assignment`` or ``sharding_key`` sounds like one."""

_LONGEST = 2_000
_NS = 10**9


@dataclass(frozen=True, slots=True)
class Setting:
    """A version, flag or option by name, and its value as a text fit to print."""

    kind: SettingKind
    name: str
    value: str


def software(planes: Iterable[Plane]) -> tuple[Setting, ...]:
    """The settings that planes of a host's profile record; none twice, by kind and name."""
    found: dict[tuple[SettingKind, str], str] = {}
    for plane in planes:
        is_environment = plane.name == ENVIRONMENT_PLANE
        table = plane.stat_metadata
        if not is_environment and not any(_ELSEWHERE.search(table.name(row)) for row in range(len(table))):
            continue
        for name, value in plane.stats.items():
            if is_environment or _ELSEWHERE.search(name):
                for setting in _settings(name, value):
                    found.setdefault((setting.kind, setting.name), setting.value)
    return in_order(Setting(kind, name, value) for (kind, name), value in found.items())


def in_order(settings: Iterable[Setting]) -> tuple[Setting, ...]:
    """Settings by kind and name."""
    return tuple(sorted(settings, key=lambda one: (KINDS.index(one.kind), one.name)))


def program_settings(program: str, attributes: Mapping[str, bytes]) -> Iterator[Setting]:
    """What was attached to a compiled module for the compiler, but for layouts and fingerprints of its own."""
    for key, value in attributes.items():
        if key.startswith("xla"):
            yield _setting("program", f"{program} {key}", value.decode("utf-8", "replace"))


def _settings(name: str, value: StatValue) -> Iterator[Setting]:
    """The settings in a stat; a text of flags is a setting for each flag."""
    if name == _PROFILE_OPTIONS and isinstance(value, bytes):
        yield from _options(value)
    elif name == _BUILD_TIME and isinstance(value, int):
        yield _setting("version", name, _date(value))
    elif isinstance(value, str) and _OF_FLAGS.search(name) and not _VERSION.search(name):
        yield from _flags(name, value)
    elif value is not None and not isinstance(value, bytes) and (name == _BUILD_TIME or not _NO_SETTINGS.search(name)):
        yield _setting("version" if _VERSION.search(name) else "other", name, f"{value}")


def _flags(name: str, text: str) -> Iterator[Setting]:
    """The flags in a command line or in a variable of the environment; what is no flag stands under the stat's name."""
    try:
        words = shlex.split(text.replace("\0", " "))
    except ValueError:
        words = text.split()
    rest: list[str] = []
    while words:
        word = words.pop(0)
        flag, variable = _FLAG.fullmatch(word), _VARIABLE.fullmatch(word)
        if flag is not None:
            value = flag[2] if flag[2] is not None else words.pop(0) if words and words[0][:1] != "-" else "true"
            yield _setting("flag", flag[1], value)
        elif variable is not None and _OF_FLAGS.search(variable[1]):
            yield from _flags(variable[1], variable[2])
        elif variable is not None:
            yield _setting("flag", variable[1], variable[2])
        else:
            rest.append(word)
    if rest:
        yield _setting("other", name, " ".join(rest))


def _options(body: bytes) -> Iterator[Setting]:
    """The options that the profiler ran with; those that stand at zero, or empty, are not in the bytes."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415

    from tpuprof.parsers.formats.proto.services_pb2 import ProfileOptions  # noqa: PLC0415

    try:
        options = ProfileOptions.FromString(body)
    except DecodeError:
        return
    for field, value in options.ListFields():
        if field.name == "advanced_configuration":
            for key, item in value.items():
                which = item.WhichOneof("value")
                yield _setting("profiler", key, f"{getattr(item, which)}" if which else "")
        elif field.name not in ("session_id", "repository_path", "start_timestamp_ns", "override_hostname"):
            yield _setting("profiler", field.name, f"{value}")


def _setting(kind: SettingKind, name: str, value: str) -> Setting:
    """A setting whose value is fit to print: of one that is named like a secret nothing is left."""
    is_secret = masked(f"?{name}=x") != f"?{name}=x" and not _COMPILER_FLAG.match(name)
    shown = "…" if is_secret and value else masked(value)
    return Setting(kind, printable(name[:_LONGEST]), printable(shown[:_LONGEST]))


def _date(unix: int) -> str:
    """A time of day, given in seconds or in nanoseconds of Unix time."""
    seconds = unix // _NS if abs(unix) > _NS * 100 else unix
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{unix}"
