"""The peers: an environment of its own for each, made on first use under .environments."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent / ".environments"
SMALL, MIDDLE, LARGE = (2_000, 200, 10), (10_000, 100, 10), (100_000, 100, 10)


@dataclass(frozen=True)
class Peer:
    requirements: tuple[str, ...]
    about: str
    shapes: tuple[tuple[int, int, int], ...]
    python: tuple[int, int] = (3, 11)
    environment: str = field(default="")
    from_source: bool = False


PEERS = {
    "pydvl": Peer(
        ("pydvl==0.10.0",), "2019 utility, 2 jobs", (SMALL, MIDDLE, LARGE)),
    "shapiq_knn": Peer(
        ("shapiq==1.8.0",), "2019 utility; needs Python 3.12", (SMALL, MIDDLE), (3, 12), "shapiq"),
    "shapiq_tknn": Peer(
        ("shapiq==1.8.0",), "threshold; wrong from about 1,030 points on; needs Python 3.12",
        (SMALL, MIDDLE, LARGE), (3, 12), "shapiq"),
    "datascope": Peer(
        ("datascope==0.0.32",), "k = 1 only", (SMALL, MIDDLE), from_source=True),
    "cleanlab": Peer(
        ("cleanlab==2.9.0", "scikit-learn"), "values a set by itself (N = M), cut off at k: not comparable",
        (SMALL,)),
    "cleanlab_issues": Peer(
        ("cleanlab==2.9.0", "scikit-learn"), "suggestions.py: which labels are wrong", (),
        environment="cleanlab"),
    "cleanlab_fold": Peer(
        ("cleanlab==2.9.0", "lightgbm==4.6.0", "scikit-learn"), "forest_speed.py: one fold of five", ()),
    "faiss": Peer(("faiss-cpu==1.15.1",), "neighbors.py: pairs within a radius", ()),
    "opendataval": Peer(
        ("opendataval==1.3.0",), "2019 utility, float32", (SMALL, MIDDLE)),
}  # fmt: skip


def ready(name: str) -> tuple[Path | None, str]:
    """The interpreter of the peer's environment, or None and the reason why there is none."""
    peer = PEERS[name]
    folder = FOLDER / (peer.environment or name)
    python, failed = folder / "bin" / "python", folder / "failed"
    if failed.exists():
        return None, failed.read_text()
    if (folder / "ready").exists():
        return python, ""
    base = interpreter(peer.python)
    if base is None:
        return None, f"needs Python {peer.python[0]}.{peer.python[1]}, which is not here"
    subprocess.run([base, "-m", "venv", "--clear", str(folder)], check=True)
    command = [str(python), "-m", "pip", "install", "--quiet"]
    command += [] if peer.from_source else ["--only-binary", ":all:"]
    try:
        done = subprocess.run(
            [*command, *peer.requirements], capture_output=True, text=True, timeout=600
        )
        trouble = done.stderr if done.returncode else ""
    except subprocess.TimeoutExpired:
        trouble = "ERROR: not installed within 600 seconds"
    if trouble:
        lines = [line for line in trouble.splitlines() if line.startswith("ERROR")]
        failed.write_text((lines or trouble.splitlines() or ["unknown"])[0][:200])
        return None, failed.read_text()
    (folder / "ready").touch()
    return python, ""


def interpreter(wanted: tuple[int, int]) -> str | None:
    """A Python of this version or later: ours, one on the path, or one of pyenv's."""
    if sys.version_info[:2] >= wanted:
        return sys.executable
    for minor in range(wanted[1], 16):
        found = [shutil.which(f"python{wanted[0]}.{minor}")]
        pyenv = Path.home() / ".pyenv" / "versions"
        found += [str(p) for p in sorted(pyenv.glob(f"{wanted[0]}.{minor}.*/bin/python"))]
        for python in filter(None, found):
            if subprocess.run([python, "-c", ""], capture_output=True).returncode == 0:
                return python
    return None
