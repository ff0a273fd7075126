"""The privacy core: exact noise, mechanisms and their price, the ledger, the gate."""
