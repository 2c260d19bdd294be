"""Files behind a URL: the little of fsspec that is used, with types, and what goes wrong there in plain words.

fsspec and its drivers (gcsfs, aiohttp, s3fs, …) are imported when a path with a scheme is opened, never before.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import re
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, Protocol, TypeVar
from urllib.parse import urljoin, urlsplit

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_UNREADABLE, ProfileError
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.base.urls import is_http, masked, printable_url, request_url, scheme_of, split

Facts = Mapping[str, object]
"""What a driver says of a file: ``type``, ``size``, ``name``, and under names of its own when it changed."""

_Answer = TypeVar("_Answer")

# These give other files a new shape or read them from this machine; what they lead to can be named by itself.
_WRAPPERS = frozenset({"filecache", "simplecache", "blockcache", "cached", "dir", "reference", "generic", "zip", "tar"})
_REFUSED = _WRAPPERS | frozenset({"libarchive", "data", "local", "asynclocal", "arrow_hdfs", "root", "async_wrapper"})
_DRIVERS = {
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("http", "https"), "aiohttp"),
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("az", "abfs", "abfss"), "adlfs"),
}
_NO_EXTRA = frozenset({"s3fs", "adlfs"})  # no extra of ours brings these
_LOGINS = {
    **dict.fromkeys(("gs", "gcs"), "log in with: gcloud auth application-default login"),
    "s3": "log in with: aws configure (or aws sso login)",
}
_NO_LOGIN = frozenset({"NoCredentialsError", "PartialCredentialsError", "DefaultCredentialsError", "RefreshError"})
_VERSIONS = ("etag", "generation", "md5hash", "crc32c", "content-md5", "digest", "versionid", "last-modified")
_TIMES = ("mtime", "updated", "lastmodified", "last-modified", "last_modified", "modified", "created")
_LOGGERS = ("fsspec", "gcsfs", "s3fs", "adlfs", "aiohttp", "asyncio", "google", "botocore", "aiobotocore", "azure")
_CONNECT_SECONDS = 10
_SILENCE_SECONDS = 30
_POLL_SECONDS = 0.1  # between two looks at whether a silent server is still wanted
WORD_SECONDS, ANSWER_SECONDS = 5.0, 30.0
"""When a server that does not answer is named, and when it is given up."""

WAITING = "tpuprof-waiting"
"""The logger that is told of servers that do not answer."""

_IDENTITY = {"Accept-Encoding": "identity"}


class RemoteStream(Protocol):
    """An open file. Over HTTP `read` may give less than what was asked for."""

    def read(self, length: int) -> bytes:
        """The next bytes; none at the end."""

    def close(self) -> None: ...


class RefusedRedirect(ValueError):
    """A server redirects to where nothing is asked for."""


class RemoteFiles(Protocol):
    """An fsspec file system, as far as it is used here."""

    def info(self, path: str) -> Facts:
        """What a file system says about a file or a folder."""

    def ls(self, path: str, detail: bool) -> list[Facts]: ...

    def open(self, path: str, mode: str, **options: object) -> RemoteStream: ...

    def invalidate_cache(self) -> None: ...


def files_of(url: str) -> RemoteFiles:
    """The file system that a URL's scheme names, ready to be asked.

    Raises:
        ProfileError: `driver_missing` where fsspec or its driver is not installed; `unsupported_scheme`; what the
            driver says when it can't log in.
    """
    scheme = scheme_of(url)
    for name in _LOGGERS:  # without a handler of their own their errors would be printed over the screen
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
    try:
        fsspec = importlib.import_module("fsspec")
    except ImportError as error:
        raise _driver_missing(url, "fsspec") from error
    if scheme in _REFUSED:
        raise _unsupported(url, scheme)
    try:
        kind = fsspec.get_filesystem_class(scheme)
        options = kind._get_kwargs_from_urls(url)
        if is_http(url):  # waits for as long as bytes come, leaves them as they are, and knows the proxy
            aiohttp = importlib.import_module("aiohttp")
            redirects = aiohttp.TraceConfig()
            redirects.on_request_redirect.append(_on_redirect)
            waits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=_SILENCE_SECONDS)
            client = {"timeout": waits, "trust_env": True, "auto_decompress": False, "trace_configs": [redirects]}
            options |= {"client_kwargs": client, "headers": _IDENTITY, "encoded": True}
        files: RemoteFiles = kind(**options)
        files.invalidate_cache()  # it may have listed folders for an earlier search
    except ImportError as error:
        raise _driver_missing(url, _DRIVERS.get(scheme, "")) from error
    except ValueError as error:
        raise _unsupported(url, scheme) from error
    except failures() as error:
        raise trouble(url, error) from error
    return files


async def _on_redirect(_session: object, _context: object, answer: Any) -> None:  # noqa: ANN401 - aiohttp's
    """Refuses to follow a redirect off the web, to an address with a login, or from encrypted to plain."""
    target = urlsplit(urljoin(str(answer.url), answer.response.headers.get("Location", "")))
    to = "an address that is not on the web" if target.scheme not in ("http", "https") else ""
    to = "an address with a login" if "@" in target.netloc else to
    to = "an address without encryption" if (answer.url.scheme, target.scheme) == ("https", "http") else to
    if to:
        answer.response.close()
        raise RefusedRedirect(f"the server redirects to {to}")


def answered(url: str, ask: Callable[[], _Answer], poll: Callable[[], None] = lambda: None) -> _Answer:
    """What a server answers. It is asked on a thread of its own, so that silence ends whatever the driver waits for.

    Args:
        poll: called again and again while the server is silent; what it raises ends the wait.

    Raises:
        TimeoutError: it has not answered for `ANSWER_SECONDS`; `WAITING` was told of it before.
        whatever `ask` and `poll` raise.
    """
    answer: Future[_Answer] = Future()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            answer.set_exception(error)

    def is_here(seconds: float) -> bool:
        until = time.monotonic() + seconds
        while not wait((answer,), min(_POLL_SECONDS, max(0, until - time.monotonic()))).done:
            if time.monotonic() >= until:
                return False
            poll()
        return True

    threading.Thread(target=run, daemon=True).start()
    if not is_here(WORD_SECONDS):
        sentence = f"{printable_url(split(url)[0])} has not answered for {WORD_SECONDS:g} s; "
        sentence += f"it is given up after {ANSWER_SECONDS:g} s."
        logging.getLogger(WAITING).warning(sentence)
        if not is_here(ANSWER_SECONDS - WORD_SECONDS):
            raise TimeoutError
    return answer.result()


def facts_of(files: RemoteFiles, url: str) -> Facts:
    """What a server says of a file.

    Raises:
        one of `failures()`.
    """
    return answered(url, lambda: files.info(request_url(url)))


def open_stream(files: RemoteFiles, url: str) -> RemoteStream:
    """Opens a file to be read from its beginning.

    Raises:
        one of `failures()`.
    """
    if not is_http(url):
        return answered(url, lambda: files.open(url, "rb", cache_type="none"))
    # Block size 0: one answer, read as it comes. Any size keeps fsspec from asking for it once more.
    return answered(url, lambda: files.open(request_url(url), "rb", block_size=0, size=1, headers=_IDENTITY))


# --- what drivers say of files


def size_of(facts: Facts) -> int | None:
    """Bytes; None where a server does not report them, or reports nonsense."""
    size = facts.get("size")
    return size if isinstance(size, int) and not isinstance(size, bool) and 0 <= size < 1 << 63 else None


def version_of(facts: Facts) -> str:
    """What changes when a file does: its etag, generation, checksum or times; empty where a server reports none."""
    by_key = {key.lower(): value for key, value in facts.items()}
    keys = dict.fromkeys((*_VERSIONS, *_TIMES))
    return ";".join(f"{key}={by_key[key]}" for key in keys if by_key.get(key) not in (None, ""))


def modified_of(facts: Facts) -> float:
    """Seconds since 1970; 0 where a server does not report a time."""
    by_key = {key.lower(): value for key, value in facts.items()}
    times = (_seconds(by_key.get(key)) for key in _TIMES)
    return next((seconds for seconds in times if seconds is not None), 0.0)


def _seconds(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if 0 <= value < 1e11 else None
    with contextlib.suppress(ValueError, TypeError, OverflowError, OSError):
        if isinstance(value, str):
            iso = re.sub(r"\.\d+", "", value).replace("Z", "+00:00")  # as Python 3.10 reads it
            value = parsedate_to_datetime(value) if "," in value else datetime.fromisoformat(iso)
        if isinstance(value, datetime):
            return (value if value.tzinfo else value.replace(tzinfo=timezone.utc)).timestamp()
    return None


# --- what goes wrong


def failures() -> tuple[type[BaseException], ...]:
    """What drivers raise: they have families of errors of their own, known once they are imported."""
    families = (
        ("aiohttp", "ClientError"),
        ("gcsfs.retry", "HttpError"),
        ("google.auth.exceptions", "GoogleAuthError"),
        ("botocore.exceptions", "BotoCoreError"),
        ("botocore.exceptions", "ClientError"),
        ("azure.core.exceptions", "AzureError"),
        ("paramiko", "SSHException"),
    )
    loaded = [getattr(sys.modules.get(module), name, None) for module, name in families]
    own = [family for family in loaded if isinstance(family, type) and issubclass(family, Exception)]
    return (OSError, EOFError, ValueError, RuntimeError, NotImplementedError, asyncio.TimeoutError, *own)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it came from."""
    for _ in range(8):
        if error is None:
            return
        yield error
        error = error.__cause__


