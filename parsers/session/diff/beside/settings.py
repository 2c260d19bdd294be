"""What the two profiles record of versions, builds, flags and the profiler's options, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing

from tpuprof.parsers.base.text import counted, examples
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.pages.memory.compiled import CompiledModules
from tpuprof.parsers.session.diff.model import Mark, SettingChange
from tpuprof.parsers.session.software import Setting, in_order, program_settings, software


def settings_of(
    files: Mapping[str, HostFile], summaries: Sequence[HostSummary], modules: CompiledModules, programs: Iterable[str]
) -> tuple[Setting, ...]:
    """The settings of a run; where hosts differ, the values of all of them, each once.

    Args:
        modules: the compiled modules; programs: names of those whose attributes count.
    """
    values: dict[tuple[str, str], dict[str, None]] = {}
    kinds: dict[tuple[str, str], Setting] = {}
    for summary in summaries:
        with closing(Trace.open(files[summary.host].path)) as trace:
            for setting in software(trace.planes):
                key = setting.kind, setting.name
                kinds.setdefault(key, setting)
                values.setdefault(key, {})[setting.value] = None
    found = [Setting(kinds[key].kind, key[1], " | ".join(texts)) for key, texts in values.items()]
    return in_order([*found, *_of_programs(modules, set(programs))])


def _of_programs(modules: CompiledModules, names: set[str]) -> list[Setting]:
    """What JAX attached to the main programs; of several with one name, to the first that has it."""
    found: dict[str, Setting] = {}
    for source in modules.sources:
        for number, name in source.modules.names.items():
            module = source.modules.module(number) if name in names else None
            if module is not None:
                for setting in program_settings(name, module.proto.hlo_module.frontend_attributes.map):
                    found.setdefault(setting.name, setting)
    return list(found.values())


def setting_changes(before: Sequence[Setting], after: Sequence[Setting]) -> tuple[SettingChange, ...]:
    """Every setting of both."""
    changes = []
    old, new = ({(one.kind, one.name): one.value for one in side} for side in (before, after))
    for one in in_order({(one.kind, one.name): one for one in (*before, *after)}.values()):
        a, b = (side.get((one.kind, one.name)) for side in (old, new))
        mark: Mark = "new" if a is None else "gone" if b is None else "same" if a == b else "other"
        changes.append(SettingChange(one.kind, one.name, a, b, mark))
    return tuple(changes)


def about_settings(changes: Sequence[SettingChange]) -> list[str]:
    """Sentences on versions and flags that differ, where both profiles record some."""
    sentences = []
    for kind, word in (("version", "the software differs"), ("flag", "the flags differ")):
        told = [change for change in changes if change.kind == kind]
        if not all(any(getattr(change, side) is not None for change in told) for side in ("before", "after")):
            continue
        differing = [change for change in told if change.mark != "same"]
        if differing:
            names = examples([change.name for change in differing])
            sentences.append(f"{word}: {counted(len(differing), 'setting')}, {names}")
    return sentences
