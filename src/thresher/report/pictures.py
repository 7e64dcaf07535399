"""Pictures of rows, small enough to be part of the page."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from thresher.errors import require

SIDE = 160  # pixels of the longer side
QUALITY = 60
MOST_BYTES = 1_500_000  # of all pictures on a page; rows further down the list have none


class Pictures:
    """The picture file of each row, by name, seen from the folder of the table."""

    def __init__(self, folder: Path, names: Sequence[Any]) -> None:
        self.folder, self.names, self.left = folder, names, MOST_BYTES
        self.image = require("PIL.Image", purpose="pictures in a report", extra="report")

    def address(self, row: int) -> str | None:
        """The small picture itself as a data URL; None if there is none that can be read."""
        name = self.names[row]
        if name is None or self.left <= 0:
            return None
        try:
            with self.image.open(self.folder / str(name)) as picture:
                small = picture.convert("RGB")
                small.thumbnail((SIDE, SIDE))
        except (OSError, ValueError, self.image.DecompressionBombError):
            return None
        out = io.BytesIO()
        small.save(out, "WEBP", quality=QUALITY)
        address = "data:image/webp;base64," + base64.b64encode(out.getvalue()).decode("ascii")
        self.left -= len(address)
        return address
