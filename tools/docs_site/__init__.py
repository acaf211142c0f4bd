"""Parts of the documentation site: what MkDocs and mkdocstrings load by path (see `mkdocs.yml`), and the notebooks."""
