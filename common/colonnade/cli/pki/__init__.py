"""``colonnade pki``: make an authority; request, approve, install and show certificates."""
