"""The page of the screen ``hybridwatch.pages.screens.builds``."""

from frame import show

show("builds")
