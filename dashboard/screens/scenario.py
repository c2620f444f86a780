"""The page of the screen ``hybridwatch.pages.screens.scenario``."""

from frame import show

show("scenario")
