"""Scripts for the POSIX shell that compare a project with what it was. The repository's index and files stay as they are.

Git names the files and compares what it has stored. The content of files is hashed as it is, without filters, so that neither the
index nor attributes and filters hide a change. An agent can write the repository's configuration: no program that it names is started.

An entry is the mode and the id of a file, a tab and its name in the repository, quoted as git does it.

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

# Each script has a folder as its first argument: that of the project, or of a submodule. It continues in the work tree.
BEGIN = (
    IN_REPOSITORY
    + """\
set -e
unset GIT_DIFF_OPTS
cd "$1"
shift
in_repository
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
prefix=$(git rev-parse --show-prefix)
cd "$top"
objects=$(cd "$(git rev-parse --git-path objects)" && pwd -P)
GIT_LITERAL_PATHSPECS=1
export GIT_LITERAL_PATHSPECS
"""
)

# Prints the commit or tree to compare with: $1, if it exists. Without it: what HEAD was at the time $2, else the last commit
# before it. A repository that began later is compared with nothing.
FIND_BASE = """\
find_base() {
    if test -n "$1"; then
        git rev-parse --quiet --verify "$1^{object}" && git cat-file -e "$1^{tree}" 2> "$folder/output" && return
        echo "what was recorded at the session's start is no longer in the repository" >&2
        return 1
    fi
    if ! head=$(git rev-parse --verify --quiet HEAD); then
        git hash-object -t tree --stdin < /dev/null
    elif test -z "$2"; then
        echo "$head"
    elif base=$(git rev-parse --verify "HEAD@{$2}" 2> "$folder/output") && test ! -s "$folder/output"; then
        echo "$base"
    elif base=$(git rev-list -1 --before="$2" HEAD) && test -n "$base"; then
        echo "$base"
    elif test "$(git rev-parse --is-shallow-repository)" = true; then
        echo "$head"
    else
        git hash-object -t tree --stdin < /dev/null
    fi
}
"""

# Prints the entries of the files that git does not ignore. A repository that is not in the index has the name of a folder.
LIST_ENTRIES = """\
list_entries() {
    set -- ls-files --cached --others --exclude-standard --deduplicate
    git "$@" -z -- "./$prefix" > "$folder/names"
    git "$@" -- "./$prefix" > "$folder/quoted"
    xargs -0 -n 500 sh -c '
        for name do
            if test -L "$name"; then
                echo "120000 $(readlink -n "$name" | git hash-object --no-filters --stdin)"
            elif test ! -f "$name"; then
                echo -
            elif test -x "$name"; then
                echo 100755
            else
                echo 100644
            fi
        done
    ' sh < "$folder/names" > "$folder/kinds"
    paste "$folder/kinds" "$folder/quoted" > "$folder/modes"
    sed -n 's/^100...\t//p' "$folder/modes" | git hash-object --no-filters --stdin-paths > "$folder/ids"
    awk -F '\t' -v ids="$folder/ids" '
        /^100/ { getline id < ids; print $1 " " id "\t" $2 }
        /^12/
        /^-.*\\/"?$/ { print "040000 -\t" $2 }
    ' "$folder/modes"
}
"""

# $1, $2: see `find_base`; $3: the id of the list of files that a sparse checkout left out at the session's start; $4: whether stdin has
# the entries of all files. Prints the base, the prefix, that id now, the entries of submodules in the index, and those that differ. A folder
# that is not there is exit code 3, one that is not a repository of its own 4.
DIFFERENCES = (
    """\
if test "$1" != .; then test -d "$1" || exit 3; test -e "$1/.git" || exit 4; fi
"""
    + BEGIN
    + FIND_BASE
    + LIST_ENTRIES
    + """\
