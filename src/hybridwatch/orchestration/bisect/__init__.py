"""Which release, commit, file or fix changed what a scenario measures.

``rungs`` makes the ordered list of what can be measured, ``meter`` measures one of it, ``hunt``
remembers what was measured and asks ``posterior`` what comes next, ``ladder`` goes from releases to
commits, files and fixes, and ``words`` says what came of it.
"""
