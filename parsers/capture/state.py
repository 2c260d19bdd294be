"""Records in the user's own state folder: JSON files in a folder that nobody else may write to."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import secrets
import stat
from collections.abc import Iterator

from tpuprof.parsers.base.folders import state_folder
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.capture.errors import failure
from tpuprof.parsers.files.places import reason

_LONGEST = 16 << 20
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_HINT = "keep it elsewhere, in a folder of yours: XDG_STATE_HOME=DIR"
_BY_OTHERS = 0o022  # who may write


@contextlib.contextmanager
def records(kind: str) -> Iterator[int]:
    """Opens the folder of one kind of records, and makes it where it is missing; one process at a time is inside.

    Yields:
        The folder's descriptor.

    Raises:
        ProfileError: `state_folder`: it belongs to another user, others may write to it, or the system refuses.
    """
    above = state_folder()
    try:
        if not os.path.isabs(above):
            raise FileNotFoundError(errno.ENOENT, "there is no home folder")
        os.makedirs(above, mode=0o700, exist_ok=True)
        with contextlib.ExitStack() as opened:
            # The group may write to the folder above where an earlier command made it under such a umask.
            outer = _own(opened, os.open(above, _FOLDER), above, stat.S_IWOTH)
            with contextlib.suppress(FileExistsError):
                os.mkdir(kind, 0o700, dir_fd=outer)
            inner = os.open(kind, _FOLDER | os.O_NOFOLLOW, dir_fd=outer)
            folder = _own(opened, inner, os.path.join(above, kind), _BY_OTHERS)
            with contextlib.suppress(OSError):  # not every file system has locks
                fcntl.flock(folder, fcntl.LOCK_EX)
            yield folder
    except OSError as error:
        sentence = f"Nothing can be kept in {printable(above)}: {reason(error)}."
        raise failure("state_folder", sentence, _HINT) from error


def _own(opened: contextlib.ExitStack, folder: int, path: str, forbidden: int) -> int:
    """The descriptor of a folder, which is closed at the end, once it is known to be this user's own."""
    opened.callback(os.close, folder)
    facts = os.fstat(folder)
    is_own = facts.st_uid == os.geteuid()
    if is_own and not facts.st_mode & forbidden:
        return folder
    why = "can be written to by others" if is_own else "belongs to another user"
    sentence = f"{printable(path)} {why}, so what it says of files and servers can't be trusted."
    raise failure("state_folder", sentence, _HINT)


def read_record(record: int) -> object:
    """What a record holds; None where it is damaged, or too long."""
    if os.fstat(record).st_size > _LONGEST:
        return None
    try:
        return json.loads(os.pread(record, _LONGEST, 0))
    except (ValueError, RecursionError):
        return None


def open_record(folder: int, name: str) -> int:
    """A descriptor of a record, to be closed by the caller.

    Raises:
        OSError: there is none, or it can't be opened.
    """
    return os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)


def write_record(folder: int, name: str, content: object) -> int:
    """Replaces a record in one move; returns a descriptor of it, to be closed by the caller.

    Raises:
        OSError: it can't be written; the earlier record is as it was.
    """
    partial = f".{name}.{secrets.token_hex(4)}"
    record = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        with open(record, "w", encoding="utf-8", closefd=False) as file:
            json.dump(content, file)
        os.replace(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.close(record)
        os.unlink(partial, dir_fd=folder)
        raise
    return record
