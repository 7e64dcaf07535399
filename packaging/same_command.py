"""Runs of the command `thresher`, for `same.py`: what is printed, the exit code, and all files.

Most cases run `python -m thresher` in a fork of a process that has its packages loaded, which takes
a third of the time. Those that are called "alone" start a process of their own.
"""

# fmt: off
from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import re
import runpy
import shlex
import signal
import subprocess
import sys
import tempfile
import warnings
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv, feather, parquet
from same_worker import Cases, lines_of_file

FILTERS = list(warnings.filters)
SECONDS = 120
RANDOM = np.random.default_rng(2)


@cache
def tables():
    """The files that every run finds in its folder: name -> content, the same in every process."""
    rows, few = 60, 24
    random = np.random.default_rng(3)
    y = np.arange(rows) % 2
    X = random.normal(size=(rows, 3)).round(3) + 3 * y[:, None] * [1, -1, 0]
    kind = np.where(y, "dog", "cat")
    kind[[7, 20]] = "dog", "cat"
    plain = pa.table({f"x{j}": X[:, j] for j in range(3)} | {"y": kind})
    more = {
        "id": [f"p{row:03}" for row in range(rows)],
        "owner": [["ann", "bob", "eve"][row % 7 % 3] for row in range(rows)],
        "color": [["red", "blue", None, "green"][row % 4] for row in range(rows)],
        "gap": [None if row % 9 == 4 else row / 7 for row in range(rows)],
    }
    rich = pa.table({"id": more["id"], "size": X[:, 0], "gap": more["gap"], "color": more["color"], "owner": more["owner"], "kind": kind})
    houses = pa.table({"area": X[:, 0], "rooms": X[:, 1], "price": (100 * X[:, 0] + 10 * X[:, 2]).round(1), "owner": more["owner"]})
    named = {"plain": plain, "rich": rich, "houses": houses, "val": plain.slice(0, few), "richval": rich.slice(30, few), "housesval": houses.slice(5, few)}
    found = {f"{name}.csv": text_of(table) for name, table in named.items()}
    found |= {"plain.tsv": found["plain.csv"].replace(b",", b"\t"), "plain.txt": found["plain.csv"].replace(b",", b"\t"), "plain.csv.gz": gzip.compress(found["plain.csv"], mtime=0)}
    found |= {"plain.parquet": written(plain, parquet.write_table), "plain.feather": written(plain, feather.write_feather), "plain.arrow": written(plain, feather.write_feather)}
    found["plain.jsonl"] = "\n".join(map(json.dumps, plain.to_pylist())).encode()
    found["plain.xlsx"] = workbook(plain)
    found |= {f"parts/{number}.csv": text_of(plain.slice(20 * number, 20)) for number in range(3)}
    found |= {f"pieces/{number}.parquet": written(plain.slice(20 * number, 20), parquet.write_table) for number in range(3)}
    found |= {"X.npy": written(X, lambda X, file: np.save(file, X)), "y.npy": written(y, lambda y, file: np.save(file, y))}
    found["all.npz"] = written(None, lambda _, file: np.savez(file, X=X, y=y, X_val=X[:few], y_val=y[:few]))
    found["wide.csv"] = text_of(pa.table({f"e{j}": (X[:, j % 3] / (j + 3)).round(4) for j in range(70)} | {"label": kind}))
    found["notes.txt"] = b"This is no table.\nReally not.\n"
    return found


def text_of(table):
    """A table as CSV."""
    return written(table, csv.write_csv).replace(b'"', b"")


def written(thing, write):
    """What a function writes into a file."""
    sink = io.BytesIO()
    write(thing, sink)
    return sink.getvalue()


def workbook(table):
    """A table as Excel file, without the times that are usually in one."""
    import openpyxl

    book, sink = openpyxl.Workbook(), io.BytesIO()
    for row in [table.column_names, *(list(each.values()) for each in table.to_pylist())]:
        book.active.append(row)
    source = zipfile.ZipFile(io.BytesIO(written(book, lambda book, file: book.save(file))))
    with zipfile.ZipFile(sink, "w") as packed:
        for name in source.namelist():
            packed.writestr(zipfile.ZipInfo(name), re.sub(rb"20\d\d-\d\d-\d\dT[\d:]+Z", b"2020-01-01T00:00:00Z", source.read(name)))
    return sink.getvalue()


