"""Opens anything: turns a path into runs, and a run into host files, and says what was searched and what is wrong.

TensorBoard's layout is ``LOGDIR/plugins/profile/RUN/HOST.xplane.pb``. Any part of such a path is accepted, any ancestor
of it, a glob, and profile files in an ordinary folder. Only folders are read: a profile is opened no further than to
see that it may be, and nothing is ever written.

Names and paths are kept as they are on disk (`surrogateescape` for bytes that are no UTF-8). Sentences, hints, subjects
of problems and the lines of `Logdir.searched` are for printing and have gone through `parsers.base.text.printable`.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_UNREADABLE, Problem, ProfileError
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import PATHS, counted, examples, natural_key, nearest_hint, printable
from tpuprof.parsers.base.urls import printable_url, scheme_of
from tpuprof.parsers.files import folder_search
from tpuprof.parsers.files.file_kinds import copied_name, known
from tpuprof.parsers.files.folder_search import Folder, SearchLimits, Walk
from tpuprof.parsers.files.places import FIRST_BYTES, LAYOUT_HINT, Filesystem, HostFile, is_archive, reason, unreadable
from tpuprof.parsers.files.runs import (
    AND,
    Run,
    folder_part,
    is_named_after_time,
    may_be_one,
    newest_first,
    together,
    with_neighbours,
)

__all__ = ["HostFile", "Logdir", "Run", "is_remote", "local_path", "names_several", "newest_first", "open_logdir"]

_SAYS_NOTHING = pattern(r"(?i)(te?mp|downloads?|desktop|documents|home|root|data|logs?|profiles?|traces?)?")


@dataclass(frozen=True, slots=True)
class Logdir:
    """What a path led to.

    Attributes:
        query: the path as it was given.
        runs: newest first by `Run.time`, then by name; never empty.
        searched: plain lines on what was looked for where, and which bound cut the search short.
        problems: those that belong to no run, such as folders that may not be listed.
    """

    query: str
    runs: tuple[Run, ...]
    searched: tuple[str, ...]
    problems: tuple[Problem, ...]

    def find_run(self, name: str | None = None) -> Run:
        """The run of that name, or the newest for `None`, even when its only files have problems.

        Tried in turn: the exact name, the exact folder name, a prefix of either. The first that fits must fit one run.
        Several exact names with ``+`` between them are one run of the hosts of all.

        Raises:
            ProfileError: `unknown_run`, exit code 3, with the nearest of the names that there are.
        """
        if name is None and self.runs:
            return self.runs[0]
        wanted = (name or "").rstrip("/")
        parts = [run for part in wanted.split(AND) for run in self.runs if run.name == part]
        if len(parts) > 1 and len(parts) == wanted.count(AND) + 1 and may_be_one(parts):
            return together(parts)
        attempts = (
            [run for run in self.runs if run.name == wanted],
            [run for run in self.runs if folder_part(run.name) == wanted],
            [run for run in self.runs if run.name.startswith(wanted)],
            [run for run in self.runs if folder_part(run.name).startswith(wanted)],
        )
        fits = next(filter(None, attempts), [])
        if len(fits) == 1:
            return fits[0]
        trouble = "fits more than one run" if fits else "is not the name of a run"
        names = examples([run.name for run in fits or self.runs], 12) or "there is none"
        sentence = f"{printable(wanted) or 'An empty name'} {trouble} in {printable(self.query)}: {names}."
        known = [] if fits else [run.name for run in self.runs]
        one, dots, other = map(printable, wanted.partition(".."))
        several = f"tpuprof-tui diff --before {one} --after {other} compares two runs" if dots else ""
        hint = several or nearest_hint(wanted, known, "give a run's name or its beginning")
        raise ProfileError("unknown_run", sentence, hint, EXIT_NOT_FOUND)


def open_logdir(path: str | os.PathLike[str], limits: SearchLimits = folder_search.DEFAULT_LIMITS) -> Logdir:
    """Finds the runs that `path` leads to.

    `path` may be relative, start with ``~``, end with a slash, be a glob (``*``, ``?``, ``[…]``, ``**``) where no file
    has that very name, a profile file, a file beside one, a run folder, ``plugins/profile``, ``plugins``, the logdir,
    any folder above it, or an archive of one (`parsers.files.archives`); or a URL of any of these but archives
    (`parsers.files.remote.folders`). Every folder with profile files in it is a run; one reached twice is listed once.
    A file that cannot be used is a problem of its run and never in the way of the others.

    Raises:
        ProfileError: `not_found` (exit code 3) where no profile file is, with what was searched and what is there
            instead; `unreadable` (4) for a folder that may not be listed. For a file that is not a profile by its name
            and can't be read either, the code of its problem (3 or 4). For URLs also what
            `parsers.files.remote.files.files_of` raises, `no_permission` and `connection` (4).
    """
    query = os.fspath(path)
    if PATHS in query:
        found = [_opened_together(each, limits) for each in _by_folder(query.split(PATHS))]
        runs = {run.path: run for logdir in found for run in logdir.runs}
        lines = dict.fromkeys(line for logdir in found for line in logdir.searched)
        problems = dict.fromkeys(problem for logdir in found for problem in logdir.problems)
        words = " ".join(logdir.query for logdir in found)
        return _as_one(Logdir(words, tuple(newest_first(runs.values())), tuple(lines), tuple(problems)))
    if is_remote(query):
        from tpuprof.parsers.files.remote.folders import remote_filesystem, remote_limits  # noqa: PLC0415 - for URLs alone

        place, where, root = remote_filesystem(query)
        logdir = _Search(printable_url(query), place, remote_limits(limits)).open(where, root)
        told = (replace(run, problems=(*place.redirects, *run.problems)) for run in logdir.runs)
        return replace(logdir, runs=tuple(told))
    where = _usable_path(query)
    if is_archive(where):
        return _in_archive(query, where, limits)
    return _Search(query, Filesystem(), limits).open(where, "/" if where.startswith("/") else "")


def _by_folder(paths: Sequence[str]) -> list[list[str]]:
    """Paths, with profile files of one folder together, as a shell writes them for a pattern."""
    groups = dict[str, list[str]]()
    for path in dict.fromkeys(paths):
        folder, name = os.path.split(local_path(path))
        is_file = folder_search.is_profile(name) and os.path.isfile(local_path(path))
        groups.setdefault(os.path.join(folder, "*") if is_file else path, []).append(path)
    return [*groups.values()]


def _opened_together(paths: Sequence[str], limits: SearchLimits) -> Logdir:
    if len(paths) == 1:
        return open_logdir(paths[0], limits)
    return _Search(" ".join(paths), Filesystem(), limits).open_folders([], [local_path(path) for path in paths])


def _as_one(logdir: Logdir) -> Logdir:
    """What several paths, or a pattern, lead to: one run where their runs, named after a time, may be one capture."""
    are_captures = all(map(is_named_after_time, logdir.runs))
    return replace(logdir, runs=(together(logdir.runs),)) if are_captures and may_be_one(logdir.runs) else logdir


def _in_archive(query: str, where: str, limits: SearchLimits) -> Logdir:
    """The runs in an archive, whose profiles are unpacked into the cache folder."""
    from tpuprof.parsers.files.archives import unpacked  # noqa: PLC0415 - for archives alone

    archive = unpacked(where)
    logdir = _Search(query, Filesystem(), limits).open(archive.folder, "")
    line = f"{printable(where)} is an archive: unpacked {counted(archive.files, 'file')} of it into {archive.folder}"
    return replace(logdir, searched=(printable(line), *logdir.searched), problems=(*archive.problems, *logdir.problems))


# --- from the query to paths


def is_remote(query: str) -> bool:
    """Whether a query is a URL that leads off this machine."""
    return scheme_of(query) not in ("", "file") and not os.path.lexists(query)


def names_several(query: str) -> bool:
    """Whether a query is several paths or a pattern, and so means all the runs that it leads to."""
    return PATHS in query or (folder_search.MAGIC.search(query) is not None and not os.path.lexists(local_path(query)))


def local_path(query: str) -> str:
    """A query as a local path, whatever it leads to: ``~`` and ``file://`` resolved, slashes at the end gone."""
    if scheme_of(query) == "file" and not os.path.lexists(query):
        from urllib.parse import unquote  # noqa: PLC0415 - for such addresses alone

        query = unquote(query.partition("://")[2], errors="surrogateescape").replace("\0", "")
    return os.path.expanduser(query).rstrip("/") or "/"


