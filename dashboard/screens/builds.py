"""The page of the screen ``hybridwatch.views.screens.builds``."""

from frame import show

show("builds")
