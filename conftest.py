"""For the tests of all parts: Ctrl-C reaches the processes that they start.

A shell starts background jobs with SIGINT ignored, and that is inherited; a handler is not, so children begin with
the default.
"""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
