"""The compiled core, built to watch its memory."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

CORE = "tpuprof.parsers.formats.xspace.core._core"
SOURCE = Path(__file__).parents[3] / "parsers" / "formats" / "xspace" / "core" / "_core.c"
LIBRARY = "libasan.so"


class NoSanitizerError(Exception):
    """What is missing for a build with sanitizers."""


def asan_library() -> str:
    """Where gcc's libasan.so is.

    Raises:
        NoSanitizerError: there is none.
    """
    found = subprocess.run([_gcc(), f"-print-file-name={LIBRARY}"], capture_output=True, text=True, check=True)
    path = found.stdout.strip()
    if path == LIBRARY or not Path(path).exists():
        raise NoSanitizerError("gcc has no libasan")
    return path


def built_core(folder: Path) -> Path:
    """The core with AddressSanitizer and UndefinedBehaviorSanitizer, built into a folder.

    Raises:
        NoSanitizerError: gcc, its sanitizer, Python's headers or the source are not here.
        subprocess.CalledProcessError: it does not compile.
    """
    include = sysconfig.get_paths()["include"]
    if not (Path(include) / "Python.h").exists():
        raise NoSanitizerError("Python's headers are not installed")
    if not SOURCE.exists():
        raise NoSanitizerError("the source of the C core is not here")
    asan_library()
    module = folder / "_core.so"
    sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-Wall", "-Wextra", "-Werror"]
    command = [_gcc(), "-O1", "-g", "-shared", "-fPIC", *sanitize, f"-I{include}", str(SOURCE), "-o", str(module)]
    subprocess.run(command, check=True)
    return module


def preloaded() -> dict[str, str]:
    """The environment of a Python that may load such a core; every buffer gets a block with a guard behind it."""
    options = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1", "PYTHONMALLOC": "malloc"}
    return {**os.environ, "LD_PRELOAD": asan_library(), **options}


def with_core(path: Path) -> None:
    """Puts a core in the place of the installed one, before anything has imported that."""
    spec = importlib.util.spec_from_file_location(CORE, path)
    assert spec is not None and spec.loader is not None
    sys.modules[CORE] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def _gcc() -> str:
    gcc = shutil.which("gcc")
    if gcc is None:
        raise NoSanitizerError("there is no gcc")
    return gcc
