"""The page of the screen ``hybridwatch.pages.screens.sees``."""

from frame import show

show("sees")
