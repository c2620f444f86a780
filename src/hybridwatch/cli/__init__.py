"""The command line: a file for each verb or few that belong together, thin shells of the library.

``main`` loads a verb's file only when the verb is called. Exit status: 0 all fine, 1 the answer
is bad news, 2 the call was wrong.
"""
