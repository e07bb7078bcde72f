"""The hook kinds as messages list them: `"command", "prompt", …`."""

from turngate.core.hooks.kinds import KINDS, SETTINGS_KINDS

LISTED_KINDS = ", ".join(f'"{kind}"' for kind in KINDS)
LISTED_SETTINGS_KINDS = ", ".join(f'"{kind}"' for kind in SETTINGS_KINDS)
