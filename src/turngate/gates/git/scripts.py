"""Scripts for the POSIX shell that compare a project with what it was. The repository's index and files stay as they are.

They work on a copy of the index in a temporary folder, without the flags that hide changes (assume-unchanged,
skip-worktree), to which files that are not tracked are added as empty ones. So one `git diff` shows all changes.
Filters that only the repository's own configuration names are not run, except for those of Git LFS.

How all gates run git. An agent can write the repository's configuration: it neither starts programs nor hides changes.

Imports nothing: an answer that is stored needs it too.
"""

# Fails if the project is not in a repository, or in one that ignores it, such as that of a home folder. With
# core.worktree a repository can name another folder, which is not the project.
IN_REPOSITORY = """\
own_top() {
    place=$(pwd -P)
    until test -z "$place" || test -e "$place/.git"; do place=${place%/*}; done
    top=$(git rev-parse --show-toplevel) || return
    test "$top" != "${place:-/}" || return 0
    echo 'core.worktree leads git to another folder' >&2
    return 1
}
in_repository() {
    own_top || return
    test "$top" != "$(pwd -P)" && git check-ignore --quiet . || return 0
    echo 'fatal: not a git repository: the one above ignores this folder' >&2
    return 128
}
"""

# Both have a folder for temporary files as $1. The flags are removed from a copy of the index. What a sparse checkout
# leaves out keeps its flag.
NOTHING_HIDDEN = """\
disable_filters() {
    git config --show-scope --name-only --get-regexp '^filter\\..*\\.(clean|process|required)$' > "$1/filters" || true
    count=${GIT_CONFIG_COUNT:-0}
    while read -r scope key; do
        case $scope:$(git config --get "$key" || true) in
            *:'git-lfs clean -- %f' | *:'git-lfs filter-process' | *:'git-lfs filter-process --skip') ;;
            local:* | worktree:*)
                eval "GIT_CONFIG_KEY_$count=\\$key; GIT_CONFIG_VALUE_$count="
                export "GIT_CONFIG_KEY_$count" "GIT_CONFIG_VALUE_$count"
                count=$((count + 1))
                ;;
        esac
    done < "$1/filters"
    GIT_CONFIG_COUNT=$count
    export GIT_CONFIG_COUNT
}
remove_flags() {
    flagged='[a-zS]'
    if test "$(command git config --type=bool core.sparseCheckout)" = true; then flagged='[a-rt-z]'; fi
    # Entries are made anew, without the time and the size of the file: git may have stored those of a hidden change.
    # `tr` lets sed see one entry a line, also with a newline in a name.
    git ls-files -v -z --stage > "$1/flags"
    tr '\\0\\n' '\\n\\0' < "$1/flags" | sed -n "s/^$flagged //p" | tr '\\0\\n' '\\n\\0' > "$1/flagged"
    if test -s "$1/flagged"; then git update-index -z --index-info < "$1/flagged"; fi
}
"""

COPY_INDEX = (
    IN_REPOSITORY
    + NOTHING_HIDDEN
    + """\
set -e
unset GIT_DIFF_OPTS
in_repository
index=$(git rev-parse --git-path index)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
test ! -f "$index" || cp -p "$index" "$folder/index"
GIT_INDEX_FILE=$folder/index
export GIT_INDEX_FILE
disable_filters "$folder"
remove_flags "$folder"
git update-index -q --refresh > "$folder/output" 2>&1 || true
"""
)

# Prints the commit or tree to compare with: the first of $1 and $2 that exists; it fails if there is none although one
# was recorded. Without a record: what HEAD was at the time $3, else the last commit before it. A repository that began later is compared with nothing.
FIND_BASE = """\
find_base() {
    for each in "$1" "$2"; do
        if test -n "$each" && git cat-file -e "$each^{tree}" 2> "$folder/output"; then
            echo "$each"
            return
        fi
    done
    if test -n "$1$2"; then
        echo "what was recorded at the session's start is no longer in the repository" >&2
        return 1
    fi
    if ! head=$(git rev-parse --verify --quiet HEAD); then
        git hash-object -t tree --stdin < /dev/null
    elif test -z "$3"; then
        echo "$head"
    elif base=$(git rev-parse --verify "HEAD@{$3}" 2> "$folder/output") && test ! -s "$folder/output"; then
        echo "$base"
    elif base=$(git rev-list -1 --before="$3" HEAD) && test -n "$base"; then
        echo "$base"
    elif test "$(git rev-parse --is-shallow-repository)" = true; then
        echo "$head"
    else
        git hash-object -t tree --stdin < /dev/null
    fi
}
"""

