"""Notifications: what changed since a channel's last message, sent once."""
