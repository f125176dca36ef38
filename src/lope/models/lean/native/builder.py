"""Compiles the kernels with the machine's own C++ compiler, once, into a folder of the cache."""

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import filelock
import torch

_SOURCES = ("vectors.h", "linear.h", "layer.cpp")
# no contraction: a product and its sum are rounded where the source says so, the same in every kernel
_FLAGS = ("-O2", "-std=c++17", "-ffp-contract=off", "-fno-math-errno", "-fopenmp", "-fPIC")
# by what torch found: a compiler's own idea of a virtual processor may hold instructions that it refuses
_AVX2 = ("-mavx2", "-mfma", "-mf16c")
_INSTRUCTIONS = {"AVX2": _AVX2, "AVX512": (*_AVX2, "-mavx512f")}
_X86 = ("x86_64", "AMD64")
_SECONDS = 300
_FULL = "No space left"


class BuildError(Exception):
    """One line that says why there are no kernels. lasting: it would be the same the next time."""

    def __init__(self, reason: str, lasting: bool) -> None:
        super().__init__(reason)
        self.lasting = lasting


@dataclass(frozen=True)
class KernelBuilder:
    """Finds or makes the library for one compiler. Its file's name ends in what the file holds, which is checked."""

    folder: Path
    compiler: tuple[str, ...]

    @classmethod
    def here(cls, folder: Path) -> "KernelBuilder":
        """With the compiler that `$CXX` names, else the first of c++, g++, clang++. Raises BuildError.

        Also where this is an x86 processor without AVX2: torch's kernels are many times faster there.
        """
        if platform.machine() in _X86 and torch.backends.cpu.get_cpu_capability() not in _INSTRUCTIONS:
            raise BuildError("this processor has no AVX2", lasting=False)
        named = os.environ.get("CXX", "")
        try:
            asked = shlex.split(named)
        except ValueError:  # a quotation that does not end
            asked = [named]
        for words in [asked] if asked else [["c++"], ["g++"], ["clang++"]]:
            found = shutil.which(words[0])
            if found:
                return cls(folder, (found, *words[1:]))
        wanted = f"CXX is {named!r}, and there is no such program" if asked else "c++, g++ and clang++ are absent"
        raise BuildError(f"no C++ compiler is there: {wanted}", lasting=False)

    def file(self) -> Path | None:
        """The library, where it is there and whole: one that was cut short would take the process with it."""
        name = self._fingerprint()
        return next((path for path in self.folder.glob(f"{name}-*.so") if path.stem == f"{name}-{_digest(path)}"), None)

    def build(self, say: Callable[[str], None]) -> Path:
        """Make it; one process does, others wait. A failure that would repeat itself is remembered in `*.failed`.

        Raises BuildError; OSError where the folder cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        name = self._fingerprint()
        with filelock.FileLock(self.folder / f"{name}.lock"):
            made, failed = self.file(), self.folder / f"{name}.failed"
            if made is not None:
                return made
            if failed.exists():
                raise BuildError(failed.read_text().strip() or f"{failed} says that it failed before", lasting=True)
            say("building kernels for this processor (once)")
            try:
                return self._made(name)
            except BuildError as error:
                say(f"they cannot be built, torch's run instead: {error}")
                if error.lasting:
                    failed.write_text(f"{error}\n")
                raise

    def _made(self, name: str) -> Path:
        """Compile; link with the OpenMP that torch has loaded: two pools of threads would wait for each other."""
        scratch = self.folder / f".{name}.building"
        shutil.rmtree(scratch, ignore_errors=True)  # what a killed build left
        runtime = sorted((Path(torch.__file__).parent / "lib").glob("lib*omp*"))[:1]
        try:
            scratch.mkdir()
            part, linked = scratch / "layer.o", scratch / "layer.so"
            self._run([*_flags(), "-c", str(Path(__file__).parent / "layer.cpp"), "-o", str(part)])
            self._run(["-shared", str(part), *(map(str, runtime) if runtime else ["-fopenmp"]), "-o", str(linked)])
            try:
                ctypes.CDLL(str(linked))
            except OSError as error:
                raise BuildError(f"{self.compiler[0]}: what it built cannot be loaded: {error}", lasting=True) from None
            for damaged in self.folder.glob(f"{name}-*.so"):
                damaged.unlink()
            return linked.rename(self.folder / f"{name}-{_digest(linked)}.so")
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _run(self, words: Sequence[str]) -> None:
        command, plain = [*self.compiler, *words], {**os.environ, "LC_ALL": "C"}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, env=plain, check=False
            )
        except (subprocess.TimeoutExpired, OSError) as error:
            raise BuildError(f"{self.compiler[0]}: {error}", lasting=False) from None
        if done.returncode:
            lines = done.stderr.splitlines()
            told = [line for line in lines if "error" in line] or lines or [f"ended with {done.returncode}"]
            lasting = done.returncode > 0 and _FULL not in done.stderr
            raise BuildError(f"{self.compiler[0]}: {told[0][:200]}", lasting)

    def _fingerprint(self) -> str:
        """Changes with the sources, the compiler, the instructions and the torch whose threads are shared."""
        program = Path(self.compiler[0]).resolve()
        about = [str(program), str(program.stat().st_mtime_ns), platform.machine(), str(torch.__version__)]
        sources = [(Path(__file__).parent / name).read_text() for name in _SOURCES]
        return hashlib.sha256("\0".join([*_flags(), *self.compiler, *about, *sources]).encode()).hexdigest()[:20]


def _flags() -> tuple[str, ...]:
    return *_FLAGS, *_INSTRUCTIONS.get(torch.backends.cpu.get_cpu_capability(), ())


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
