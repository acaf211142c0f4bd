"""Record what the commands do (events, ε, charges, exit codes, keys of their JSON), and compare it with the record.

`python -m tools.behavior` compares; `python -m tools.behavior --write` records anew. A refactoring must leave the
record as it is, but for fields that the CHANGELOG says are renamed.
"""
