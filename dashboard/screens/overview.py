"""The page of the screen ``hybridwatch.pages.screens.overview``."""

from frame import show

show("overview")
