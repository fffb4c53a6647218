#!/usr/bin/env python3
"""The determinism matrix: builds Ballast in many ways, runs each build in many ways, and compares one signature.

    .ci/determinism_matrix.py                     all builds that the machine has compilers for
    .ci/determinism_matrix.py --only 'clang.*-O2' the first build, and those whose name matches
    .ci/determinism_matrix.py --list              their names
    .ci/determinism_matrix.py --built PATH...     these commands in place of the first build, and of all others
                                                  unless --only names some; the first one is what others are held to

Every build computes the signature of the suite (`ballast signature`) plainly, with each SIMD target of the machine, on 1
to 8 threads, and with processor features hidden from the C library; that of the quickstart with its tokens split
otherwise into ranks and micro-batches; and that of the shipped scenarios' first steps. Then it replays what the first
build recorded. Where two differ, the first stage, or step, layer and stage, is named.

Builds for other processors run in an emulator, without the runs that tell nothing about it; they need Debian's package
qemu-user-static, and .ci/arm64.cmake says what else arm64 needs.

Exit codes: 0 one signature; 1 a difference; 3 usage; 70 a build or a command failed.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCENARIOS = ROOT / "scenarios"

# The compiler, its flags, its target processor and the emulator to run in; what a machine lacks is left out, with a word.
BUILDS = [
    ("g++", "-O3", "x86-64-v3"),
    ("g++", "-O0", "x86-64-v3"),
    ("g++", "-O2", "haswell"),
    ("g++", "-O3", "native"),
    ("clang++", "-O2", "x86-64-v3"),
    ("clang++", "-O0", "x86-64-v3"),
    ("clang++", "-O3", "x86-64-v4"),
    ("clang++-19", "-O2", "haswell"),
    ("clang++-19", "-O3", "x86-64-v4"),
    # Without AVX-512. QEMU 7.2 takes ymm4 for no register where it says what to gather, so nothing is put there.
    ("g++", "-O3 -ffixed-xmm4", "haswell", "qemu-x86_64-static -cpu Haswell"),
    ("aarch64-linux-gnu-g++", "-O2", "arm64", "qemu-aarch64-static"),
]
TARGETS = ["scalar", "neon", "avx2", "avx512"]
# glibc 2.36 chooses its functions by these; see `ld.so --list-diagnostics`.
HIDDEN = ["-FMA", "-AVX2", "-AVX2,-FMA,-FMA4", "-AVX512F,-AVX512VL,-AVX512BW"]
# The quickstart's 8 sequences a step as ranks, micro-batches and sequences.
SPLITS = [(1, 1, 8), (1, 8, 1), (2, 2, 2), (4, 1, 2)]
# Too large for many runs: 92 layers of 896 experts.
LEFT_OUT = {"92-layers.json"}
STEPS = 3


class Failure(Exception):
    """A command did not do what it should, so there is nothing to compare."""


def run(words, **settings):
    try:
        return subprocess.run([str(word) for word in words], capture_output=True, text=True, **settings)
    except OSError as error:
        raise Failure(f"{words[0]} cannot be run: {error.strerror}") from error


def checked(words, **settings):
    done = run(words, **settings)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, words[:4]))} ...\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


# ---------------------------------------------------------------------------------------------------- builds

def name_of(build):
    return " ".join(build[:3])


def emulator_of(build):
    return build[3].split() if len(build) > 3 else []


def build_command(build, folder):
    """The words that run what was built."""
    compiler, flags, architecture = build[:3]
    place = folder / name_of(build).replace(" ", "")
    target = [f"-DCMAKE_CXX_COMPILER={compiler}", f"-DBALLAST_ARCHITECTURE={architecture}"]
    if architecture == "arm64":
        target = ["--toolchain", ROOT / ".ci/arm64.cmake"]
    checked(["cmake", "-G", "Ninja", "-S", ROOT, "-B", place, *target, "-DCMAKE_BUILD_TYPE=",
             f"-DCMAKE_CXX_FLAGS={flags} -DNDEBUG", "-DBALLAST_WARNINGS_AS_ERRORS=OFF"])
    checked(["cmake", "--build", place, "--target", "determinism_probe", "-j", str(os.cpu_count() or 1)])
    return [*emulator_of(build), place / "tests/determinism/determinism_probe"]


def has_arm64_libraries():
    prefixes = ["/usr", *os.environ.get("CMAKE_PREFIX_PATH", "").split(":")]
    return any(Path(prefix, "lib/aarch64-linux-gnu/libboost_program_options.a").exists() for prefix in prefixes)


def obstacle(build):
    """Why this machine cannot build it or run what was built, or None."""
    for program in [build[0], *emulator_of(build)[:1]]:
        if shutil.which(program) is None:
            return f"there is no {program} here"
    if build[2] == "x86-64-v4" and "avx512bw" not in Path("/proc/cpuinfo").read_text():
        return "this processor cannot run it"
    if build[2] == "arm64" and not has_arm64_libraries():
        return "there is no Boost for arm64 here; .ci/arm64.cmake says what to install"
    return None


# ---------------------------------------------------------------------------------------------------- runs

class Reference:
    """The signatures that all others are held to, and a recording, in files that are made when they are needed."""

    def __init__(self, command, folder):
        self.command, self.folder = command, folder

    @cached_property
    def suite(self):
        return self.write("suite.json", [])

    @cached_property
    def split(self):
        return self.write("split.json", quickstart(SPLITS[0]))

    @cached_property
    def shipped(self):
        return self.write("shipped.json", shipped())

    @cached_property
    def recording(self):
        path = self.folder / "quickstart.recording"
        done = run([*self.command, "run", "--json", *quickstart(SPLITS[1]), "--record", path])
        if not path.exists():
            raise Failure(done.stderr)
        return path

    def write(self, name, words):
        path = self.folder / name
        path.write_text(checked([*self.command, "signature", "--explain", "--json", *words]))
        return path

    def signature(self):
        return json.loads(self.suite.read_text())["signature"]


def is_scenario(path):
    """The folder also holds schemas, sweeps and data."""
    if path.name in LEFT_OUT or ".sweep." in path.name:
        return False
    return "ballast" in json.loads(path.read_text())


def shipped():
    return [*filter(is_scenario, sorted(SCENARIOS.rglob("*.json"))), "--set", f"training.steps={STEPS}"]


def quickstart(split):
    ranks, micro_batches, sequences = split
    words = [SCENARIOS / "quickstart.json"]
    for setting in (f"training.steps={STEPS}", "training.evaluate_every=0", f"training.ranks={ranks}", f"training.micro_batches={micro_batches}",
                    f"training.sequences={sequences}"):
        words += ["--set", setting]
    return words


class Row:
    """One build: how many of its runs in each column came out the same, and what differed."""

    def __init__(self, name, command, reference):
        self.name, self.command, self.reference = name, command, reference
        self.cells, self.differences, self.configurations, self.targets = {}, [], 0, []

    def hold(self, column, how, reference, words=(), environment=None):
        """Compares one signature; `how` says what was different in this run."""
        done = run([*self.command, "signature", "--compare", reference, *words],
                   env={**os.environ, **(environment or {})})
        return self.judge(column, how, done)

    def judge(self, column, how, done, refused=5):
        """Exit code 5 is a difference; `refused` is another one that is."""
        if done.returncode not in (0, 5, refused):
            raise Failure(f"{self.name}, {how}: exit code {done.returncode}\n{done.stderr}")
        self.configurations += 1
        same, runs = self.cells.get(column, (0, 0))
        self.cells[column] = (same + (done.returncode == 0), runs + 1)
        if done.returncode != 0:
            self.differences.append(f"{self.name}, {how}: {' '.join((done.stdout + done.stderr).split())}")

    def fill(self, columns):
        fillers = {"suite": self.plainly, "SIMD": self.with_targets, "threads": self.with_threads,
                   "glibc": self.with_features_hidden, "splits": self.with_splits, "files": self.with_files,
                   "replay": self.with_replay}
        for column in columns:
            fillers[column]()

    def plainly(self):
        self.hold("suite", "as built", self.reference.suite)

    def with_targets(self):
        self.targets = targets_of(self.command)
        for target in self.targets:
            self.hold("SIMD", f"BALLAST_TARGET={target}", self.reference.suite, environment={"BALLAST_TARGET": target})

    def with_threads(self):
        for threads in range(1, 9):
            self.hold("threads", f"--threads {threads}", self.reference.suite, ["--threads", threads])

    def with_features_hidden(self):
        for hidden in HIDDEN:
            self.hold("glibc", f"hwcaps={hidden}", self.reference.suite,
                      environment={"GLIBC_TUNABLES": f"glibc.cpu.hwcaps={hidden}"})

    def with_splits(self):
        for split in SPLITS:
            self.hold("splits", "{} ranks x {} micro-batches x {} sequences".format(*split), self.reference.split,
                      quickstart(split))

    def with_files(self):
        self.hold("files", "the shipped scenarios", self.reference.shipped, shipped())

    def with_replay(self):
        done = run([*self.command, "replay", self.reference.recording])
        self.judge("replay", "the first build's recording", done, refused=4)


def targets_of(command):
    """The SIMD targets that run there; the command refuses others."""
    return [target for target in TARGETS
            if run([*command, "--version"], env={**os.environ, "BALLAST_TARGET": target}).returncode == 0]


# ---------------------------------------------------------------------------------------------------- the table

COLUMNS = ["suite", "SIMD", "threads", "glibc", "splits", "files", "replay"]
# Threads and the C library are this machine's in an emulator too; and it is slow.
EMULATED = ["suite", "SIMD", "splits", "replay"]


def cell(row, column):
    same, runs = row.cells.get(column, (0, 0))
    if runs == 0:
        return "-"
    return str(same) if same == runs else f"{same}/{runs}!"


def line(name, cells):
    return f"{name[:31]:31}" + "".join(f"{text:>7}" for text in cells)


def show(row, columns):
    print(line(row.name, [cell(row, column) for column in columns]), flush=True)


def conclude(rows, signature):
    configurations = sum(row.configurations for row in rows)
    differences = [difference for row in rows for difference in row.differences]
    ran = {target for row in rows for target in row.targets}
    print("\nSIMD targets: " + ", ".join(target + ("" if target in ran else " (not run)") for target in TARGETS))
    if not differences:
        print(f"{len(rows)} build(s), {configurations} configurations, one signature:\n{signature}")
        return 0
    print(f"{len(differences)} of {configurations} configurations differ from {rows[0].name}:")
    for difference in differences:
        print(textwrap.fill(f"- {difference}", 80, subsequent_indent="  "))
    return 1


# ---------------------------------------------------------------------------------------------------- the command

def chosen_builds(options):
    """The first build is what others are held to, unless there is one already."""
    only = options.only or ("$^" if options.built else "")
    chosen = [build for build in BUILDS if re.search(only, name_of(build))]
    return chosen if options.built or BUILDS[0] in chosen else [BUILDS[0], *chosen]


def commands(options, work):
    """Names, commands and columns, one after the other as they are built."""
    for path in options.built:
        yield Path(path).name, [Path(path).resolve()], options.columns
    for build in chosen_builds(options):
        columns = [column for column in options.columns if column in EMULATED or not emulator_of(build)]
        if lack := obstacle(build):
            print(f"{name_of(build)}: left out, {lack}")
        else:
            yield name_of(build), build_command(build, work), columns


def matrix(options):
    work = ROOT / "build/matrix"
    rows, reference = [], None
    with tempfile.TemporaryDirectory() as scratch:
        for name, command, columns in commands(options, work):
            if reference is None:
                reference = Reference(command, Path(scratch))
                print(line("runs that agree", options.columns), flush=True)
            row = Row(name, command, reference)
            row.fill(columns)
            show(row, options.columns)
            rows.append(row)
        return conclude(rows, reference.signature())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="REGEX", help="besides the first build, only those whose name matches")
    parser.add_argument("--built", metavar="PATH", nargs="+", default=[],
                        help="these commands in place of builds")
    parser.add_argument("--columns", metavar="COLUMN", nargs="+", choices=COLUMNS, default=COLUMNS,
                        help="these kinds of runs only: " + ", ".join(COLUMNS))
    parser.add_argument("--list", action="store_true", help="name the builds")
    options = parser.parse_args()
    if options.list:
        print("\n".join(name_of(build) for build in BUILDS))
        return 0
    try:
        return matrix(options)
    except Failure as failure:
        print(f"determinism matrix: {failure}", file=sys.stderr)
        return 70


if __name__ == "__main__":
    sys.exit(main())
