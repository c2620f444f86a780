"""The verbs of the lab: one file each, a thin shell around the rest."""
