"""Texts of an analyst who attacks, each judged on three neighbouring tables: judge.py, and cases of our own in own.jsonl."""
