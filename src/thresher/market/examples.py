"""Examples in the documentation of the HTTP interface."""

from __future__ import annotations

from typing import Any

TASK, OWNER, UPLOAD, MOMENT = (
    "6f1c2a9b04d7e385", "a3b9c07f5d214e68", "0e7d51c89ab2f436", "2027-01-15T09:30:00.000000Z"
)  # fmt: skip
TOKEN = "thresher-a3b9c07f5d214e68-" + "abcdefghijklmnopqrstuvwxyz234567" + "abcdefghijklmnopqrst"
COMMITMENT = {"owner": OWNER, "time": MOMENT, "commitment": "9f" * 32, "withdrawn": False}
RECEIPT = {
    "upload": UPLOAD, "task": TASK, "owner": OWNER, "time": MOMENT, "rows": 50,
    "commitment": "9f" * 32, "replaces": None, "format": "thresher.receipt/1", "key": "5c" * 32,
    "signature": "c2lnbmF0dXJl",
}  # fmt: skip
LINE = {
    "cents": 14_250, "later": 0, "low": 11_800.5, "high": 16_700.5, "clipped": 0.02,
    "value": 0.0314, "value_low": 0.0262, "value_high": 0.0366, "rows": 50, "personal_epsilon": 1.4,
}  # fmt: skip
PAYMENT = {"owner": OWNER, "name": "Hospital North", "cents": 14_250, "later": 0}
OTHER = {
    "near": "in the same leaf of 16 trees", "relative_error": 0.15, "rank_correlation": 0.95,
}  # fmt: skip
DRAFT: dict[str, Any] = {
    "title": "Sick or well?", "label": "diagnosis", "pot_cents": 1_000_000, "epsilon": 2.0,
    "delta": 1e-6, "rows_per_owner": 50, "owners": 100, "opens": "2027-01-01T00:00:00Z",
    "closes": "2927-02-01T00:00:00Z", "classes": ["sick", "well"], "radius": 0.6,
}  # fmt: skip
TERMS = {name: DRAFT[name] for name in DRAFT if name not in {"title", "opens", "closes"}}
ROWS = "age,pressure,diagnosis\n61,142,sick\n48,118,well\n"
JSON_ROWS = [{"age": 61, "pressure": 142, "diagnosis": "sick"}]
FILES: dict[str, Any] = {  # the kinds of file that are taken and given
    "text/csv": {"schema": {"type": "string"}, "example": ROWS},
    "application/vnd.apache.parquet": {
        "schema": {"type": "string", "format": "binary"}, "example": "PAR1...",
    },
    "application/json": {
        "schema": {"type": "array", "items": {"type": "object"}}, "example": JSON_ROWS,
    },
}  # fmt: skip
FILE_IN = {"requestBody": {"required": True, "content": FILES}}
RECORD = {
    "mechanism": "table", "unit": "owner", "adjacency": "add-remove", "epsilon": 2.0,
    "delta": 1e-6, "data_version": f"task {TASK}", "ledger": {"entry": 1},
}  # fmt: skip
RELEASE = {
    "format": "thresher.release/1", "record": RECORD, "table": [[313089, 236076]],
    "relative_error": 0.06, "prices": {"format": "thresher.games.semivalues/1"},
}  # fmt: skip
PAYOUT = {
    "format": "thresher.private-payout/1", "pot": 1_000_000, "rate": 12300.3, "total": 81.3,
    "overshoot": 5116.3, "ceiling": 1_000_000.0, "paid_low": 620_400.2, "paid_high": 1_080_300.8,
    "pay": "estimate", "basis": "gains", "release": RECORD,
}  # fmt: skip
EXPORT = {
    "format": "thresher.market-export/1", "key": "5c" * 32, "ledger": [],
    "tasks": [
        {
            "id": TASK, "title": "Sick or well?", "state": "paid", "terms": TERMS,
            "roster": [{"id": OWNER, "name": "Hospital North"}], "commitments": [COMMITMENT],
            "release": RELEASE, "payout": PAYOUT,
        }
    ],
}  # fmt: skip


def given(content: Any, kind: str = "application/json") -> dict[int | str, dict[str, Any]]:
    """Document an answer with an example."""
    schema = {"type": "object"} if isinstance(content, dict) else {"type": "string"}
    return {200: {"content": {kind: {"schema": schema, "example": content}}}}
