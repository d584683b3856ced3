"""Events to an address, signed as Standard Webhooks says; over the connections of the HTTP sink."""
