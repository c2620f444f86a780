"""Showing: a report as terminal text, Markdown or JSON. Nothing here computes a verdict.

``numbers`` is the only place where a base unit becomes something to read; ``sentence`` holds the
words that all views share.
"""
