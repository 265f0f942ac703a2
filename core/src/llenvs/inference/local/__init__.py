"""What engines in this process share: from a chat to token ids, and from token ids back to an answer.

All of them go one way: render the chat template, tokenize, generate from ids, read the answer.
"""
