"""The page of the screen ``hybridwatch.views.screens.runs``."""

from frame import show

show("runs")