base=$(find_base "$1" "$2")
if test "$4" = listed && test ${#base} = 40; then cat; else list_entries; fi > "$folder/now"
git ls-files --stage -t -- "./$prefix" > "$folder/index"
sed -n 's/^. \\(160000 [0-9a-f]*\\) 0\t/\\1\t/p' "$folder/index" > "$folder/submodules"
left_out=none
if test "$(command git config --type=bool core.sparseCheckout)" = true; then
    sed -n 's/^S \\([0-9]* [0-9a-f]*\\) 0\t/\\1\t/p' "$folder/index" > "$folder/left-out"
    left_out=$(git hash-object --stdin < "$folder/left-out")
    if test -z "$3" || test "$3" = "$left_out"; then
        awk -F '\t' 'NR == FNR { known[$2]; next } !($2 in known)' "$folder/now" "$folder/left-out" > "$folder/absent"
        cat "$folder/absent" >> "$folder/now"
    fi
fi
modes=
if test "$(git config --type=bool core.fileMode)" = false; then modes='s/^100755/100644/;'; fi
if test "$(git config --type=bool core.symlinks)" = false; then modes="${modes}s/^120000/100644/"; fi
git ls-tree -r "$base" ${prefix:+"$prefix"} > "$folder/tree"
sed "s/^\\([0-9]*\\) [a-z]* /\\1 /;$modes" "$folder/tree" | sort > "$folder/before"
sed "$modes" "$folder/now" "$folder/submodules" | sort > "$folder/after"
printf '%s\\n' "$base" "$prefix" "$left_out"
sed 's/^/= /' "$folder/submodules"
comm -3 "$folder/before" "$folder/after" | sed 's/^\t/+ /
t
s/^/- /'
"""
)

# $1: a commit; stdin: the id in it and the name of files with other content. Prints which of them git's own conversions explain: `lfs`, an
# object of Git LFS with this content; `text`, only the ends of lines differ; `filtered`, what a filter would make of it is not known. The attributes
# are those of the commit, in a repository without any configuration.
CONVERSIONS = (
    BEGIN
    + """\
cat > "$folder/files"
crlf=$(git config core.autocrlf) || true
drivers=$(git config --name-only --get-regexp '^filter\\..*\\.(clean|process)$') || true
git ls-tree -r "$1" > "$folder/tree"
git init -q --bare --template= --object-format="$(git rev-parse --show-object-format)" "$folder/plain"
mkdir -p "$folder/plain/info"
GIT_DIR=$folder/plain GIT_OBJECT_DIRECTORY=$objects GIT_INDEX_FILE=$folder/plain/index
export GIT_DIR GIT_OBJECT_DIRECTORY GIT_INDEX_FILE
sed -n '/[\t\\/"]\\.gitattributes"\\{0,1\\}$/p' "$folder/tree" | git update-index --index-info
cut -f 2 "$folder/files" | git check-attr --cached --stdin filter ident working-tree-encoding text eol > "$folder/attributes"
awk -v crlf="$crlf" -v drivers="$drivers" '
    {
        match($0, /: [a-z-]+: [^ ]+$/)
        split(substr($0, RSTART + 2), parts, ": ")
        of[parts[1]] = parts[2]
    }
    parts[1] != "eol" { next }
    of["filter"] == "lfs" { kind = "lfs" }
    of["filter"] != "lfs" {
        is_text = of["text"] ~ /set|auto/ && of["text"] != "unset" || of["eol"] !~ /^un/ || of["text"] !~ /^unset/ && crlf ~ /true|input/
        kind = is_text ? "text" : "plain"
        is_filtered = index(drivers, "filter." of["filter"] ".")
        if (is_filtered || of["ident"] == "set" || of["working-tree-encoding"] !~ /^un/) kind = "filtered"
    }
    { print kind "\t" substr($0, 1, RSTART - 1) }
' "$folder/attributes" > "$folder/kinds"
sed -n '/^filtered\t/p' "$folder/kinds"
echo '* text=auto eol=lf -filter -ident -working-tree-encoding' > "$folder/plain/info/attributes"
sed -n 's/^text\t//p' "$folder/kinds" > "$folder/texts"
sort "$folder/files" > "$folder/sorted"
git hash-object --stdin-paths < "$folder/texts" > "$folder/ids" 2> "$folder/output"
paste "$folder/ids" "$folder/texts" | sort | comm -12 - "$folder/sorted" | sed 's/^[^\t]*/text/'
sum=$(command -v sha256sum || echo 'shasum -a 256')
export sum
awk -F '\t' 'NR == FNR { if ($1 == "lfs") wanted[$2]; next } $2 in wanted { print "100644 " $1 "\t" $2 }' \
    "$folder/kinds" "$folder/files" > "$folder/pointers"
git read-tree --empty
git update-index --index-info < "$folder/pointers"
git ls-files -z --stage | xargs -0 sh -c '
    for entry do
        id=${entry#* }
        pointer=$(git cat-file blob "${id%% *}" | head -c 1024)
        oid=${pointer#*"
oid sha256:"}
        case $($sum < "${entry#*	}") in "${oid%%[!0-9a-f]*} "*) echo lfs ;; *) echo changed ;; esac
    done
' sh > "$folder/found"
git ls-files | paste "$folder/found" - | sed -n '/^lfs/p'
"""
)

NOT_STORED = "not stored"
# $1: options of `git diff-index`; stdin: entries of files before, after `- `, and now, after `+ `. What is stored for it is temporary.
# A file whose content before is not there is left out; then the first line is NOT_STORED.
DIFF = (
    BEGIN
    + """\
cat > "$folder/files"
mkdir "$folder/objects"
GIT_ALTERNATE_OBJECT_DIRECTORIES=$objects GIT_OBJECT_DIRECTORY=$folder/objects GIT_INDEX_FILE=$folder/index
export GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_OBJECT_DIRECTORY GIT_INDEX_FILE
sed -n 's/^- [0-9]* \\([0-9a-f]*\\)\t.*/\\1/p' "$folder/files" | git cat-file --batch-check | sed -n 's/ missing$//p' > "$folder/missing"
if test -s "$folder/missing"; then
    echo 'NOT_STORED'
    awk -F '\t' 'NR == FNR { missing[$0]; next } { split($1, entry, " ") } entry[1] == "-" && entry[3] in missing { print $2 }' \
        "$folder/missing" "$folder/files" > "$folder/left-out"
    awk -F '\t' 'NR == FNR { left_out[$0]; next } !($2 in left_out)' "$folder/left-out" "$folder/files" > "$folder/stored"
    mv "$folder/stored" "$folder/files"
fi
sed -n 's/^- //p' "$folder/files" | git update-index --index-info
before=$(git write-tree)
git read-tree --empty
sed -n 's/^+ //p' "$folder/files" > "$folder/now"
cut -f 2 "$folder/now" > "$folder/names"
git hash-object -w --no-filters --stdin-paths < "$folder/names" > "$folder/ids"
cut -d ' ' -f 1 "$folder/now" | paste -d ' ' - "$folder/ids" | paste - "$folder/names" | git update-index --index-info
cd "./$prefix"
git diff-index --cached --no-ext-diff --no-textconv --no-color --relative --find-renames --src-prefix=a/ --dst-prefix=b/ $1 "$before"
""".replace("NOT_STORED", NOT_STORED)
)

# Stores the content of the files with these names, except for large ones. Git's garbage collection removes it.
STORE = (
    BEGIN
    + """\
GIT_INDEX_FILE=$folder/index
export GIT_INDEX_FILE
sed "s/^/100644 $(git hash-object --stdin < /dev/null)\t/" | git update-index --index-info
git ls-files -z | xargs -0 sh -c '
    for name do set -- "$@" "./$name"; shift; done
    test $# = 0 || find "$@" -prune -type f -size -2049 -print0
' sh | xargs -0 sh -c 'test $# = 0 || git hash-object -w --no-filters -- "$@"' sh > "$folder/output"
"""
)

# Prints how many commits are neither pushed nor before $1, then the operations in progress, an empty line, and what is staged.
STATUS = (
    BEGIN
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
head=$(git rev-parse --verify --quiet HEAD) || head=$(git hash-object -t tree --stdin < /dev/null)
cd "./$prefix"
git diff-index --cached --name-status --no-renames --relative "$head"
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
