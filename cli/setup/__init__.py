"""What an installation puts on a host beside the program: units, configuration, rules, manual pages, completion.

``files`` lists every file with its place, ``manual`` writes the pages of man from the texts of the help,
``completion`` the scripts of the shells, ``installing`` writes and removes files.
"""
