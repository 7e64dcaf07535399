"""The page of a new task: the buyer's choices, with their usual values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import PurePath
from types import MappingProxyType
from typing import Annotated, Any

from fastapi import Form, Request, UploadFile
from starlette.responses import RedirectResponse, Response

from thresher.market import members, tasks
from thresher.market.callers import InMarket
from thresher.market.questions import KINDS
from thresher.market.refusals import Refusal, unusable
from thresher.market.terms import KERNELS, PAYS, Terms
from thresher.market.times import now
from thresher.market.web import Reader, Writer, new_router, page

router = new_router()
OPTIONAL = {"categorical", "classes", "fill", "opens", "radius", "trees"}
SCALINGS = ("by the validation set", "none")
CHOICES = {"kernel": KERNELS, "scaling": SCALINGS, "pay": PAYS}
LOCAL = "%Y-%m-%dT%H:%M"  # as a field of a page writes a time


@router.get("/new")
def new(request: Request, reader: Reader) -> Response:
    """The form of a new task."""
    members.require_role(reader, "buyer")
    return page(request, reader, "new.html.jinja", fields=_fields())


@router.post("/new")
def make(
    request: Request, market: InMarket, writer: Writer, validation: UploadFile,
    title: Annotated[str, Form()], label: Annotated[str, Form()], pot: Annotated[float, Form()],
    epsilon: Annotated[float, Form()], delta: Annotated[float, Form()],
    rows_per_owner: Annotated[int, Form()], owners: Annotated[int, Form()],
    closes: Annotated[datetime, Form()], opens: Annotated[str, Form()] = "",
    classes: Annotated[str, Form()] = "", scaling: Annotated[str, Form()] = SCALINGS[0],
    radius: Annotated[str, Form()] = "", kernel: Annotated[str, Form()] = KERNELS[0],
    categorical: Annotated[str, Form()] = "", fill: Annotated[str, Form()] = "",
    trees: Annotated[str, Form()] = "", pay: Annotated[str, Form()] = PAYS[0],
) -> Response:  # fmt: skip
    """Create a draft from the form."""
    members.require_role(writer, "buyer")
    try:
        terms = Terms(
            label, round(100 * pot), epsilon, delta, rows_per_owner, owners,
            radius=float(radius) if radius.strip() else None, kernel=kernel,
            categorical=_listed(categorical), fill=fill.strip() or None, pay=pay,
            trees=int(trees) if trees.strip() else None, classes=_listed(classes) or None,
            standardize=scaling == SCALINGS[0],
        )  # fmt: skip
        begins = _utc(datetime.fromisoformat(opens)) if opens.strip() else now()
        with market.database.writing() as session:
            task = tasks.draft(session, writer, title, terms, begins, _utc(closes))
            content = validation.file.read()
            tasks.set_validation(session, writer, task.id, content, kind_of(validation))
    except (OverflowError, Refusal, ValueError) as wrong:
        typed = {
            "title": title, "label": label, "pot": pot, "owners": owners, "delta": delta,
            "rows_per_owner": rows_per_owner, "epsilon": epsilon, "radius": radius,
            "closes": f"{closes:{LOCAL}}", "kernel": kernel, "categorical": categorical,
            "fill": fill, "trees": trees, "opens": opens, "classes": classes, "scaling": scaling,
            "pay": pay,
        }  # fmt: skip
        return page(
            request, writer, "new.html.jinja", fields=_fields(typed), problem=str(wrong),
            status=422,
        )  # fmt: skip
    return RedirectResponse(f"/tasks/{task.id}", 303)


def kind_of(file: UploadFile) -> str:
    """The kind of a file, judging by its name."""
    kind = PurePath(file.filename or "").suffix.lstrip(".").lower()
    if kind not in KINDS.values():
        raise unusable(f"the file name must end in .{' or .'.join(KINDS.values())}")
    return kind


def _fields(typed: Mapping[str, Any] = MappingProxyType({})) -> list[dict[str, Any]]:
    """The fields of a new task, with what was typed or their usual values."""
    usual = {
        "pot": "1000", "owners": "100", "rows_per_owner": "50", "epsilon": "2",
        "delta": "0.000001", "closes": f"{now() + timedelta(days=14):%Y-%m-%dT12:00}",
    }  # fmt: skip
    rows = [
        ("title", "Title", "text", "", "What owners read first."),
        ("label", "Label", "text", "", "The column of the validation set that has the labels."),
        ("pot", "Pot", "number", "0.01", "What you pay in all, such as 1000 or 999.50."),
        ("owners", "Owners", "number", "1", "About how many owners you expect."),
        ("rows_per_owner", "Rows per owner", "number", "1", "About how many rows you expect from "
         "each owner."),
        ("epsilon", "Epsilon", "number", "any", "How much privacy the task may cost an owner. A "
         "smaller epsilon protects owners better and makes pay less exact."),
        ("delta", "Delta", "number", "any", "The chance that the guarantee fails. Choose less "
         "than 1 divided by the number of all rows."),
        ("opens", "Opens", "datetime-local", "", "In UTC. If you leave it empty, owners can "
         "submit rows as soon as you publish the task."),
        ("closes", "Closes", "datetime-local", "", "In UTC. You can close earlier."),
        ("pay", "Pay", "select", "", "Estimate pays what the release says. Lower pays the lower "
         "end of its interval now, and the rest may follow after a later release."),
        ("classes", "Classes", "text", "", "All labels that owners may use, separated by commas. "
         "If you leave it empty, they are those of the validation set."),
        ("scaling", "Scaling", "select", "", "By the validation set: the mean of each column "
         "becomes 0, and its standard deviation 1. None: distances use columns as they are."),
        ("categorical", "Categories", "text", "", "Columns that do not hold numbers, such as "
         "ward or sex, separated by commas."),
        ("fill", "Missing numbers", "text", "", "What replaces them: median, zero or a number. "
         "If you leave it empty, rows with gaps are refused."),
        ("radius", "Radius", "number", "any", "Rows within this distance of a validation point "
         "count. If you leave it empty, the market suggests one from the validation set."),
        ("kernel", "Weights", "select", "", "Box counts all rows within the radius equally. The "
         "others give more weight to nearer rows."),
        ("trees", "Trees", "number", "1", "Use trees instead of a radius: rows count if they are "
         "in the same leaf of a tree. This is how many trees are grown on the validation set. "
         "Choose a small number, such as 16."),
    ]  # fmt: skip
    names = ("name", "label", "type", "step", "hint")
    return [
        {
            "value": (usual | dict(typed)).get(row[0], ""), "required": row[0] not in OPTIONAL,
            "choices": CHOICES.get(row[0], ()), **dict(zip(names, row, strict=True)),
        }
        for row in rows
    ]  # fmt: skip


def _listed(text: str) -> tuple[str, ...]:
    """The entries of a field that are separated by commas."""
    return tuple(filter(None, map(str.strip, text.split(","))))


def _utc(time: datetime) -> datetime:
    """A time from a form, which has no zone, in UTC."""
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time
