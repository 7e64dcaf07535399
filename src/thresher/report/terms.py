"""Words of the page that are explained where they stand: on hover, and on a tap."""

from __future__ import annotations

TERMS = {
    "probably wrong": "How many labels are expected to be wrong. It is an estimate: the list says "
    "which rows to look at first.",
    "look wrong": "How many labels the evidence speaks against. Many of them may be right.",
    "rows to review": "Rows whose label is probably wrong or doubtful, and copies that have "
    "different labels. The list below starts with the clearest cases.",
    "wrong labels": "How many labels are expected to be wrong.",
    "negative values": "Rows that make the others harder to get right: without them, predictions "
    "would be better.",
    "correct": "The number is far from what the evidence expects, and would help if it were that.",
    "relabel": "The evidence clearly speaks for another label.",
    "drop": "The evidence clearly speaks against the label, but not for any other label.",
    "inspect": "The evidence speaks against the label, but less clearly.",
    "keep": "The evidence does not speak against the label.",
    "outlier": "Hardly anything is like this row, so nothing can be said about it.",
    "covered": "The share of validation points that have a row within the radius.",
}


def term_id(name: str) -> str:
    """The id of an explanation on the page."""
    return f"term-{name.replace(' ', '-')}"
