"""Functions whose nodes are built once for each structure of arguments, and fed again afterwards.

- ``_subgraph``: ``rg.subgraph``, the decorator and its call.
- ``_arguments``: the structure of arguments, and the arrays and nodes in it that are fed.
- ``_feeds``: feed nodes, which stand for one argument each.
- ``_instance``: one built copy of a function: its feeds, its nodes, and whether it is free.
- ``_sharing``: when a call returns a result that is held; ``_shared_result``: what is built upon it.
- ``_pool``: all instances in one graph; finds a free one, or builds one.
"""
