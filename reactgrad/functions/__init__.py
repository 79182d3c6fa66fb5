"""Python functions as nodes: lift, Function and its context, switch, primitive."""
