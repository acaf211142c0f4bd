"""Examples that run: `python -m examples.differencing`, and so on."""
