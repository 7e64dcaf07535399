"""Does this checkout behave as another commit did?

    python packaging/same.py COMMIT [--only library|command|releases|market] [--cases WORDS]
                             [--jobs 2] [--list] [--once]

Thousands of small cases run in this checkout and in a worktree of the commit: calls of the library,
runs of the command, seeded releases, and a market over HTTP. They use public names only, so inner
modules may move. What every case returns, prints, writes, warns of and refuses is compared, to the
last bit. The names of the cases that differ are printed with the first difference.

The cases of the commit run twice, to find what changes by itself: such places are not compared.
What came out is kept in ~/.cache/thresher-same, as are compiled kernels, so only the first run is
slow. --once skips the second run.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import gzip
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "thresher-same"
SHARDS = {"command": 4, "library": 3, "releases": 2, "market": 1}  # the longest first
VARIES = "\0"  # stands for a word that is another one in every run
MOST_SHOWN = 40


def git(*words):
    """What git says."""
    return subprocess.run(
        ["git", "-C", ROOT, *words], check=True, capture_output=True, text=True
    ).stdout.strip()


def steady(folder):
    """Give every module a time by its content, so that kernels compiled before are found again."""
    for path in folder.rglob("*.py"):
        os.utime(path, (zlib.crc32(path.read_bytes()),) * 2)


def run_cases(tree, parts, jobs, words=()):
    """What came out of the cases in a tree: name -> lines, and what failed as a whole."""
    kernels = CACHE / "kernels" / hashlib.sha256(str(tree).encode()).hexdigest()[:12]
    settings = {key: entry for key, entry in os.environ.items() if not key.startswith(("THRESHER", "PYTHON"))} | {
        "PYTHONPATH": str(tree / "src"), "NUMBA_CACHE_DIR": str(kernels), "PYTHONHASHSEED": "0", "THRESHER_THREADS": "2", "OMP_NUM_THREADS": "1",
        "COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1", "TERM": "dumb", "TZ": "UTC", "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:

        def work(part, shard):
            out = Path(folder, f"{part}{shard}.gz")
            command = [
                sys.executable,
                ROOT / "packaging" / "same_worker.py",
                part,
                str(shard),
                str(SHARDS[part]),
                out,
                *words,
            ]
            done = subprocess.run(
                command, env=settings, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            if done.returncode:
                return {
                    f"{part}, all of shard {shard}": [
                        "did not run",
                        *done.stderr.decode()[-2000:].splitlines(),
                    ]
                }
            with gzip.open(out, "rt") as file:
                return {f"{part}: {name}": lines for name, lines in json.load(file).items()}

        futures = [
            pool.submit(work, part, shard) for part in parts for shard in range(SHARDS[part])
        ]
        return {name: lines for future in futures for name, lines in future.result().items()}


def split(line):
    """The words of a line, and what is between them."""
    return re.findall(r"[\w.+-]+|[^\w.+-]", line)


def template(first, second):
    """The lines of a case, with a mark for each word that two runs do not share; None if lines do."""
    if first == second:
        return first
    if len(first) != len(second):
        return None
    found = []
    for one, other in zip(first, second):
        words, others = split(one), split(other)
        if len(words) != len(others):
            return None
        found.append(
            "".join(word if word == another else VARIES for word, another in zip(words, others))
        )
    return found


def fits(wanted, line):
    """Whether a line is as wanted, whatever stands where words vary."""
    if VARIES not in wanted:
        return wanted == line
    return re.fullmatch(r"[\w.+-]+".join(map(re.escape, wanted.split(VARIES))), line) is not None


def difference(wanted, lines):
    """The first line that differs, as wanted and as it is; None if all are the same."""
    if wanted == lines:
        return None
    for number in range(max(len(wanted), len(lines))):
        one, other = (
            each[number] if number < len(each) else "(no line)" for each in (wanted, lines)
        )
        if not fits(one, other):
            return number, one, other
    return None


def differences(old, new):
    """The cases that differ, by name, with the first line that does; None is a case that varies."""
    names = {name: None for name in [*old, *new] if name not in old or old[name] is not None}
    empty = ["(no such case)"]
    found = {name: difference(old.get(name, empty), new.get(name, empty)) for name in names}
    return {name: each for name, each in found.items() if each is not None}


def around(one, other):
    """The places of two lines where they part."""
    part = next((at for at, (a, b) in enumerate(zip(one, other)) if a != b), 0)
    start = max(0, part - 60)
    return ("..." if start else "") + one[start : start + 160], ("..." if start else "") + other[
        start : start + 160
    ]


def digest_of_cases():
    """What results depend on, apart from the commit: the cases, the machine, the packages."""
    found = hashlib.sha256()
    for path in sorted((ROOT / "packaging").glob("same*.py")):
        found.update(path.read_bytes())
    packages = sorted(
        f"{each.name}=={each.version}"
        for each in importlib.metadata.distributions()
        if each.name != "thresher"
    )
    cpu = (
        Path("/proc/cpuinfo").read_text()
        if Path("/proc/cpuinfo").exists()
        else platform.processor()
    )
    model = re.findall(r"^(?:model name|flags)\s*:.*$", cpu, re.MULTILINE)[:2]
    found.update(json.dumps([packages, platform.platform(), sys.version, model]).encode())
    return found.hexdigest()[:16]


@contextlib.contextmanager
def worktree(commit):
    """A worktree of the commit, in the same place for every commit, so that its kernels are found."""
    tree = CACHE / "tree"
    with open(CACHE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with contextlib.suppress(subprocess.CalledProcessError):
            git("worktree", "remove", "--force", str(tree))
        shutil.rmtree(tree, ignore_errors=True)
        git("worktree", "prune")
        git("worktree", "add", "--detach", "--force", str(tree), commit)
        steady(tree / "src")
        try:
            yield tree
        finally:
            git("worktree", "remove", "--force", str(tree))


def old_side(commit, part, jobs, words, *, once):
    """What the cases of a part returned at the commit, from the cache or made now."""
    kept = CACHE / f"{commit[:16]}-{digest_of_cases()}-{part}.json.gz"
    if not kept.exists():
        with worktree(commit) as tree:
            first = run_cases(tree, [part], jobs, words if once else ())
            second = first if once else run_cases(tree, [part], jobs)
        found = {name: template(lines, second.get(name, [])) for name, lines in first.items()}
        if once or any(", all of shard " in name for name in found):
            return found
        with gzip.open(kept.with_suffix(".new"), "wt", compresslevel=1) as file:
            json.dump(found, file)
        kept.with_suffix(".new").rename(kept)
    with gzip.open(kept, "rt") as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commit", nargs="?", default="HEAD")
    parser.add_argument("--only", choices=SHARDS, help="one part; all if not given")
    parser.add_argument(
        "--cases",
        nargs="*",
        default=[],
        metavar="WORDS",
        help="only cases whose names have all of these",
    )
    parser.add_argument("--jobs", type=int, default=2, help="how many processes work at once")
    parser.add_argument(
        "--list", action="store_true", help="print the names of the cases, and stop"
    )
    parser.add_argument(
        "--once", action="store_true", help="run the cases of the commit once, and keep nothing"
    )
    asked = parser.parse_args()
    parts = [asked.only] if asked.only else [*SHARDS]
    CACHE.mkdir(parents=True, exist_ok=True)
    if asked.list:
        for part in parts:
            command = [sys.executable, ROOT / "packaging" / "same_worker.py", part, "names"]
            subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(ROOT / "src")})
        return
    commit = git("rev-parse", "--verify", f"{asked.commit}^{{commit}}")
    old = {}
    for part in parts:
        old |= old_side(commit, part, asked.jobs, asked.cases, once=asked.once)
    old = {name: lines for name, lines in old.items() if all(word in name for word in asked.cases)}
    new = run_cases(ROOT, parts, asked.jobs, asked.cases)
    found = differences(old, new)
    for name, (number, one, other) in list(found.items())[:MOST_SHOWN]:
        was, now = around(one, other)
        print(
            f"{name}\n  line {number} was: {was}\n  line {number} is:  {now}".replace(VARIES, "*")
        )
    if len(found) > MOST_SHOWN:
        print("also:", *list(found)[MOST_SHOWN:], sep="\n  ")
    left_out = [name for name, lines in old.items() if lines is None]
    partly = sum(any(VARIES in line for line in lines or ()) for lines in old.values())
    if left_out:
        print("not compared, because they vary:", *left_out, sep="\n  ")
    print(f"{partly} cases have words that vary, which are not compared")
    total = len({*old, *new}) - len(left_out)
    print(f"different: {len(found)} of {total} cases" if found else f"equal: {total} cases")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
