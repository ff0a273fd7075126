"""What a process of a party gives up at its start: network, files, privileges, core dumps."""