def _usable_path(query: str) -> str:
    """The local path that a query stands for.

    Raises:
        ProfileError: `not_found`, for one that can lead nowhere.
    """
    if not query:
        raise ProfileError("not_found", "The path is empty.", "is a shell variable unset?", EXIT_NOT_FOUND)
    try:
        usable = b"\0" not in os.fsencode(query)
    except UnicodeEncodeError:
        usable = False
    if not usable:
        raise ProfileError(
            "not_found", f"{printable(query)} cannot be the name of a file.", LAYOUT_HINT, EXIT_NOT_FOUND
        )
    where = local_path(query)
    try:
        os.path.abspath(where)
    except OSError as error:
        sentence = "The current folder is gone."
        raise ProfileError("not_found", sentence, "cd to one that exists", EXIT_NOT_FOUND) from error
    return where


# --- from folders to runs


@dataclass(frozen=True, slots=True)
class _Search:
    """One search in one place; `query` is the path as it was given, fit to print where it is a URL."""

    query: str
    place: Filesystem
    limits: SearchLimits

    def open(self, where: str, root: str) -> Logdir:
        """What a path leads to; a glob is one below `root` (``/``, empty, or the beginning of a URL)."""
        if self.place.exists(where):
            return self.open_folders([where], []) if self.place.is_folder(where) else self.open_file(where)
        if not folder_search.MAGIC.search(where[len(root) :]):
            raise self.place.missing(where)
        matches, lines = folder_search.expand_glob(
            root, where[len(root) :], partial(self.place.walk, self.limits), self.place.exists
        )
        folders = [match for match in matches if self.place.is_folder(match)]
        others = sorted(set(matches) - set(folders), key=natural_key)
        files = folder_search.readable(others)
        if folders or files:
            logdir = _as_one(self.open_folders(folders, files))
            return replace(logdir, searched=tuple(dict.fromkeys((*logdir.searched, *lines))))
        there = f"matches {examples(others)}, whose names are not those of profiles" if others else "matches nothing"
        bounds = "".join(f"; {line}" for line in lines)
        sentence = f"The pattern {printable(where)} {there}{bounds}."
        raise ProfileError("not_found", sentence, LAYOUT_HINT, EXIT_NOT_FOUND)

    def open_folders(self, folders: Sequence[str], files: Sequence[str]) -> Logdir:
        """Runs below folders, and runs of single files (as a glob gives them both)."""
        walk = self.place.walk(self.limits)
        walk.search(folders)
        run_folders = [folder for folder in walk.folders if folder.profiles()]
        if not files and not run_folders and len(walk.denied) == len(walk.folders):
            raise unreadable(*walk.denied[0])
        lines = []
        if folders:
            profiles = counted(sum(len(folder.profiles()) for folder in run_folders), "profile file")
            listed = counted(len(walk.folders), "folder")
            lines.append(
                f"looked for *.xplane.pb, *.xplane.pb.gz and *.xplane.riegeli in {listed} "
                f"under {examples(folders)}: {profiles} in {counted(len(run_folders), 'run')}"
            )
        chosen: dict[str, list[str]] = defaultdict(list)
        for file in files:
            chosen[os.path.dirname(file)].append(os.path.basename(file))
        singles = [(folder, names) for parent, names in chosen.items() if (folder := walk.list_folder(parent))]
        if not run_folders and not singles:
            raise _nothing_found(self.query, walk)
        idle = [f for f in walk.folders if f.is_run_folder() and not f.profiles() and not f.subfolders]
        runs = [self.run(folder) for folder in run_folders + idle]
        runs += [self.run(folder, names) for folder, names in singles]
        lines += [_chosen_line(singles)] if singles else []
        places = [folder.path for folder in run_folders + idle + [folder for folder, _ in singles]]
        return _logdir(self.query, runs, places, lines, walk)

    def open_file(self, where: str) -> Logdir:
        """One file: a profile, whatever it is called; for what is known to lie beside a profile, the folder."""
        parent, name = os.path.split(where)
        kind = folder_search.kind_of(name)
        folder = self.place.walk(self.limits).list_folder(parent) or Folder(parent)
        if kind in folder_search.KINDS:
            if kind != "events" and not folder.profiles():  # event files lie in the logdir, three levels up
                sentence = (
                    f"{printable(where)} is {folder_search.KINDS[kind]}, and no profile (*.xplane.pb) is beside it."
                )
                raise ProfileError("not_found", sentence, LAYOUT_HINT, EXIT_NOT_FOUND)
            logdir = self.open_folders([parent or "."], [])
            line = f"{printable(name)} is {folder_search.KINDS[kind]}: opened its folder"
            return replace(logdir, searched=(line, *logdir.searched))
        run = self.run(folder, [name])
        for other in folder.stand_ins(name) if [problem.code for problem in run.problems] == ["empty_file"] else ():
            logdir = self.open_file(os.path.join(parent, other))
            if logdir.runs[0].hosts:
                line = f"{printable(name)} holds 0 bytes: opened {printable(other)} beside it"
                return replace(logdir, searched=(line, *logdir.searched))
        if kind == "other" and not run.hosts:
            problem = run.problems[0]
            exit_code = EXIT_NOT_FOUND if problem.code == "dangling_link" else EXIT_UNREADABLE
            raise ProfileError(problem.code, problem.sentence, problem.hint, exit_code)
        begin = self.place.begin(where) if kind == "other" else None
        if begin is not None and (something_else := known(name, begin)) is not None:
            raise something_else.error(where)
        if begin is not None and begin[:1] not in FIRST_BYTES:
            sentence = f"{printable(where)} is not a profile: neither its name (*.xplane.pb) nor its first byte fits."
            raise ProfileError("not_found", sentence, LAYOUT_HINT, EXIT_NOT_FOUND)
        lines = [_chosen_line([(folder, [name])])]
        return _logdir(self.query, [run], [folder.path], lines, self.place.walk(self.limits))

    def run(self, folder: Folder, chosen: Sequence[str] = ()) -> Run:
        """The run in a folder; of the chosen files only, and without notes on the rest, where any are named."""
        usable: list[HostFile] = []
        problems: list[Problem] = []
        newest = 0.0
        names = sorted(chosen or folder.profiles(), key=natural_key)
        paths = [os.path.join(folder.path, name) for name in names]
        while paths:
            path = paths.pop(0)
            item = self.place.inspect(path)
            if isinstance(item, HostFile):
                usable.append(item)
            else:
                problems.append(item)
                newest = max(newest, self.place.modified(path))
                if not chosen and item.code == "empty_file":
                    others = [os.path.join(folder.path, name) for name in folder.stand_ins(os.path.basename(path))]
                    paths += [other for other in others if os.path.basename(other) not in names and other not in paths]
        hosts, doubles = _one_per_host(usable)
        problems = [_read_instead(problem, hosts) for problem in problems]
        notes = [] if chosen else _notes(folder)
        name = self.place.name(folder.path)
        here, home = folder_search.absolute(folder.path), os.path.abspath(os.path.expanduser("~"))
        says_nothing = here == home or _SAYS_NOTHING.fullmatch(os.path.basename(here))
        if not name or (chosen and not folder.is_run_folder() and says_nothing):
            name = folder_search.host_name(self.place.name(names[0])) or name or folder_search.NO_HOST_NAME
        path = os.path.join(folder.path, chosen[0]) if len(chosen) == 1 else folder.path or "."
        return Run(name, path, hosts, (*problems, *doubles, *notes), newest or folder.modified)