def own(cell, mark=",", name="own", end="\n"):
    """A table with a number, a column of these cells, and a label."""
    rows = [f"{row % 2 * 10 + row / 7:.2f}{mark}{cell(row)}{mark}{['cat', 'dog'][row % 2]}" for row in range(24)]
    return end.join([f"size{mark}{name}{mark}kind", *rows, ""])


PLAIN = own(lambda row: row % 5)
UGLY = {
    "semicolons": PLAIN.replace(",", ";"),
    "decimal commas": own(lambda row: f"{row},5", ";").replace(".", ","),
    "pipes": PLAIN.replace(",", "|"),
    "tabs": PLAIN.replace(",", "\t"),
    "byte order mark": "\ufeff" + PLAIN,
    "CRLF": PLAIN.replace("\n", "\r\n"),
    "blank lines": PLAIN.replace("\n", "\n\n"),
    "latin": PLAIN.replace("own", "Größe").encode("latin-1"),
    "utf-16": PLAIN.encode("utf-16"),
    "line breaks": own(lambda row: f'"two\nlines {row % 3}"'),
    "formulas": own(lambda row: f"=A{row % 3}"),
    "emoji": own(lambda row: "αβ😀"[row % 3]),
    "spaces": own(lambda _: "  "),
    "comment": "# exported\n" + PLAIN,
    "no header": PLAIN.split("\n", 1)[1],
    "long row": PLAIN + "1,2,cat,oops\n",
    "open quote": PLAIN + '1,"2,cat\n',
    "header alone": "size,own,kind\n",
    "nothing": "",
    "twice": PLAIN.replace("own", "size"),
    "thousands": own(lambda row: f'"{1000 + 137 * row:,}"'),
    "percent": own(lambda row: f"{row / 2} %"),
    "dollars": own(lambda row: f'"${1000 + row:,}.50"'),
    "stray word": own(lambda row: "unknown" if row == 9 else row / 3),
    "question marks": own(lambda row: "?" if row == 9 else row / 3),
    "infinity": own(lambda row: "inf" if row == 3 else row / 3),
    "huge": own(lambda row: 2**60 + row),
    "dates": own(lambda row: f"2020-01-{row + 1:02}"),
    "German dates": own(lambda row: f"{row + 1:02}.01.2020"),
    "empty column": own(lambda _: ""),
    "constant": own(lambda _: "same"),
    "ids": own(str, name="id"),
    "mails": own(lambda row: f"p{row}@x.org"),
    "sentences": own(lambda row: f"a long remark in whole sentences about row {row} of the table and what was seen there"),
    "booleans": own(lambda row: row % 3 > 0),
    "owners": own(lambda row: f"clinic {row % 3}", name="owner"),
    "missing labels": PLAIN.replace("cat", "", 2),
    "NA labels": PLAIN.replace("cat", "NA"),
    "similar labels": PLAIN.replace("cat", "Dog", 3),
    "amounts": own(lambda row: row % 5).replace("cat", "1.25").replace("dog", "7.5"),
    "one class": PLAIN.replace("dog", "cat"),
    "copies": PLAIN + PLAIN.split("\n", 1)[1],
}
METHODS = ("auto", "forest", "tknn", "knn", "zero-budget", "leave-one-out", "data-shapley", "beta-shapley", "data-banzhaf")
JUDGED = "plain.csv --validation val.csv --label y"
VALUE = {
    "of a file": [
        f"{name} --validation val.csv --label y"
        for name in ("plain.csv", "plain.tsv", "plain.txt", "plain.csv.gz", "plain.parquet", "plain.feather", "plain.arrow", "plain.jsonl", "plain.xlsx", "parts", "'parts/*.csv'", "pieces", "all.npz", "notes.txt")
    ]
    + ["X.npy --label y.npy", "all.npz --metric euclidean --radius 1", "- --validation val.csv --label y --json < plain.csv", "- -o - < plain.csv", "rich.csv", "houses.csv", "wide.csv", "plain.csv"],
    "by a method": [f"{JUDGED} --method {method}{more}" for method in METHODS for more in ("", " --mean --json")] + [f"plain.csv --method {method} --evaluations 80" for method in METHODS[2:]],
    "with options": [
        f"{JUDGED} {more}"
        for more in (
            "--radius 0.4",
            "--radius auto --kernel box",
            "--kernel gaussian --rings 4",
            "--kernel triangular --radius 0.8",
            "--metric euclidean --radius 1.5",
            "--semivalue banzhaf",
            "--semivalue 'beta(4,1)'",
            "--semivalue 'calibrated(2)'",
            "--method knn --k 3",
            "--method knn --utility jia2019",
            "--method knn --error 0.1",
            "--standardize",
            "--standardize --scaling ranks",
            "--standardize --scaling plain",
            "--trees 20 --folds 4 --seed 3",
            "--features x0,x1",
            "--features 'x*' --ignore x2",
            "--method data-banzhaf --evaluations 60",
            "--method tknn --memory 2GB",
            "--method tknn --memory 1MB",
            "--memory 2GB --checkpoint run",
            "--method tknn --memory 2GB --standardize --scaling ranks",
            "--validation-label y",
            "--holdout 0.2",
            "--seed 4",
        )
    ]
    + [f"plain.csv {more}" for more in ("--holdout 0.3 --method tknn", "--holdout 0.3 --method knn --seed 2", "--trees 10", "--trees 10 --folds 5", "--method forest --seed 1 --json", "--ignore x0")]
    + [
        f"rich.csv {more}"
        for more in (
            "--label kind --id id",
            "--validation richval.csv --fill median --categorical color,owner --method tknn --ignore id",
            "--validation richval.csv --fill zero --standardize --categorical color --ignore id",
            "--owner owner",
            "--owner owner --players owners",
            "--validation richval.csv --owner owner --players owners --method tknn --fill 0 --categorical color",
            "--categorical color --ignore gap",
            "--method tknn",
            "--image color",
        )
    ]
    + [
        f"houses.csv {more}"
        for more in (
            "--label price --task regression",
            "--label price --task regression --validation housesval.csv --method tknn --radius 0.5",
            "--label price --task regression --method knn --validation housesval.csv --ignore owner",
            "--label price --task regression --empty 3 --owner owner",
            "--label price --task regression --memory 2GB",
            "--label owner --task classification",
            "--label price --task regression --players owners --owner owner",
        )
    ],
}
REFUSED = (
    "nothing.csv",
    "plain.cvs",
    "plain.csv --lable y",
    "plain.csv --label z",
    "plain.csv --metod forest",
    "plain.csv --method magic",
    "plain.csv --radius near --validation val.csv",
    "plain.csv --radius -1 --validation val.csv",
    "plain.csv --k 0 --method knn --validation val.csv",
    "plain.csv --validation houses.csv",
    "plain.csv --out v.doc",
    "plain.csv --out nowhere/v.csv",
    "plain.csv --out plain.csv",
    "plain.csv --out v.csv --report v.csv",
    "plain.csv --report r.pdf",
    "plain.csv --trees 0",
    "plain.csv --trees ten",
    "plain.csv --folds 7 --trees 10",
    "plain.csv --semivalue core",
    "plain.csv --kernel round",
    "plain.csv --features q",
    "plain.csv --ignore q",
    "plain.csv --id x9",
    "plain.csv --owner x9",
    "plain.csv --players owners",
    "plain.csv --memory lots",
    "plain.csv --memory 2GB --report r.html",
    "plain.csv --engine spark",
    "plain.csv --scheduler tcp://host:1",
    "plain.csv --checkpoint run",
    "plain.csv --task ranking",
    "plain.csv --task regression",
    "plain.csv --empty 1",
    "plain.csv --holdout 2",
    "plain.csv --fill mean",
    "plain.csv --scaling ranks",
    "plain.csv --text y",
    "plain.csv --model m",
    "plain.csv --date x0",
    "plain.csv --decimal ;",
    "plain.csv --delimiter ;",
    "plain.csv --encoding nonsense",
    "plain.csv --na ''",
    "",
    "plain.csv val.csv",
    "plain.csv --label y --label y",
    "plain.csv --rings 4",
    "plain.csv --error 0.1",
    "plain.csv --utility hard",
    "plain.csv --evaluations 10",
    "plain.csv --mean --method forest",
    "X.npy",
    "X.npy --label X.npy",
    "all.npz --label y",
    "plain.csv --unlabeled drop",
    "folder",
    "'none/*.csv'",
    "--version",
    "plain.csv --seed -1",
)
VALUED = "value rich.csv --label kind --id id --owner owner --trees 20 --out v.parquet"
CLEAN = [
    f"{VALUED} && clean rich.csv --label kind {more}"
    for more in (
        "--values v.parquet --relabel relabel --out c.csv",
        "--values v.parquet --drop drop,relabel --out c.csv --log log.csv",
        "--values v.parquet --relabel relabel --id id --out c.csv --log log.json --json",
        "--values v.parquet --out c.csv",
        "--values v.parquet --relabel sometimes --out c.csv",
        "--values v.parquet --drop rows:1-3 --out c.csv",
        "--values v.parquet --relabel relabel --out rich.csv",
        "--values v.parquet --correct correct --out c.csv",
    )
] + [
    f"clean {more}"
    for more in (
        "plain.csv --drop rows:3,17,20-29 --out c.csv",
        "plain.csv --relabel rows:3=dog --out c.csv --log l.csv",
        "plain.parquet --drop rows:0 --out c.parquet",
        "plain.jsonl --drop rows:0 --out c.jsonl",
        "plain.xlsx --drop rows:2 --out c.xlsx",
        "plain.csv.gz --drop rows:2 --out c.csv.gz",
        "plain.feather --drop rows:2 --out c.feather",
        "rich.csv --id id --label kind --relabel ids:p003=cat,p009=dog --out c.csv",
        "houses.csv --label price --correct rows:3=17.5 --out c.csv",
        "plain.csv --drop rows:99 --out c.csv",
        "plain.csv --drop 3 --out c.csv",
        "plain.csv --relabel rows:3 --out c.csv",
        "plain.csv --out c.csv",
        "plain.csv --drop rows:1 --out c.parquet",
        "plain.csv --drop rows:1 --relabel rows:1=dog --out c.csv",
        "rich.csv --drop ids:p003 --out c.csv",
        "plain.csv --decisions plain.csv --out c.csv",
        "plain.csv --relabel rows:3=bird --out c.csv",
    )
]
PAYOUT = [
    f"{VALUED} && payout v.parquet {more}"
    for more in (
        "--pot-cents 10000",
        "--pot-cents 10000 --out p.csv --report p.html",
        "--pot-cents 10000 --out p.parquet --json",
        "--pot-cents 10000 --out p.json --cap-cents 5000 --flooring point",
        "--pot-cents 10000 --floor-cents 100",
        "--pot-cents 10000 --minimum-cents 4000",
        "--pot-cents -1",
        "--pot-cents ten",
        "--pot-cents 10000 --within 0",
        "--pot-cents 10 --out p.doc",
        "",
    )
] + [
    "value rich.csv --owner owner --players owners --out v.parquet && payout v.parquet --pot-cents 9999 --out p.csv",
    "value plain.csv --out v.parquet && payout v.parquet --pot-cents 9",
    "payout plain.parquet --pot-cents 5",
    "payout none.parquet --pot-cents 5",
    "value rich.csv --out v.csv && payout v.csv --pot-cents 5",
]
LEDGER = "ledger create l.db --epsilon 4 --delta 1e-5 --data-set 'test 1'"
SPENT = [
    "--epsilon 0",
    "--epsilon 9",
    "--delta 2",
    "--owner owner",
    "--trees 3",
    "--kernel gaussian",
    "--mechanism cells",
    "--counted",
    "--points 10",
    "--radius -1",
    "--label z",
    "--metric manhattan",
    "--epsilon one",
    "--report r.pdf",
    "--standardize points",
    "--task regression",
    "--fill mean",
    "--nonsense",
]
BUDGET = (
    [
        LEDGER,
        f"{LEDGER} && ledger show l.db",
        f"{LEDGER} && ledger show l.db --json && ledger verify l.db && ledger verify l.db --json",
        f"{LEDGER} && {LEDGER}",
        f"{LEDGER} && ledger verify l.db --head 00",
        "ledger show none.db",
        "ledger show plain.csv",
        "ledger create l.db --epsilon -1 --delta 0",
        "ledger create l.db --epsilon 1 --delta 0 --filter gaussian",
        "ledger create l.db --epsilon 1 --delta 0 --unit silo",
        "ledger create l.db --epsilon 1 --delta 1e-5 --unit owner --adjacency replace-one --filter basic && ledger show l.db --json",
        "ledger",
        "ledger create",
        "ledger spend l.db",
    ]
    + [f"{LEDGER} && release plain.csv --label y --validation val.csv --ledger l.db --out-prices p.json --epsilon 1 --delta 1e-6 --report r.html {more} && ledger show l.db" for more in ("", *SPENT)]
    + [
        f"{LEDGER} && release plain.csv --label y --validation val.csv --ledger l.db --out-prices p.json --epsilon 3 --delta 1e-6 && appraise plain.csv --label y --prices p.json {more}"
        for more in ("", "--newcomer", "--out v.csv", "--json", "--label z", "--out v.doc")
    ]
    + [
        f"plan --label y --validation val.csv {more}"
        for more in (
            "--points 1000",
            "--points 1000 --epsilon 0.1,0.5,1",
            "--points 1000 --epsilon 1 --mechanisms table,cells",
            "--points 1000 --epsilon 1 --kernel gaussian --mechanisms table",
            "--points 1000 --trees 4 --leaves 6",
            "--points 1000 --points-per-owner 5",
            "--points 0",
            "--points 100 --epsilon x",
            "--points 100 --counted",
            "--points 100 --adjacency replace-one",
            "--points 100 --radius auto --standardize validation",
            "",
        )
    ]
    + [f"appraise plain.csv --label y --prices {more}" for more in ("none.json", "plain.csv", "all.npz")]
    + [
        f"{LEDGER} && release plain.csv --validation val.csv --ledger none.db --out-prices p.json --epsilon 1 --delta 1e-6",
        "release plain.csv",
        "attack plain.csv --label y --members 8 --nonmembers 8 --shadow 12 --shadow-sets 2 --held-out 20 --seed 0",
        "attack plain.csv",
        "attack wide.csv --method dp-tknn --members 8 --nonmembers 8 --shadow 12 --shadow-sets 2 --held-out 20 --epsilon 2",
        "audit --mechanism cells --epsilon 1 --delta 0 --runs 300 --canaries 20 --seed 0",
        "audit --epsilon 1 --delta 1e-5 --runs 300 --canaries 20 --seed 0",
        "audit --epsilon 1 --mechanism magic",
    ]
)
OTHER = [
    "",
    "vlaue plain.csv",
    "--verison",
    "--version",
    "embed plain.csv --out e.npz",
    "embed all.npz --out e.npz",
    "embed plain.csv --out e.csv",
    "embed none.csv --out e.npz",
    "embed plain.csv --text x0 --label y --out e.npz --components 0",
    "embed",
    "reproduce --list",
    "reproduce nonsense",
    "reproduce mislabel --quick --data none",
    "serve --workers 0 --data d",
    "work --data none",
    "market",
    "federate",
    "market verify plain.csv",
    "market tasks --url http://127.0.0.1:9 --token t",
    "market upload 1 plain.csv --receipt r.json --url http://127.0.0.1:9",
    "market backup copy --data none",
    "federate key",
    "federate key create k.json",
]
VERBS = [
    "",
    *(
        f"{verb} "
        for verb in ("demo", "inspect", "value", "clean", "payout", "plan", "release", "appraise", "attack", "audit", "embed", "reproduce", "serve", "work", "ledger", "federate", "market", "ledger create", "ledger show", "ledger verify")
    ),
]