def status_of(error: BaseException) -> int:
    """The HTTP status behind an error, or 0; where an answer is not HTTP, its reader makes one up."""
    statuses = () if _is_no_http(error) else (str(_status(cause)) for cause in _chain(error))
    return next((int(status) for status in statuses if status.isdigit()), 0)


def _is_no_http(error: BaseException) -> bool:
    return any(type(cause).__module__ == "aiohttp.http_exceptions" for cause in _chain(error))


def _status(error: BaseException) -> object:
    """The HTTP status that an error carries under the name that its driver has for it, S3's in what was answered."""
    answer = getattr(error, "response", None)
    if isinstance(answer, Mapping) and isinstance(about := answer.get("ResponseMetadata"), Mapping):
        return about.get("HTTPStatusCode")
    return getattr(error, "status" if hasattr(error, "status") else "code", None)


def is_missing(error: BaseException) -> bool:
    """Whether an error says that nothing is there, and not only that it could not be asked."""
    status = status_of(error)
    return status in (404, 410) or (isinstance(error, FileNotFoundError) and not status and error.__cause__ is None)


def trouble(url: str, error: BaseException) -> ProfileError:
    """An error of a driver in plain words."""
    name = printable_url(url)
    status = status_of(error)
    if is_missing(error):
        return ProfileError("not_found", f"{name} does not exist.", "check the address", EXIT_NOT_FOUND)
    no_login = {type(cause).__name__ for cause in _chain(error)} & _NO_LOGIN
    if status in (401, 403) or no_login or isinstance(error, PermissionError):
        hint = _LOGINS.get(scheme_of(url), "check that you may read it, and that a signed address has not expired")
        return ProfileError("no_permission", f"You may not read {name}: {why(error)}.", hint, EXIT_UNREADABLE)
    if isinstance([*_chain(error)][-1], RefusedRedirect):
        hint = "open the address that it redirects to, if you trust it: curl -I shows that"
        return ProfileError("refused_redirect", f"{name} is not read: {why(error)}.", hint, EXIT_UNREADABLE)
    hint = "check the address and the connection, then try again"
    return ProfileError("connection", f"{name} could not be read: {why(error)}.", hint, EXIT_UNREADABLE)


