"""Neurons that grow by edits: ``rg.neuron``.

- ``_weighted``: the op, ``bias + w1 x1 + w2 x2 + ...``, with one param for all of these numbers.
- ``_neuron``: ``Neuron``, which is connected, disconnected and split while everything around it lives.
- ``_dead``: neurons that lead to nothing.
"""
