"""The faces: Graph, Var, DetachedVar, the leaves of the current graph, forks."""
