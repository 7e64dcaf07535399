"""Values although nobody holds all the points: silos count at home, and only a noisy sum leaves.

`Task` says what is counted, by whom and at what budget. `Coordinator` adds up; each `Silo` counts
its own points and values them at home. docs/federation.md has the protocol and what it claims.
"""

from __future__ import annotations

from thresher.lazy_names import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from thresher.federate.coordinator import Coordinator
    from thresher.federate.keys import Key
    from thresher.federate.plausibility import Plausibility, check_plausibility
    from thresher.federate.primitives import ProtocolError
    from thresher.federate.signed_task import Task
    from thresher.federate.silo import Silo
    from thresher.privacy.leaf_setting import public_forest

_LATER = {
    "Coordinator": ".coordinator",
    "Key": ".keys",
    "Plausibility": ".plausibility",
    "ProtocolError": ".primitives",
    "Silo": ".silo",
    "Task": ".signed_task",
    "check_plausibility": ".plausibility",
    "public_forest": "..privacy.leaf_setting",
}
__all__ = [
    "Coordinator", "Key", "Plausibility", "ProtocolError", "Silo", "Task", "check_plausibility",
    "public_forest",
]  # fmt: skip
if not TYPE_CHECKING:  # a type checker would take any name for one of these
    __getattr__ = lazy_names(__name__, _LATER)  # the protocol itself needs no accountant
