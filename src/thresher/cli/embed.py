"""`thresher embed`: texts and images as rows of numbers."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Annotated, Any

from thresher.cli.options import Force, argument, given
from thresher.cli.words import say, show_json
from thresher.errors import InputError
from thresher.version import __version__

ARRAYS = ("X", "y", "X_val", "y_val")
LIBRARIES = {
    "texts": ("sentence-transformers", "transformers", "torch", "numpy"),
    "images": ("torchvision", "torch", "numpy"),
}


def embed(
    source: Annotated[Path, argument("Texts: a table. Images: .npz with X, y, X_val, y_val.")],
    out: Annotated[Path, given("Where rows and labels are written: .npz.", "--out", "-o")],
    validation: Annotated[
        Path | None, given("Texts of the validation set, if there is one.")
    ] = None,
    text: Annotated[str | None, given("The column of texts; text if not given.")] = None,
    label: Annotated[str | None, given("The column of labels; label if not given.")] = None,
    model: Annotated[
        str | None, given("A name, folder or file: all-MiniLM-L6-v2 for texts, else resnet50.")
    ] = None,
    components: Annotated[
        int | None,
        given("How many principal components to keep; if not given, rows are not reduced."),
    ] = None,
    held_out: Annotated[
        float | None,
        given("The share of each class to hold out as validation rows; none if not given."),
    ] = None,
    seed: Annotated[int | None, given("The seed for the rows held out; 0 if not given.")] = None,
    force: Force = False,
) -> None:
    """Turn texts or images into rows of numbers, with a public model.

    Texts need sentence-transformers, images need torchvision. The model is a name, which these
    packages download, or a folder or file of yours. --components reduces all rows to the principal
    components of the points alone.

    Example: thresher embed texts.csv --out agnews.npz

    Example: thresher embed texts.csv --validation val.csv --out agnews.npz

    Example: thresher embed texts.parquet --text body --label topic --held-out 0.2 --seed 1
    --model models/all-MiniLM-L6-v2 --out topics.npz

    Example: thresher embed cifar10-images.npz --model resnet50.pth --components 256
    --out cifar10.npz
    """
    from thresher.embed import IMAGE_MODEL, TEXT_MODEL, check_npz, embed_images, embed_texts
    from thresher.inputs.checks import check_count

    check_npz(out, force=force)
    if components is not None:
        check_count("--components", components)
    about: dict[str, Any] = {"components": components}
    if source.suffix == ".npz":
        given = {"validation": validation, "text": text, "label": label}
        _refuse(given | {"held-out": held_out, "seed": seed}, "texts, not with images")
        about |= {"kind": "images", "model": IMAGE_MODEL if model is None else model}
        _embed_and_write(_images(source), embed_images, about, out, force=force)
        return
    data: tuple[Any, Any, Any, Any]
    columns = ("text" if text is None else text, "label" if label is None else label)
    about |= {"kind": "texts", "model": TEXT_MODEL if model is None else model}
    if validation is not None:
        _refuse({"held-out": held_out, "seed": seed}, "one table, not with --validation")
        data = (*_texts(source, *columns), *_texts(validation, *columns))
    elif held_out is not None:
        about |= {"held_out": held_out, "seed": seed or 0}
        data = _split(*_texts(source, *columns), share=held_out, seed=about["seed"])
    else:
        _refuse({"seed": seed}, "--held-out")
        data = (*_texts(source, *columns), None, None)
    _embed_and_write(data, embed_texts, about, out, force=force)


def _refuse(given: dict[str, Any], place: str) -> None:
    for name, entry in given.items():
        if entry is not None:
            raise InputError(f"--{name} can only be used with {place}, got {entry}")


def _embed_and_write(
    data: tuple[Any, Any, Any, Any], run: Callable[..., Any], about: dict[str, Any], out: Path,
    *, force: bool,
) -> None:  # fmt: skip
    from thresher.embed import check_components, code_labels, leading_components, write_embedded

    X, y, X_val, y_val = data
    alone, count = X_val is None, about["components"]
    classes = code_labels(y, *((y, len(X), len(X)) if alone else (y_val, len(X), len(X_val))))[2]
    embedded = partial(run, model=about["model"], progress=sys.stderr.isatty())
    first = embedded(X[:1] if alone else X_val)  # the smaller part: refused sooner
    if count is not None:
        check_components("--components", count, len(X), first.shape[1])
    X, X_val = embedded(X), None if alone else first
    if count is not None:
        X, X_val = leading_components(X, X if alone else X_val, count)
        X_val = None if alone else X_val
    about |= {"versions": _versions(LIBRARIES[about["kind"]])}
    write_embedded(out, X, y, X_val, y_val, about, force=force)
    rows = 0 if X_val is None else len(X_val)
    beside = "" if alone else f" and {rows} validation rows"
    say(f"wrote {out}: {len(X)} points{beside} of width {X.shape[1]}")
    sizes = {"points": len(X), "validation": rows, "width": X.shape[1]}
    names = None if classes is None else classes.tolist()
    show_json({"out": str(out), **sizes, "classes": names, **about})


def _versions(packages: tuple[str, ...]) -> dict[str, str]:
    from importlib import metadata

    found = {"thresher": __version__}
    for package in packages:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def _images(path: Path) -> tuple[Any, Any, Any, Any]:
    """The arrays of an .npz file of images."""
    from thresher.embed import check_images
    from thresher.files import reading
    from thresher.inputs.arrays import load_arrays

    with reading(path, "set of images") as found:
        stored = load_arrays(found)
        for name in ARRAYS:
            if name not in stored:
                raise InputError(f"it has no array {name!r}: it has {', '.join(stored)}")
        X, y, X_val, y_val = (stored[name] for name in ARRAYS)
        return check_images("X", X), y, check_images("X_val", X_val), y_val


def _texts(path: Path, text: str, label: str) -> tuple[list[str], list[Any]]:
    """The texts and the labels of a table."""
    from thresher.embed import check_texts
    from thresher.inputs.labels import check_labels
    from thresher.tables.columns import entries_of
    from thresher.tables.label_column import plain_labels
    from thresher.tables.reader import read_table

    table = read_table(path)
    texts = check_texts(f"{table.name} column {text!r}", entries_of(table, text, "text"))
    labels = list(check_labels(f"{table.name} column {label!r}", entries_of(table, label, "label")))
    return texts, list(plain_labels(labels)) if table.is_text else labels


def _split(
    texts: list[str], labels: list[Any], *, share: float, seed: int
) -> tuple[Any, Any, Any, Any]:
    """Points and validation rows, in the order of the table."""
    import numpy as np

    from thresher.tables.holdout import hold_out

    times = Counter(texts)  # not by NumPy, which drops zeros at the end of a text
    twins = np.array([times[text] > 1 for text in texts], np.bool_)
    out = hold_out(labels, share, seed, twins=twins, name="held_out")
    X, y, X_val, y_val = (
        list(compress(column, which)) for which in (~out, out) for column in (texts, labels)
    )
    return X, y, X_val, y_val
