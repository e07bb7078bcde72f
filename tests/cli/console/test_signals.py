"""What a signal does to a command while its event loop starts, runs and ends."""

import subprocess
import sys

PROGRAM = """
import asyncio, signal, threading, time
from turngate.cli.console.signals import restore_handlers, run_loop

MAX_UNSEEN = 100  # the pipe through which a loop learns of signals holds no more than some hundreds

def send() -> None:
    sent = 0
    while not done:
        if sent < seen + MAX_UNSEEN:
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)
            sent += 1
        time.sleep(0.0001)

def on_signal(number: signal.Signals) -> None:
    global seen
    seen += 1

async def work() -> str:
    thread.start()
    await asyncio.sleep(0.01)
    return "result"

for _ in range(20):
    done, seen, thread = False, 0, threading.Thread(target=send)
    print(run_loop(work(), on_signal))
    done = True
    thread.join()
    restore_handlers()
"""


def test_a_signal_that_another_thread_receives_while_the_loop_ends_loses_no_result() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "result\n" * 20, "")
