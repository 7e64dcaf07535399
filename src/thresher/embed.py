"""Embed texts and images as rows of numbers with a public model, and write them to .npz files."""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from thresher.array_types import Array, Bytes, Integers, Single
from thresher.errors import ExtraError, InputError
from thresher.files import check_free
from thresher.inputs.arrays import write_arrays
from thresher.inputs.checks import check_count, check_features, check_text, check_width
from thresher.inputs.labels import check_labels, class_list, label_array
from thresher.metrics import measure
from thresher.progress import progress_bar

Rows = Single

TEXT_PACKAGE = "sentence_transformers"
TEXT_MODEL, IMAGE_MODEL = "all-MiniLM-L6-v2", "resnet50"
SIDE, BATCH = 224, 32
CHUNK = 4096  # rows centered at a time, in float64
LARGEST = float(np.finfo(np.float32).max) / 2  # such rows fit in float32, centered or not
CENTER, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # red, green, blue of ImageNet


def embed_texts(texts: Sequence[str], *, model: str = TEXT_MODEL, progress: bool = False) -> Rows:
    """One row of numbers for each text, from a model of sentence-transformers.

    Parameters
    ----------
    texts
        The texts. The model cuts off texts that are too long for it.
    model
        The name of a model, downloaded if possible, or the folder of a model.
    progress
        Show a bar on standard error.

    Examples
    --------
    >>> from thresher.embed import embed_texts
    >>> embed_texts(["good", None])
    Traceback (most recent call last):
    thresher.errors.InputError: texts must hold strings, got None in row 1: drop it
    """
    found = check_texts("texts", texts)
    check_text("model", model, empty=False)
    package = _need(TEXT_PACKAGE, "embedding text", "sentence-transformers")
    try:
        network = package.SentenceTransformer(model)
    except Exception as failure:
        way_out = f"name a folder that holds one, or a model to download, such as {TEXT_MODEL}"
        raise _not_loaded(model, failure, way_out) from failure
    return np.asarray(network.encode(found, show_progress_bar=progress), np.float32)


def check_text_package() -> None:
    """Raise unless the package that embeds texts is installed."""
    if importlib.util.find_spec(TEXT_PACKAGE) is None:
        raise _lacking("embedding text", "sentence-transformers")


def check_texts(name: str, texts: object) -> list[str]:
    """`texts` as a list of strings; an error names the first row that is not a string."""
    if isinstance(texts, str | bytes) or not hasattr(texts, "__iter__"):
        raise InputError(f"{name} must be a list of strings, got {type(texts).__name__}")
    found = list(texts)
    if not found:
        raise InputError(f"{name} is empty: at least one text is needed")
    for row, text in enumerate(found):
        if not isinstance(text, str):
            raise InputError(f"{name} must hold strings, got {text!r:.40} in row {row}: drop it")
    return [str(text) for text in found]  # NumPy's strings as Python's


def embed_images(images: Any, *, model: str = IMAGE_MODEL, progress: bool = False) -> Rows:
    """One row of 2048 numbers for each image: the output of the global pool of a ResNet50.

    Parameters
    ----------
    images
        Numbers 0 to 255 (uint8) of shape (n, height, width) or (n, height, width, 3). They are
        resized to 224 by 224 and normalized to the mean and spread of ImageNet's colors.
    model
        "resnet50" for the weights of torchvision, downloaded if possible, or a file with the state
        dict of a ResNet50. Its last layer may have any size or be missing.
    progress
        Show a bar on standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher.embed import embed_images
    >>> embed_images(np.zeros((2, 8, 8)))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    thresher.errors.InputError: images must be uint8 of shape ..., got float64 of shape (2, 8, 8)
    """
    pixels = check_images("images", images)
    torch = _need("torch", "embedding images", "torchvision")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network = _resnet(torch, check_text("model", model, empty=False)).to(device).eval()
    rows = np.empty((len(pixels), 2048), np.float32)
    with torch.no_grad(), progress_bar("embed", len(rows), show=progress, unit="images") as advance:
        for lo in range(0, len(rows), BATCH):
            part = pixels[lo : lo + BATCH]
            rows[lo : lo + BATCH] = network(_batch(torch, part).to(device)).cpu().numpy()
            if advance:
                advance(len(part))
    return rows


def check_images(name: str, images: object) -> Bytes:
    """`images` as an array of gray or colored images; raise if they are not."""
    array: Array = np.asarray(images)
    shaped = array.ndim == 3 or (array.ndim == 4 and array.shape[3] == 3)
    if array.dtype != np.uint8 or not shaped or not array.size:
        wanted = "uint8 of shape (n, height, width) or (n, height, width, 3), n >= 1"
        raise InputError(f"{name} must be {wanted}, got {array.dtype} of shape {array.shape}")
    return array


def _resnet(torch: Any, model: str) -> Any:
    models = _need("torchvision.models", "embedding images", "torchvision")
    known = model == IMAGE_MODEL
    try:
        network = models.resnet50(weights="DEFAULT" if known else None)
        network.fc = torch.nn.Identity()  # what goes into the last layer comes out
        if not known:
            state = torch.load(model, map_location="cpu", weights_only=True)
            network.load_state_dict({k: v for k, v in state.items() if not k.startswith("fc.")})
    except Exception as failure:
        way_out = f"name a file with the state dict of a ResNet50, or {IMAGE_MODEL}"
        raise _not_loaded(model, failure, way_out) from failure
    return network