def _one_per_host(files: Iterable[HostFile]) -> tuple[tuple[HostFile, ...], list[Problem]]:
    """Leaves out what would count a host twice: links to a file of the same run, and copies in other formats."""
    by_host: dict[str, HostFile] = {}
    by_identity: dict[tuple[int, int], HostFile] = {}
    problems = []
    for file in sorted(files, key=_told_by):
        if first := by_host.get(file.host) or by_identity.get(file.identity):
            left_out, used = printable(file.path), printable(os.path.basename(first.path))
            problems.append(Problem("duplicate_host", left_out, f"{left_out} is left out: {used} is the same host."))
            continue
        by_host[file.host] = file
        if file.identity[1]:
            by_identity[file.identity] = file
    return tuple(sorted(by_host.values(), key=lambda file: natural_key(file.host))), problems


def _told_by(file: HostFile) -> tuple[bool, int, bool]:
    """Sorts files of a host: the most informative one, which is also the fastest to read, comes first."""
    is_trace = folder_search.is_trace(os.path.basename(file.path))
    return file.linked, 2 * is_trace + file.path.endswith(folder_search.RIEGELI), file.packed


def _read_instead(problem: Problem, hosts: Iterable[HostFile]) -> Problem:
    """An empty file's problem says so where another of the same host is read: one in records, which knows no 2 GB, or
    a trace.
    """
    name = folder_search.host_name(os.path.basename(problem.subject))
    other = next((host.path for host in hosts if host.host == name), None)
    if problem.code != "empty_file" or other is None:
        return problem
    sentence = f"{problem.subject} holds 0 bytes; {printable(os.path.basename(other))} beside it is read instead."
    return replace(problem, sentence=sentence, hint="")


