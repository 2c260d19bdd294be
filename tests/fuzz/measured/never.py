"""Branches of readers that no input reaches, by the reason: file, and how the line begins at which they part."""

from __future__ import annotations

import re
from collections.abc import Mapping

_NEVER = """
what an argument may not be, and no reader passes
  parsers/formats/xspace/core/op_pass.py: if columns.metadata_id.dtype
files that change or go while they are read, and systems that refuse: see test_faults.py, test_problems.py
  parsers/formats/xspace/source.py: if len(data) < length
  parsers/formats/xspace/walk.py: if not data
  parsers/formats/xspace/spool.py: if not part
  parsers/formats/hlo/files.py: if not stat.S_ISREG
  parsers/files/archives.py: if kept is None
  parsers/files/archives.py: if is_unwritable
  parsers/files/places.py: if error.errno
  parsers/files/places.py: if linked and error.errno
  parsers/files/logdir.py: if walk.denied
  parsers/files/logdir.py: elif walk.denied
  parsers/files/logdir.py: if not files and not run_folders
  parsers/files/logdir.py: if folder.refusal
  parsers/files/folder_search.py: if status.st_ino
files on other machines: see tests/parsers/files/remote
  parsers/formats/xspace/source.py: if scheme_of(path)
more bytes, files, folders or steps than the fuzzer makes
  parsers/formats/hlo/files.py: if size > LARGEST_BYTES
  parsers/formats/hlo/files.py: if stopped.stop
  parsers/files/archives.py: if seen >= _MOST_MEMBERS
  parsers/files/folder_search.py: if len(self.folders) >=
  parsers/files/folder_search.py: if not self.may_take
  parsers/files/folder_search.py: if self._full
  parsers/files/folder_search.py: if self._unlisted
  parsers/formats/pprof/messages.py: if count > MOST
  parsers/formats/xspace/chrome/threads.py: if self._room < 0
  parsers/formats/xspace/chrome/threads.py: if len(self._typed) > _PENDING
  parsers/formats/xspace/chrome/threads.py: if self._pending >=
  parsers/formats/xspace/chrome/translate.py: if threads.slices in MOST
  parsers/formats/hlo/texts.py: if number > _MOST
  parsers/formats/hlo/reach.py: if len(known) >= MOST
  parsers/formats/hlo/graph.py: for _ in range(_DEEPEST)
  parsers/formats/xspace/riegeli/records.py: if chunk.records >
  parsers/memory/modules/space_memory.py: for _ in range(_MOST_STEPS)
  parsers/formats/xspace/core/op_pass.py: if 8 * depth >=
  parsers/memory/oom/read/reports.py: if self._characters +
  parsers/memory/oom/read/blocks.py: if sum(each
"""
NEVER: Mapping[str, list[tuple[str, str]]] = {
    why: [(file, begins) for file, _, begins in (line.strip().partition(": ") for line in lines.splitlines())]
    for why, lines in re.findall(r"^(\w.*)\n((?:  .*\n)+)", _NEVER, re.MULTILINE)
}
