"""The page of the screen ``hybridwatch.views.screens.sync``."""

from frame import show

show("sync")
