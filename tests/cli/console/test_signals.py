"""What a signal does to a command while its event loop starts, runs and ends."""

import subprocess
import sys

PROGRAM = """
import asyncio, signal, threading, time
from turngate.cli.console.signals import restore_handlers, run_loop

def send() -> None:
    while not done:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        time.sleep(0.0001)

async def work() -> str:
    thread.start()
    await asyncio.sleep(0.01)
    return "result"

for _ in range(20):
    done, thread = False, threading.Thread(target=send)
    print(run_loop(work(), lambda number: None))
    done = True
    thread.join()
    restore_handlers()
"""


def test_a_signal_that_another_thread_receives_while_the_loop_ends_loses_no_result() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "result\n" * 20, "")
