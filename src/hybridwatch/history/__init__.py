"""Stored runs compared with each other: verdicts, histories, controls and alerts."""
