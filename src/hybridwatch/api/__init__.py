"""Stored runs over HTTP, as the verbs' ``--json`` tells them (``docs/api.md``)."""
