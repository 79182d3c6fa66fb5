"""Switches and marks of the user that gradients obey, and the values that are kept for gradients.

- ``_mode``: ``no_grad``, ``enable_grad``, ``inference``.
- ``_gate``: nodes that pass their operand's value and stop or scale its gradient.
- ``_autocast``: products in lower precision. ``_grad_scaler``: losses scaled for it.
- ``_training``: train and eval mode.
- ``_checkpoint``: values that are computed again rather than kept.
- ``_saved``: values that a user's hooks pack and unpack. ``_places``: such hooks ready-made.
- ``_passing``: values that are dropped in the course of one ``backward``.
"""
