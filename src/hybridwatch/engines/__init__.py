"""Engine builds, their environments, and an engine as a process that answers HTTP.

The engine runs in its own environment; nothing here imports vLLM. ``builds`` reads
``engine/builds.toml``, ``install`` makes environments, ``server`` starts an engine and ``control``
talks to our plugin inside it, ``load_client`` drives vLLM's benchmark client.
"""
