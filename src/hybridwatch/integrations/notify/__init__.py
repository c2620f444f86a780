"""News that come to people: what changed since a channel last heard, sent once.

``channels`` reads who wants to hear what, ``gather`` says how everything stands, ``topic`` what of
it is news to a channel, ``outbox`` keeps what is to be sent until it is, ``sending`` sends it. One
module for each kind of channel says how: ``slack``, ``webhook``, ``mail``, ``issues`` with
``gitlab`` and ``github_tracker``.
"""
