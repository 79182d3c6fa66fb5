"""The push side: callbacks that are called after a change of observed nodes.

- ``_observe``: the rules, and ``observe``, which attaches an observer.
- ``_tell``: finds the observers that are due, calls them round by round, and makes their sets.
- ``_stabilize``: brings all observed nodes up to date until no observer changes anything.
"""