def forked(words, source, sink, errors):
    """Run the command in a fork of this process; its exit code."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal.alarm(SECONDS)
    for handle, name, mode in ((0, source, os.O_RDONLY), (1, sink, os.O_WRONLY | os.O_CREAT), (2, errors, os.O_WRONLY | os.O_CREAT)):
        os.dup2(os.open(name, mode), handle)
    code = here(words)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def here(words):
    """Run the command in this process; its exit code."""
    warnings.filters[:] = FILTERS
    warnings._filters_mutated()
    sys.argv = ["thresher", *words]
    try:
        runpy.run_module("thresher", run_name="__main__", alter_sys=True)
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:  # noqa: BLE001 - as Python would
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


WARM = (
    "value plain.csv --trees 4 --out v.parquet --report r.html",
    "value rich.csv --owner owner --players owners --trees 4 --out w.csv",
    "value plain.csv --validation val.csv --method tknn --out t.csv --report t.html",
    "value plain.csv --validation val.csv --method knn --out k.csv",
    "value houses.csv --label price --trees 4 --task regression --out h.csv",
    "value plain.csv --validation val.csv --method tknn --radius 1 --memory 2GB --out m.csv",
    "inspect plain.xlsx",
    "plan --validation val.csv --points 99",
)


def warm():
    """Load packages and compiled kernels, for all forks; without threads, which no fork has."""
    threads, caught = os.environ.get("THRESHER_THREADS", "2"), signal.getsignal(signal.SIGINT)
    os.environ["THRESHER_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        os.chdir(folder)
        put(tables(), Path())
        for line in WARM:
            here(shlex.split(line))
        os.chdir("/")
    os.environ["THRESHER_THREADS"] = threads
    signal.signal(signal.SIGINT, caught)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def put(files, folder):
    """Write these files."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def alone(words, source, sink, errors):
    """Run the command in a process of its own; its exit code."""
    with open(source, "rb") as told, open(sink, "wb") as out, open(errors, "wb") as err:
        return subprocess.run([sys.executable, "-m", "thresher", *words], stdin=told, stdout=out, stderr=err, timeout=SECONDS).returncode


