"""What is run by hand or by a campaign to answer one question about an engine.

No engine loads any of it: ``python -m hybridwatch_engine_lab.studies.NAME`` does.
"""