def _notes(folder: Folder) -> list[Problem]:
    """What to know of a folder besides its profiles: that there are none, or that XProf keeps files there.

    Saved HLO modules are XProf's only where other files of its own are: a profiler may write them itself.
    """
    notes = []
    shown = printable(folder.path)
    if folder.refusal is not None:  # what it holds is not known
        sentence = f"The run folder {shown} cannot be read: {reason(folder.refusal)}."
        notes.append(Problem("unreadable_folder", shown, sentence, f"check its permissions: ls -ld {shown}"))
    elif not folder.profiles():
        content = folder.holds()
        holds = f"holds no profile, only {examples(content)}" if content else "is empty"
        hint = "a profile is written when the capture ends: check whether stop_trace() ran, and read the program's log"
        notes.append(Problem("no_profile", shown, f"The run folder {shown} {holds}.", hint))
    if folder.files["cache"]:
        files = folder.files["cache"] + folder.files["hlo"]
        sentence = f"XProf keeps {counted(len(files), 'file')} in {shown} ({examples(files)}); they are not touched."
        notes.append(Problem("xprof_cache", shown, sentence))
    return notes


def _logdir(query: str, runs: Sequence[Run], folders: Sequence[str], lines: Sequence[str], walk: Walk) -> Logdir:
    """Names the runs apart, puts the newest first, and adds what the search could not reach."""
    names = _distinct_names([run.name for run in runs], [folder_search.absolute(folder) for folder in folders])
    named = [replace(run, name=name) for run, name in zip(runs, names, strict=True)]
    problems = []
    if walk.denied:
        path, error = walk.denied[0]
        more = f" and {counted(len(walk.denied) - 1, 'further folder')}" if len(walk.denied) > 1 else ""
        sentence = f"{printable(path)}{more} could not be listed: {reason(error)}."
        problems.append(Problem("unreadable_folder", printable(path), sentence, "check its permissions"))
    return Logdir(query, tuple(with_neighbours(named)), (*lines, *walk.bounds_hit()), tuple(problems))


