"""Campaigns of stages that last a moment."""

import sys

from hybridwatch_lab.gpu.campaign.plan import CampaignPlan, Stage
from hybridwatch_lab.gpu.campaign.runner import Campaign


def a_stage(name, code, *, limit_s=250.0, measures=False):
    """Make a stage that runs a line of Python."""
    return Stage(name, "why", limit_s, (sys.executable, "-c", code), measures)


def a_campaign(folder, *stages, seconds=600.0):
    """Make a campaign of these stages."""
    return Campaign(CampaignPlan(stages, {}), folder / "campaign", folder / "results", seconds)
