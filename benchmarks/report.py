"""The results of a run as a Markdown page."""

from __future__ import annotations

from ast import literal_eval

from provenance import measured

# work, (shape, contender, against, at most); the targets of the design
TARGETS = [
    ("(50000, 1000, 1024)", "tknn euclidean", "product", 1.15),
    ("(50000, 1000, 1024)", "tknn cosine", "product", 1.15),
    ("(50000, 5000, 1024)", "tknn euclidean", "product", 1.15),
    ("(50000, 5000, 1024)", "tknn cosine", "product", 1.15),
    ("(1000000, 100, 10)", "tknn euclidean", "product", 1.25),
    ("(1000000, 100, 10)", "tknn cosine", "product", 1.25),
    ("(100000, 1000, 10)", "tknn euclidean", "product", 1.0),
    ("(100000, 1000, 10)", "tknn cosine", "product", 1.0),
    ("(100000, 1000, 10)", "knn soft-label euclidean", "argsort", 0.2),
    ("(100000, 1000, 10)", "knn soft-label cosine", "argsort", 0.2),
    ("(50000, 1000, 1024)", "knn soft-label euclidean", "product", 2.8),
    ("(50000, 1000, 1024)", "knn soft-label cosine", "product", 2.8),
    ("(50000, 1000, 1024)", "knn float32 order euclidean", "product", 1.5),
    ("(1000000, 100, 10)", "tknn euclidean", "knn soft-label euclidean", 0.1),
]


def render(result) -> str:
    about = result["machine"]
    others = about["versions"].items()
    versions = ", ".join(f"{name} {number}" for name, number in others if name != "thresher")
    lines = [
        "# How fast the exact methods are", "",
        f"{measured('run.py', about)} Other packages: {versions}. Contenders took turns, and the best turn "
        "counts. Every ratio is between two times of the same run. A shape is (N, M, d): points, "
        "validation points, features. Times are compared with limits of the machine. *product* is the "
        "bare float32 matrix product of the same shape, with one or two BLAS threads, whichever is "
        "faster. *argsort* is one `np.argsort` for each validation point, on one thread.", "",
    ]  # fmt: skip
    if "shapes" in result:
        lines += _targets(result["shapes"]) + _shapes(result["shapes"])
    if "small" in result:
        rows = [(call, f"{ms:.2f}") for call, ms in result["small"].items()]
        lines += [
            "## Whole calls on a small shape, (2000, 200, 10)",
            "",
            *table(("call", "ms"), rows),
        ]
    if "growth" in result:
        rows = [(key, f"{ratio:.2f}") for key, ratio in result["growth"].items()]
        lines += [
            "## Growth: time for more points, over the time for N points",
            "",
            *table(("work", "ratio"), rows),
        ]
    if "memory" in result:
        lines += ["## Peak memory above the input", "", *_memory(result["memory"])]
    if "difference" in result:
        rows = [(key, f"{gap:.1e}") for key, gap in result["difference"].items()]
        lines += ["## Largest difference from plain float64", "", *table(("work", "gap"), rows)]
    if "peers" in result:
        lines += ["## Peers: how many times slower", "", *_peers(result["peers"])]
    return "\n".join(lines)


def _targets(shapes) -> list[str]:
    rows = []
    for shape, contender, against, most in TARGETS:
        if shape in shapes and contender in shapes[shape]:
            ratio = shapes[shape][contender] / shapes[shape][against]
            verdict = "yes" if ratio <= most else "no"
            seen = shapes[shape].get("ranges", {}).get(contender, {}).get(against)
            runs = f"{seen[0]:.2f} to {seen[1]:.2f}" if seen else ""
            rows.append((contender, shape, against, f"{ratio:.2f}", runs, f"{most:g}", verdict))
    head = ("work", "(N, M, d)", "against", "best", "five runs", "at most", "reached")
    return ["## Targets", "", *table(head, rows)]


def _shapes(shapes) -> list[str]:
    lines = []
    for shape, seconds in shapes.items():
        rows = [
            (name, f"{s:.5f}", f"{s / seconds['product']:.2f}", f"{s / seconds['argsort']:.3f}")
            for name, s in seconds.items()
            if name != "ranges"
        ]
        lines += [f"## {shape}", "", *table(("contender", "s", "/ product", "/ argsort"), rows)]
    return lines


def _memory(memory) -> list[str]:
    rows = []
    for work, peak in memory.items():
        method, shape = work.split(" ", 1)
        n = literal_eval(shape)[0]
        allowed = (32 << 20) + 100 * n if method == "tknn" else (128 << 20) + 200 * n
        shown = "failed" if peak is None else f"{peak / 1e6:.1f}"
        rows.append((work, shown, f"{allowed / 1e6:.0f}"))
    return table(("work", "MB", "at most"), rows)


def _peers(peers) -> list[str]:
    rows = []
    for name, peer in peers.items():
        if not peer["installed"]:
            rows.append((name, "", "", "", "", f"does not install from wheels: {peer['why']}"))
            continue
        for shape, told in peer["shapes"].items():
            if "failed" in told:
                rows.append((name, shape, "", "", "", f"failed: {told['failed']}"))
                continue
            gap = told["difference"]
            wrong = "" if gap is None else f"{gap:.1e} of {told['largest value']:.2g}"
            rows.append(
                (
                    name,
                    shape,
                    f"{told['seconds']:.3f}",
                    f"{told['ratio']:.0f}",
                    wrong,
                    peer["about"],
                )
            )
    head = ("peer", "(N, M, d)", "s", "times slower", "difference", "remark")
    return table(head, rows)


def table(head, rows) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(entry) for entry in row) + " |" for row in rows]
    return [*lines, ""]
