"""The page of the screen ``hybridwatch.pages.screens.compare``."""

from frame import show

show("compare")
