"""Where packages that never import one another meet: contracts that core declares and others fulfil."""
