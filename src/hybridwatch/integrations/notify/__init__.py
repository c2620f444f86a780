"""Notifications: what changed since a channel's last message, sent once.

``channels`` reads who wants to hear what, ``gather`` says how everything stands, ``news`` what of
it is news to a channel, ``sending`` keeps what is to be sent until it is. ``clients`` and
``issues`` say how, for each kind of channel.
"""
