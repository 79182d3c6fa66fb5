"""From a call to a node: computed nodes, leaves, constants, function nodes, nodes used again."""
