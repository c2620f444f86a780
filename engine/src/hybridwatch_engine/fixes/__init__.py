"""The fixes: what each repairs, whether a release has it, and how to switch it.

One module per fix; ``registry`` lists them, ``switchboard`` turns them on and off in a process.
"""
