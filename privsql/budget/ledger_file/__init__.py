"""The durable ledger: its file, and what is read, charged, verified and shown of it."""
