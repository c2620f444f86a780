"""The page of the screen ``hybridwatch.views.screens.sees``."""

from frame import show

show("sees")
