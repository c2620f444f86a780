"""The page of the screen ``hybridwatch.views.screens.run``."""

from frame import show

show("run")
