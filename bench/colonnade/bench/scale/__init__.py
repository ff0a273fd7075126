"""What costs as rows, clients, connections and processes grow, measured in sections."""
