"""Attacks on values, and audits of the privacy that releases claim."""

from thresher.attack.attacked_methods import DPTKNN, KNN, TKNN, Recomputed

__all__ = ["DPTKNN", "KNN", "TKNN", "Recomputed"]
