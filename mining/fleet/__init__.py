"""Many hosts: the host is what repeats, not its calls.

- What is the level of a function over hosts, and how sure is that? ``trimmed``
- Which hosts stand out? ``host_factors``
- Is a build slower than another that runs at the same time? ``canary``
- Who is asked where there are more hosts than needed? ``panel``
"""
