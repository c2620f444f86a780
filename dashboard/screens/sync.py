"""The page of the screen ``hybridwatch.pages.screens.sync``."""

from frame import show

show("sync")
