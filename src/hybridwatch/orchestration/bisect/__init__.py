"""Which release, commit, file or fix changed what a scenario measures.

``candidate_lists`` lists what can be measured, ``measurer`` measures one of it, ``search`` keeps
what was measured and asks ``posterior`` what comes next, ``bisector`` goes from releases to
commits, files and fixes, and ``words`` says what came of it.
"""
