"""The page of the screen ``hybridwatch.views.screens.overview``."""

from frame import show

show("overview")
