"""What subagents may use."""

from turngate._frozen import frozen


@frozen(kw_only=True)
class SubagentLimits:
    at_once: int = 8  # subagents of one session that run at once, counted at one depth and below
    on_machine: int = 32  # the same for all processes that share the state folder
    depth: int = 3  # levels of subagents below the main agent
    seconds: float = 3600.0  # for one run
    recoveries: int = 3  # times that another process adopts a run whose owner died
    rapid: int = 2  # of these, how many in quick succession
    announce_tries: int = 5
    announce_expiry: float = 2700.0  # seconds after the run's end
    announce_call: float = 120.0  # seconds for one call of the announcer
    settle: float = 5.0  # seconds to open the session for a new prompt
    wait: float = 1800.0  # seconds that a parent waits for background subagents before it may stop
