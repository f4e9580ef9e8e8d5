"""Relations go in; what they mean comes out, whatever they were called: questions that mean the same have one
answer.
"""
