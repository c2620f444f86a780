"""The fixes: what each repairs, whether a release has it, and how to switch it.

``engine/fixes.toml`` describes each, and a module here holds what it does; ``registry`` joins the
two, and turns them on and off in a process.
"""
