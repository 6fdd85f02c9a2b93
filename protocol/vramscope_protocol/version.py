"""Protocol version, feature names, and the rule by which peers of different age talk.

The rule: ``PROTOCOL_VERSION`` changes only when an older peer could misread a message. Everything
else is a feature: a name that each side lists in its hello and that the other may ignore. Unknown
fields and unknown message types are ignored, so a new agent talks to an old server and the other
way round.
"""

PROTOCOL_VERSION = 1

FEATURE_COMMANDS = "commands"
"""The agent runs commands and answers with receipts."""
FEATURE_STEPS = "steps"
"""The agent sends one exact row per optimizer step."""
FEATURE_MAP = "map"
"""The agent sends the memory map while somebody looks at it."""
FEATURE_SNAPSHOTS = "snapshots"
"""The agent sends snapshots in chunks behind everything else."""

FEATURE_OOMS = "ooms"
"""The agent sends reports of running out of memory in chunks, as it does snapshots."""

FEATURE_PREPARE = "prepare"
"""The agent prepares a command for a certain step, and waits there for the decision."""

AGENT_FEATURES = (
    FEATURE_COMMANDS,
    FEATURE_STEPS,
    FEATURE_MAP,
    FEATURE_SNAPSHOTS,
    FEATURE_OOMS,
    FEATURE_PREPARE,
)
SERVER_FEATURES = AGENT_FEATURES
