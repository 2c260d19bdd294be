"""What lies in a run's folder besides its profiles, told by the files' names.

TensorFlow 2.2 wrote the pages of its own analysis (``HOST.overview_page.pb`` and others) and a trace for a viewer. From
2.3 on the profile itself, ``HOST.xplane.pb``, lies beside them, and later the pages are gone. None of the others is
read here, as all that they hold is computed from the profile.
"""

from __future__ import annotations

from dataclasses import dataclass

from tpuprof.parsers.files.folder_search import names_in
from tpuprof.parsers.files.logdir import Run

MOST_ENTRIES = 10_000

_PAGES = "pages that TensorFlow computed"
_KINDS: tuple[tuple[str, str], ...] = (
    (".hlo_proto.pb", "compiled HLO modules"),
    (".hlo.pb", "compiled HLO modules"),
    (".trace.json.gz", "traces for a viewer"),
    (".trace.json", "traces for a viewer"),
    (".trace", "traces of TensorFlow 2.1 or older"),
    (".overview_page.pb", _PAGES),
    (".input_pipeline.pb", _PAGES),
    (".tensorflow_stats.pb", _PAGES),
    (".kernel_stats.pb", _PAGES),
    (".memory_profile.json.gz", _PAGES),
    (".overview_page.json", _PAGES),
    (".input_pipeline.json", _PAGES),
    (".memory_viewer.json", _PAGES),
    (".op_profile.json", _PAGES),
    (".pod_viewer.json", _PAGES),
)


@dataclass(frozen=True, slots=True)
class FilesBeside:
    """Files of one kind in a run's folder.

    Attributes:
        kind: what they are, in the plural.
        count: how many.
        example: the name of one.
    """

    kind: str
    count: int
    example: str


def files_beside(run: Run) -> tuple[FilesBeside, ...]:
    """The files in a run's folder that are known by their names and are no profiles, by kind.

    () for a single file that was opened alone, and for a folder that cannot be listed. At most `MOST_ENTRIES` names are
    looked at.
    """
    found: dict[str, list[str]] = {}
    for name in sorted(names_in(run.path, MOST_ENTRIES)):
        kind = next((kind for suffix, kind in _KINDS if f".{name}".endswith(suffix)), None)
        if kind is not None:
            found.setdefault(kind, []).append(name)
    return tuple(FilesBeside(kind, len(members), members[0]) for kind, members in found.items())
