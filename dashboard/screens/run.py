"""The page of the screen ``hybridwatch.pages.screens.run``."""

from frame import show

show("run")
