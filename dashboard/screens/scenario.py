"""The page of the screen ``hybridwatch.views.screens.scenario``."""

from frame import show

show("scenario")