DIFF_OPTIONS = (
    "--no-ext-diff --no-textconv --no-color --relative --ignore-submodules=untracked --submodule=short"
    " --find-renames --src-prefix=a/ --dst-prefix=b/"
)

# $1, $2, $3: see `find_base`; $4: options of `git diff`; then the pathspecs that it is limited to.
DIFF = (
    COPY_INDEX
    + FIND_BASE
    + f"""\
base=$(find_base "$1" "$2" "$3")
options=$4
shift 4
git ls-files --full-name --others --exclude-standard > "$folder/others"
empty=$(git hash-object -t blob --stdin < /dev/null)
sed -n '/\\/"\\{{0,1\\}}$/!s/^/100644 '"$empty"' 0\t/p' "$folder/others" > "$folder/entries"
git update-index --add --replace --index-info < "$folder/entries"
git diff {DIFF_OPTIONS} $options "$base" -- "$@"
"""
)

# Prints how many commits are neither pushed nor before $1, then the operations in progress, an empty line, and the status.
STATUS = (
    COPY_INDEX
    + """\
upstream=$(git rev-parse --verify --quiet '@{upstream}' 2> "$folder/output") || upstream=
git cat-file -e "$1^{commit}" 2> "$folder/output" || set --
echo "unpushed $(test -z "$upstream" || git rev-list --count HEAD "^$upstream" ${1:+"^$1"})"
while read -r file operation; do
    test ! -e "$(git rev-parse --git-path "$file")" || echo "$operation"
done << END
MERGE_HEAD merge
CHERRY_PICK_HEAD cherry-pick
REVERT_HEAD revert
rebase-merge rebase
rebase-apply rebase
END
echo
git -c status.relativePaths=true -c color.status=false status --short --no-branch --no-renames --no-ahead-behind \\
    --untracked-files=all --ignore-submodules=untracked -- .
"""
)

# Prints a tree with the files as they are now, the commit, and the names of the files that are not in the tree: those
# that are not tracked and have more than 1 MiB, or all of those if there are too many. The objects that this adds are removed by git's garbage collection.
SNAPSHOT = (
    COPY_INDEX  # noqa: S608 - not SQL
    + """\
git add --update -- . 2> "$folder/output"
git ls-files -z --others --exclude-standard > "$folder/others"
if test "$(tr -dc '\\0' < "$folder/others" | wc -c)" -le 1000; then
    xargs -0 sh -c '
        for name do set -- "$@" "./$name"; shift; done
        test $# = 0 || find "$@" -prune \\( -type f -size -2049 -o -type l \\) -print0
    ' turngate < "$folder/others" > "$folder/small"
    git update-index --add --replace -z --stdin < "$folder/small"
fi
git write-tree
git rev-parse --verify --quiet HEAD || echo
git ls-files --others --exclude-standard
"""
)

# The content of all files in a project without git, as checksums; of large files only the names.
CHECKSUMS = """\
find . \\( -name .git -o -name node_modules -o -name .venv -o -name __pycache__ \\) -prune \\
    -o -type f -size -2049 -exec cksum {} + -o -type f -exec printf '0 0 %s\\n' {} +
"""


# `git rev-parse --local-env-vars`: they lead git to another repository, index or folder.
LOCAL_GIT_VARIABLES = tuple(
    "GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES "
    "GIT_COMMON_DIR GIT_PREFIX GIT_NAMESPACE GIT_SHALLOW_FILE GIT_REPLACE_REF_BASE "
    "GIT_IMPLICIT_WORK_TREE GIT_LITERAL_PATHSPECS".split()
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