def _distinct_names(names: Sequence[str], folders: Sequence[str]) -> list[str]:
    """Puts the relative logdir before names that several runs share, or the whole relative path if that won't do."""
    groups: dict[str, list[int]] = defaultdict(list)
    for index, name in enumerate(names):
        groups[name].append(index)
    result = list(names)
    for name, members in groups.items():
        if len(members) == 1:
            continue
        logdirs = [_logdir_of(folders[index]) for index in members]
        top = os.path.commonpath(logdirs)
        longer = [os.path.normpath(os.path.join(os.path.relpath(logdir, top), name)) for logdir in logdirs]
        if len(set(longer)) < len(longer):
            longer = [os.path.relpath(folders[index], top) for index in members]
        for index, text in zip(members, longer, strict=True):
            result[index] = text
    return result


def _logdir_of(folder: str) -> str:
    """The logdir of a run folder: what is above ``plugins/profile``, or else just above the folder."""
    above = os.path.dirname(folder)
    return os.path.dirname(os.path.dirname(above)) if Folder(folder).is_run_folder() else above


# --- what to say


def _nothing_found(query: str, walk: Walk) -> ProfileError:
    """For folders without one profile file: how far the search went, what is there, and what that suggests."""
    first = walk.folders[0]
    content = first.holds()
    holds = f"there is {examples(content, 6)}" if content else "the folder is empty"
    bounds = "".join(f"; {line}" for line in walk.bounds_hit())
    folders = counted(len(walk.folders), "folder")
    sentence = f"No profile (*.xplane.pb) in {printable(query)}: searched {folders}; {holds}{bounds}."
    kinds = {kind for folder in walk.folders for kind, names in folder.files.items() if names}
    run_folders = [folder.path for folder in walk.folders if folder.is_run_folder()]
    others = [(folder.path, name) for folder in walk.folders for name in folder.files["other"]]
    copies = [os.path.join(path, name) for path, name in others if copied_name(name) is not None]
    old = [
        os.path.join(path, name)
        for path, name in others
        if folder_search.sibling_kind(name) in folder_search.OF_TENSORFLOW
    ]
    if copies:
        hint = f"{printable(copies[0])} is a copy that is not finished, or broke off: wait for its end or copy it again"
    elif old:
        hint = f"{printable(old[0])} is a page or trace that TensorFlow 2.2 or older computed, without its profile: "
        hint += "capture again with a newer one, or open it in a TensorBoard of that time"
    elif arrays := [path for folder in walk.folders for path in folder.pprofs()]:
        hint = f"{printable(arrays[0])} is a device memory profile by its name: name it to open it"
    elif run_folders:
        hint = f"there is a run folder ({examples(run_folders, 1)}): did the capture end, with stop_trace()?"
    elif "events" in kinds:
        hint = "there are TensorBoard event files, but no profile: was jax.profiler.start_trace() called?"
    elif walk.denied:
        hint = f"{counted(len(walk.denied), 'folder')} could not be listed, such as {printable(walk.denied[0][0])}"
    else:
        hint = LAYOUT_HINT
    return ProfileError("not_found", sentence, hint, EXIT_NOT_FOUND)


def _chosen_line(chosen: Sequence[tuple[Folder, Sequence[str]]]) -> str:
    files = [os.path.join(folder.path, name) for folder, names in chosen for name in names]
    rest = sum(len(set(folder.profiles()) - set(names)) for folder, names in chosen)
    line = f"opened only {examples(files)}"
    return f"{line}; left out {counted(rest, 'profile file')} beside: open the folder for all hosts" if rest else line
