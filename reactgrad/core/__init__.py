"""The data of one graph: its tables, and the handles, names and lifetimes of its nodes.

Whatever works on a graph is a function of a ``Core``. ``Graph`` is the face that lists these functions.

- ``_core``: ``Core``, the tables of a graph, and the ports by which lower floors call higher ones.
- ``_rows``: ``Rows``, one row a node: its value, handle, name, place in user code, flags.
- ``_handles``: the one ``Var`` of a node, made when it is asked for; release of nodes that nothing keeps.
- ``_arguments``: Vars or names as arguments, and the slots that they mean.
- ``_names``: names of nodes, chosen or made of op and number.
- ``_var_list``: ``VarList``, a sequence of Vars compared by identity.
- ``_read_together``: slots of Vars that are often read together, remembered.
- ``_definition``: what a node computes, as one value that can be compared and written back.
- ``_notes``: the former state of what an open transaction changes.
- ``_programs``: the gradient programs of a graph. ``_live_programs``: those that handles hold.
- ``_twins``: the node of a fork that stands for a node of its origin.
- ``_observers``: tables of observers and of events that they have still to receive.
  ``_observer``: one observer. ``_held``: blocks that postpone observers. ``_observer_errors``: what
  is raised when observers raise.
- ``_display``: the hook by which notebooks get pictures.
"""
