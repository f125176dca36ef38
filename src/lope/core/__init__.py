"""What flows and what everyone shares: types, protocols, registry, sampling, randomness, errors."""
