"""Static reading of an unpacked torch wheel: names, signatures, operator schemas. Never imports torch."""