def contents(folder):
    """All files with their bytes."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def ran(line, run=forked, files=()):
    """What commands said, one after another, and the files that they left."""
    folder = Path("files")
    put({**tables(), **dict(files)}, folder)
    before = contents(folder)
    said = {}
    os.chdir(folder)
    for number, step in enumerate(line.split(" && ")):
        words = shlex.split(step)
        source = words.pop(words.index("<") + 1) if "<" in words else os.devnull
        code = run([word for word in words if word != "<"], source, "../out", "../err")
        said[f"{number}: {step}"] = [code, *(Path(name).read_bytes().decode() for name in ("../out", "../err"))]
        for name in ("../out", "../err"):
            Path(name).unlink()
    os.chdir("..")
    after = contents(folder)
    changed = [path for path in after if before.get(path) != after[path]]
    return [said, sorted(map(str, before.keys() - after.keys())), {str(path): list(lines_of_file(path, "")) for path in changed}]


def cases():
    """All runs by their command lines."""
    found = Cases()
    lines = [f"value {entry}{more}" for entry in VALUE["of a file"] for more in (" --out v.csv", " --out v.parquet")]
    lines += [f"value {entry} --out v.parquet" for entry in VALUE["by a method"] + VALUE["with options"]]
    lines += [
        f"value {entry} --out v.{suffix} --report r.html"
        for entry in (JUDGED, f"{JUDGED} --method knn", f"{JUDGED} --method tknn --radius 0.5", "rich.csv", "houses.csv --label price --task regression", "wide.csv")
        for suffix in ("csv", "feather")
    ]
    lines += [f"value {entry}" for entry in REFUSED] + CLEAN + PAYOUT + BUDGET + OTHER
    lines += [f"inspect {name}{more}" for name in tables() for more in ("", " --json")] + ["inspect parts", "inspect none.csv", "inspect plain.csv --label x", "inspect plain.csv --delimiter ;", "inspect", "inspect - < rich.csv"]
    lines += [f"value pieces/{name} --validation val.csv --label y --engine dask --out d{more}" for name, more in (("0.parquet", ""), ("'*.parquet'", " --method tknn --radius 0.5 --json"))]
    for line in lines:
        retrains = re.search(r"--method (leave|data|beta)-", line)  # in processes, which outlive a fork
        found.add(line, lambda line=line, run=alone if retrains else forked: ran(line, run))
    for name, text in UGLY.items():
        for line in ("inspect a.csv", "value a.csv --trees 20 --out v.csv", "value a.csv --validation val.csv --memory 2GB --out v.csv"):
            found.add(f"{name}: {line}", lambda line=line, text=text: ran(line, files={"a.csv": text}.items()))
    for line in [f"{verb}--help" for verb in VERBS] + [f"value {entry} --out v.parquet" for entry in VALUE["of a file"][:12]] + [f"value {entry}" for entry in REFUSED[:12]]:
        found.add(f"alone: {line}", lambda line=line: ran(line, alone))
    return found
