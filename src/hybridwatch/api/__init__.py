"""Stored runs over HTTP, as the verbs' ``--json`` tells them (``docs/api.md``).

``routes`` says what there is; the description (OpenAPI), the checks of a question and the answers
all come from it.
"""
