"""A campaign: what a rented GPU is for, stage by stage, in order of worth.

A stage is a command with a limit of its own. What it measured is on disk before the next one
begins, so what the end of the rented time cuts off is lost alone.
"""

from hybridwatch_lab.gpu.campaign.journal import CampaignJournal, End, StageEntry
from hybridwatch_lab.gpu.campaign.plan import CampaignPlan, Stage, load_plan
from hybridwatch_lab.gpu.campaign.runner import Campaign, run_campaign

__all__ = [
    "Campaign",
    "CampaignJournal",
    "CampaignPlan",
    "End",
    "Stage",
    "StageEntry",
    "load_plan",
    "run_campaign",
]
