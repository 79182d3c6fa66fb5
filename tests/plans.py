"""What tests ask of plans, which some of the configurations have not (see ``conftest``)."""

from __future__ import annotations

import reactgrad as rg


def keeps_plans(graph: rg.Graph) -> bool:
    """Whether a read that comes again finds the plan of the one before."""
    scheduler = graph._scheduler
    return scheduler.plans.enabled and not scheduler.distrust
