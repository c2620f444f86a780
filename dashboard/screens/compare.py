"""The page of the screen ``hybridwatch.views.screens.compare``."""

from frame import show

show("compare")
