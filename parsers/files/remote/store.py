"""The folder of copies of remote profiles: names, locks, and a bound on all of them together.

It is ``$XDG_CACHE_HOME/tpuprof-tui/remote``. A copy's name is made of hashes: one of the address, without what logs in,
and one of the original's size and version. What is locked is in use, and never removed. The access time of a copy says
when it was last used, its modification time when it was last compared with the original.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from urllib.parse import parse_qsl

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.folders import cache_folder
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.base.urls import split, without_login

BOUND_VARIABLE = "TPUPROF_CACHE_BYTES"
DEFAULT_BOUND = 20_000_000_000
_ENDING = ".part"
_ONCE = "once-"
_POLL_SECONDS = 0.1
_SPARE_BYTES = 64 << 20  # left free on the disk while there are copies to remove instead
_COPY_NAME = re.compile(r"[0-9a-f]{32}-[0-9a-f]{16}")
_SIGNATURES = frozenset({"x-amz-signature", "x-goog-signature", "signature", "sig"})
# what signing adds, which is another each time: Amazon's and Google's, now and before, CloudFront's, Azure's
_SIGNING = re.compile(
    r"x-(?:amz|goog)-(?:algorithm|content-sha256|credential|date|expires|security-token|signature|signedheaders)"
    r"|awsaccesskeyid|googleaccessid|key-pair-id|expires|policy|signature|sig"
    r"|s[eprvt]|spr|sip|ss|srt|skoid|sktid|skt|ske|sks|skv",
    re.IGNORECASE,
)
_UNLOCKABLE = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})


def cache_bound() -> int:
    """Bytes that all copies may take together.

    Raises:
        ProfileError: ``TPUPROF_CACHE_BYTES`` is no number; exit code 2.
    """
    text = os.environ.get(BOUND_VARIABLE, "").strip()
    if not text:
        return DEFAULT_BOUND
    if not re.fullmatch(r"[0-9][0-9_]{0,30}", text):
        sentence = f"{BOUND_VARIABLE} is {printable(text[:40])}, which is no number of bytes."
        raise ProfileError("usage", sentence, f"{BOUND_VARIABLE}={DEFAULT_BOUND} is the default", EXIT_USAGE)
    return int(text.replace("_", ""))


def url_key(url: str) -> str:
    """Hash of an address, without password; of a signed one without what signing adds, which is another each time.

    Anything else may tell one file from another: a parameter that begins like one of those, a token, the user.
    """
    begin, path, query = split(url)
    pairs = parse_qsl(query.lstrip("?"), keep_blank_values=True)
    if any(name.lower() in _SIGNATURES for name, _ in pairs):
        pairs = [pair for pair in pairs if not _SIGNING.fullmatch(pair[0])]
    login, at, _ = begin.partition("://")[2].rpartition("@")
    user = login.partition(":")[0] + at
    return _hash(f"{user}{without_login(begin)}{path}?{pairs}")[:32]


def version_key(size: int | None, version: str) -> str:
    """Hash of what tells one version of a file from another."""
    return _hash(f"{size} {version}")[:16]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


class Store:
    """The folder, as one process uses it; others may do so at the same time."""

    def __init__(self) -> None:
        self.folder = os.path.join(cache_folder(), "remote")
        self.bound = cache_bound()

    def copies(self, key: str = "") -> list[tuple[str, os.stat_result]]:
        """Names of whole copies, of one address or of all."""
        return [copy for copy in self._entries() if copy[0].startswith(key) and _COPY_NAME.fullmatch(copy[0])]

    def use(self, name: str, size: int | None = None, compared: bool = False) -> int | None:
        """Opens a copy and locks it against removal; None where it is not there, or not of that size.

        Args:
            compared: it was like its original just now.
        """
        try:
            descriptor = os.open(os.path.join(self.folder, name), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        if size is not None and os.fstat(descriptor).st_size != size:
            os.close(descriptor)
            self.remove(name)
            return None
        self.keep(descriptor, compared)
        return descriptor

    def keep(self, descriptor: int, compared: bool) -> None:
        """Locks an open copy against removal, and notes the time."""
        _lock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        now = time.time()
        with contextlib.suppress(OSError):
            os.utime(descriptor, (now, now if compared else os.fstat(descriptor).st_mtime))

    def distrust(self, name: str) -> None:
        """Has a copy compared before its next use."""
        with contextlib.suppress(OSError):
            os.utime(os.path.join(self.folder, name), (time.time(), 0))

    @contextlib.contextmanager
    def begun(self, name: str, poll: Callable[[], None]) -> Iterator[tuple[str, int]]:
        """What was fetched so far of a copy, as path and descriptor, locked; waits while another process has it.

        While it waits it calls `poll` now and then, and what that raises ends it.
        """
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        path = os.path.join(self.folder, name + _ENDING)
        descriptor = -1
        try:
            while descriptor < 0:
                poll()
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
                locked = _lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if locked is None:  # no locks on this file system: a file for this process alone
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(path)
                    os.close(descriptor)
                    descriptor, path = tempfile.mkstemp(_ENDING, _ONCE, self.folder)
                elif not (locked and _is_named(descriptor, path)):  # taken, or renamed just now
                    os.close(descriptor)
                    descriptor = -1
                    time.sleep(0 if locked else _POLL_SECONDS)
            yield path, descriptor
        finally:
            if descriptor >= 0:
                nothing = os.fstat(descriptor).st_size == 0 or os.path.basename(path).startswith(_ONCE)
                if nothing and _is_named(descriptor, path):
                    os.unlink(path)
                os.close(descriptor)

    def finish(self, partial: str, descriptor: int, name: str) -> int:
        """Gives a whole file its name; returns a descriptor of the copy, locked against removal."""
        os.fsync(descriptor)
        os.rename(partial, os.path.join(self.folder, name))
        self.keep(descriptor, compared=True)
        return os.dup(descriptor)

    def nameless(self) -> int:
        """A new file whose room is free again when it is closed."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        descriptor, path = tempfile.mkstemp(_ENDING, _ONCE, self.folder)
        os.unlink(path)
        return descriptor

    def make_room(self, size: int = 0, name: str = "") -> bool:
        """Removes what was used longest ago until a copy of `size` bytes fits beside the rest.

        Args:
            name: of the copy; what was fetched of it counts as part of `size`.

        Returns:
            Whether it does: not one larger than the bound, nor where others in use leave too little.

        Raises:
            OSError: ENOSPC where the disk has too little room as well.
        """
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        entries = self._entries()
        begun = sum(status.st_size for entry, status in entries if entry == name + _ENDING)
        others = [(status.st_atime, status.st_size, entry) for entry, status in entries if entry != name + _ENDING]
        total = sum(length for _, length, _ in others) + size
        free = shutil.disk_usage(self.folder).free
        to_come = max(size - begun, 0)
        for _, length, entry in sorted(others) if size <= self.bound else ():
            if total <= self.bound and (not to_come or to_come + _SPARE_BYTES <= free):
                break
            if self.remove(entry):
                total -= length
                free += length
        if to_come > shutil.disk_usage(self.folder).free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return total <= self.bound

    def remove(self, name: str) -> bool:
        """Removes a file unless it is in use; whether it did."""
        path = os.path.join(self.folder, name)
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                if _lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB) is not False:
                    os.unlink(path)
                    return True
            finally:
                os.close(descriptor)
        return False

    def _entries(self) -> list[tuple[str, os.stat_result]]:
        """All regular files of the folder: copies, beginnings of copies, and what does not belong there."""
        files = []
        with contextlib.suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_file(follow_symlinks=False):
                        files.append((entry.name, entry.stat(follow_symlinks=False)))
        return files


def _lock(descriptor: int, how: int) -> bool | None:
    """Locks a file: False where another has it, None on file systems without locks."""
    try:
        fcntl.flock(descriptor, how)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _UNLOCKABLE:
            return None
        raise
    return True


def _is_named(descriptor: int, path: str) -> bool:
    """Whether a path still leads to the open file."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    return False