def why(error: BaseException) -> str:
    """A reason, without the URLs that drivers put into theirs."""
    status = status_of(error)
    if status:
        return f"the server answers {status}"
    inner = list(_chain(error))[-1]
    if isinstance(inner, asyncio.TimeoutError | TimeoutError):
        return "the server does not answer in time"
    if _is_no_http(error):
        return "the server does not keep to HTTP"
    if isinstance(inner, OSError) and (inner.errno or 0) > 0:  # those of name look-ups are below
        return os.strerror(inner.errno or 0).lower()
    if type(inner).__name__ == "TooManyRedirects":
        return "the server redirects in a circle"
    text = str(getattr(inner, "strerror", None) or inner) or type(inner).__name__
    return printable(masked(text)[:200]).rstrip(". ")


def _driver_missing(url: str, package: str) -> ProfileError:
    scheme = scheme_of(url)
    driver = _DRIVERS.get(scheme, "")
    packages = f"'tpuprof-tui[{'gcs' if driver == 'gcsfs' else 'remote'}]'"
    packages += f" {driver}" if driver in _NO_EXTRA else ""
    sentence = f"{scheme}:// paths need {package or 'a package that'}{', which' if package else ''} is not installed."
    source = printable_url(url).rstrip("/")
    local = shlex.quote(f"./{os.path.basename(source)}")
    copies = {
        "gs": f", or: gcloud storage cp -r {shlex.quote(source)} . && tpuprof-tui {local}",
        "s3": f", or: aws s3 cp --recursive {shlex.quote(source)} {local} && tpuprof-tui {local}",
    }
    hint = f"pip install {packages}{copies.get(scheme, '')}"
    return ProfileError("driver_missing", sentence, printable(hint), EXIT_NOT_FOUND)


def _unsupported(url: str, scheme: str) -> ProfileError:
    sentence = f"{printable_url(url)} can't be opened: {scheme}:// paths are not read."
    hint = (
        "gs://, s3://, http://, https:// and others for which fsspec has a driver; or copy it to a local folder first"
    )
    return ProfileError("unsupported_scheme", sentence, hint, EXIT_NOT_FOUND)
