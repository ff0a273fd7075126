"""The methods of federated jobs: specification, plan, codec and the arithmetic both sides share."""
