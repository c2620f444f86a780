"""What hybridwatch puts into a vLLM engine.

``plugin`` is the entry point that every process of the engine loads. ``fixes`` are the switchable
repairs, ``cpu`` is what a CPU engine lacks to run like a GPU one, ``probes`` watch, ``control``
answers the harness. Nothing here is imported by the harness: it talks HTTP.
"""
