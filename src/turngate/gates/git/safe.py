"""How all gates run git. An agent can write the repository's configuration: it neither starts programs nor hides changes.

Imports nothing: an answer that is stored needs it too.
"""

# `git rev-parse --local-env-vars`: they lead git to another repository, index or folder.
LOCAL_GIT_VARIABLES = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
    "GIT_NAMESPACE",
    "GIT_SHALLOW_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_LITERAL_PATHSPECS",
)
# Objects are what their names say, and commits have their own parents, whatever `git replace` and grafts say.
GIT_ENVIRONMENT = {
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": "/dev/null/none",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_SETTINGS = (
    # No program is started, nor a transport.
    *("core.fsmonitor=false", "core.hooksPath=/dev/null", "protocol.allow=never"),
    # A file is unchanged only if its times, size and inode are, whatever its flags in the index.
    *("core.checkStat=default", "core.trustctime=true", "core.ignoreStat=false", "core.untrackedCache=false"),
    *("core.sparseCheckout=true", "sparse.expectFilesOutsideOfPatterns=false", "core.ignoreCase=false"),
    # For submodules, where git drops GIT_NO_REPLACE_OBJECTS.
    "core.useReplaceRefs=false",
    # Patches have all lines.
    *("core.bigFileThreshold=512m", "diff.suppressBlankEmpty=false"),
)
GIT_OPTIONS = tuple(word for setting in _SETTINGS for word in ("-c", setting))
