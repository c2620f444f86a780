"""Services that people already look at: GitHub, and the channels of ``notify``."""
