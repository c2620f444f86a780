"""The page of the screen ``hybridwatch.pages.screens.runs``."""

from frame import show

show("runs")