def _batch(torch: Any, pixels: Bytes) -> Any:
    colors = pixels if pixels.ndim == 4 else pixels[..., None]
    scaled = (colors / 255 - np.array(CENTER)) / SPREAD  # gray in three colors
    planes = torch.from_numpy(np.ascontiguousarray(np.moveaxis(scaled, 3, 1), np.float32))
    return torch.nn.functional.interpolate(
        planes, (SIDE, SIDE), mode="bilinear", antialias=True, align_corners=False
    )


def leading_components(X: Any, X_val: Any, count: int) -> tuple[Rows, Rows]:
    """Project X and X_val on the `count` leading principal components of X, largest variance first.

    X_val is shifted and rotated in the same way, and does not influence the components. These are
    eigenvectors of the covariance of X, in float64; the largest entry of each is positive. For n
    rows of width d this takes n d^2 + d^3 operations, and memory for d^2 numbers.

    Examples
    --------
    >>> from thresher.embed import leading_components
    >>> X, X_val = leading_components([[1, 0], [1, 2], [1, 4]], [[1, 3]], 1)
    >>> X.tolist(), X_val.tolist()
    ([[-2.0], [0.0], [2.0]], [[1.0]])
    """
    points, validation = _check_rows(X, X_val)
    number = check_components("count", count, *points.shape)
    return project_on_components(points, validation, number)


def project_on_components(points: Array, validation: Array, count: int) -> tuple[Rows, Rows]:
    """`leading_components` for rows and a count that were checked."""
    mean = points.mean(axis=0, dtype=np.float64)
    scatter = np.zeros((len(mean), len(mean)))
    for lo in range(0, len(points), CHUNK):
        centered = points[lo : lo + CHUNK] - mean
        scatter += centered.T @ centered
    axes = np.linalg.eigh(scatter).eigenvectors[:, ::-1][:, :count]  # eigh: smallest first
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(count)])

    def project(rows: Array) -> Rows:
        parts = [(rows[lo : lo + CHUNK] - mean) @ axes for lo in range(0, len(rows), CHUNK)]
        return np.concatenate(parts).astype(np.float32)

    return project(points), project(validation)


def check_components(name: str, count: object, rows: int, width: int) -> int:
    """`count` as an int; raise if this many rows of this width have fewer components."""
    found, most = check_count(name, count), min(rows - 1, width)
    if found > most:
        raise InputError(f"{name} must be <= {most} for {rows} rows of width {width}, got {found}")
    return found


def _check_rows(X: Any, X_val: Any) -> tuple[Array, Array]:
    rows = measure("X", check_features("X", X), cosine=False)
    rows_val = measure("X_val", check_features("X_val", X_val), cosine=False)
    check_width("X_val", rows_val.array, "X", rows.width)
    if max(rows.largest_norm(), rows_val.largest_norm()) > LARGEST:
        raise InputError("X or X_val has numbers that float32 cannot hold: rescale them")
    return rows.array, rows_val.array


def write_embedded(
    path: str | Path, X: Any, y: Any, X_val: Any, y_val: Any, about: Mapping[str, Any],
    *, force: bool = False,
) -> None:  # fmt: skip
    """Write rows and labels as an .npz file, completely or not at all, and without pickles.

    Its arrays are X and X_val (float32), y and y_val (integers), `about` (how the rows were made,
    as JSON) and, if labels are not integers, `classes`: the labels behind 0, 1 and so on. X_val and
    y_val may be None, and then they are left out. An existing file is replaced only with `force`.

    Examples
    --------
    >>> write_embedded("pets.csv", [[0.5], [1.5]], ["dog", "cat"], [[2.5]], ["dog"], {})
    Traceback (most recent call last):
    thresher.errors.InputError: the file to write must end in .npz, got 'pets.csv'
    """
    check_npz(path, force=force)
    alone = X_val is None
    points, validation = _check_rows(X, X if alone else X_val)
    codes, codes_val, classes = code_labels(y, y if alone else y_val, len(points), len(validation))
    arrays: dict[str, Any] = {"X": points.astype(np.float32, copy=False), "y": codes}
    if not alone:
        arrays |= {"X_val": validation.astype(np.float32, copy=False), "y_val": codes_val}
    arrays |= {"about": json.dumps(dict(about))} | ({} if classes is None else {"classes": classes})
    write_arrays(path, arrays)


def check_npz(path: str | Path, *, force: bool = False) -> None:
    """Raise unless an .npz file can be written there; replacing an existing file takes `force`."""
    if not str(path).endswith(".npz"):
        raise InputError(f"the file to write must end in .npz, got {str(path)!r}")
    check_free(Path(path), force=force)


def code_labels(y: Any, y_val: Any, count: int, count_val: int) -> tuple[Integers, Integers, Any]:
    """Labels as integers, and an array of the classes behind them; None if they were integers."""
    raw, raw_val = check_labels("y", y, count), check_labels("y_val", y_val, count_val)
    found = class_list(None, raw, raw_val)
    names = label_array(found.labels)
    if names.dtype == object or names.tolist() != list(found.labels):
        kinds = ", ".join(sorted({type(label).__name__ for label in found.labels}))
        raise InputError(f"labels must be all integers or all strings, got {kinds}")
    codes, codes_val = (found.encode("y", part).astype(np.int64) for part in (raw, raw_val))
    whole = names.dtype.kind == "i"
    return (names[codes], names[codes_val], None) if whole else (codes, codes_val, names)


def _need(module: str, purpose: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        raise _lacking(purpose, package) from missing


def _lacking(purpose: str, package: str) -> ExtraError:
    return ExtraError(f"{purpose} needs {package}: pip install {package}")


def _not_loaded(model: str, failure: Exception, way_out: str) -> InputError:
    why = f"{type(failure).__name__}: {failure}".splitlines()[0].rstrip(" .:")
    return InputError(f"model {model!r} cannot be loaded ({why}): {way_out}")
