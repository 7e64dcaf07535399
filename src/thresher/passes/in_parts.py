"""tknn_shapley for points that are read in parts."""

from __future__ import annotations

from contextlib import closing
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.checks import check_columns
from thresher.errors import InputError
from thresher.games.semivalues import Semivalue, semivalue_name
from thresher.inputs import Validation, check_validation, tell_of_twins, warn_of_labels
from thresher.labels import check_labels, check_owners
from thresher.neighbors.ball import Neighbors
from thresher.passes.checkpoint import Checkpoint
from thresher.passes.memory import check_memory
from thresher.passes.parts import ArrayParts, Place, Source
from thresher.passes.priced import Priced
from thresher.passes.result import warn_of_reach
from thresher.passes.streaming import Run, points_changed
from thresher.progress import Advance, progress_bar
from thresher.valuation import Valuation

VALUE = 8  # bytes of a value, all of which are held


def value_in_parts(
    X: Any, y: Any, X_val: Any, y_val: Any, *, radius: float, metric: str, semivalue: Semivalue,
    classes: Any, owners: Any, mean: bool, progress: bool, neighbors: Neighbors = "auto",
    memory: int | str | None, checkpoint: str | PathLike[str] | None, threaded: bool = True,
) -> Valuation:  # fmt: skip
    """`tknn_shapley` in two passes over parts; without `threaded` parts are not read ahead."""
    most = None if memory is None else check_memory(memory)
    validation = check_validation(X_val, y_val, metric=metric, classes=classes)
    source = _source(X, y, validation)
    known_owners = None if source.count is None else check_owners(owners, source.count)
    labels = _as_list(check_labels("y_val", y_val))
    about = {
        "radius": radius, "metric": validation.metric, "semivalue": semivalue_name(semivalue),
        "mean": mean, "classes": None if classes is None else repr(validation.classes.labels),
        "points": source.identity(), "validation": validation.digest(),
    }  # fmt: skip
    with Checkpoint(checkpoint, about) as kept:
        run = Run(
            source, validation, labels, classes, radius, semivalue, kept, most, neighbors,
            held=VALUE, threaded=threaded,
        )  # fmt: skip
        passes = 2 * (source.count or 0)
        with progress_bar("tknn-shapley", passes, show=progress, unit="rows") as advance:
            priced = run.count(advance)
            if advance is not None:
                advance(0, total=2 * priced.rows)
            values = _values(run, priced, len(validation) if mean else 1, advance)
        known_owners = known_owners or check_owners(owners, len(values))
        _warn(run, priced, classes)
        found = priced.valuation(values, semivalue, mean=mean, owners=known_owners)
        kept.finish()
        return found


def _source(X: Any, y: Any, validation: Validation) -> Source:
    """Where the points come from."""
    if hasattr(X, "source_of_parts"):
        if y is not None:
            raise InputError("y must be None where X is a Scan, which names its column of labels")
        if validation.rows is None:
            raise InputError("a Scan has features: metric must be 'cosine' or 'euclidean'")
        scanned: Source = X.source_of_parts()
        check_columns("X", X.names, "X_val", validation.columns)
        return scanned
    source = ArrayParts(X, y, precomputed=validation.rows is None)
    source.check_names(validation)
    return source


def _values(
    run: Run, priced: Priced, divisor: float, advance: Advance | None
) -> NDArray[np.float64]:
    """The second pass: values that were kept, then those that are still to be computed."""
    values = np.empty(priced.rows)
    place, prints = Place(), 0
    while (found := run.checkpoint.load_arrays(f"values-{place.row}")) is not None:
        entry, arrays = found
        values[place.row : place.row + len(arrays["values"])] = arrays["values"]
        place, prints = Place(*entry["after"]), entry["prints"]
    if advance is not None:
        advance(place.row)
    with closing(run.coded(priced, place, prints, advance)) as parts:
        for part, points, total, way in parts:
            if part.first + len(part) > len(values):
                raise points_changed()
            some = priced.values(points, divisor, way)
            values[part.first : part.first + len(part)] = some
            entry = {"after": list(part.after), "prints": total}
            run.checkpoint.save_arrays(f"values-{part.first}", entry, values=some)
    return values


def _warn(run: Run, priced: Priced, classes: Any) -> None:
    """The warnings of `tknn_shapley`, once all points were seen."""
    tally, ours = priced.tally, list(priced.meaning.values())
    final = priced.prices.validation
    theirs = [final.classes.labels[code] for code in dict.fromkeys(final.codes.tolist())]
    if classes is None:
        warn_of_labels(ours, theirs, stacklevel=5)
    tell_of_twins(int(tally.twins.sum()), run.validation, stacklevel=5)
    if not tally.counts.any():
        warn_of_reach(run.radius, stacklevel=5)


def _as_list(labels: Any) -> list[Any]:
    return labels if isinstance(labels, list) else labels.tolist()
