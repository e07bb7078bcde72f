"""Scripts for the POSIX shell that compare a project with what it was. The repository's index and files stay as they are.

Git names the files and compares what it has stored: an index of our own, which has the files as they are, with a commit or a tree. Their
content is hashed without filters, so that neither the repository's index nor attributes and filters hide a change. An agent can write the
repository's configuration: no program that it names is started.

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

# $1: the folder of the project, or of a submodule; $2: "listed" if stdin has the entries of its files; $3: what a sparse checkout left
# out at the session's start, as an id; $4: the script SUBMODULE. `now` is git with the index of the files as they are, in a temporary repository:
# git may read files again when it writes an index, and would run the filters of the project's own configuration.
BEGIN = (
    IN_REPOSITORY
    + """\
set -e
unset GIT_DIFF_OPTS
cd "$1"
in_repository
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
git rev-parse --show-prefix --git-path objects --show-object-format > "$folder/facts"
{ read -r prefix; read -r objects; read -r format; } < "$folder/facts"
objects=$(cd "$objects" && pwd -P)
settings=$(command git config --type=bool --get-regexp '^core\\.(sparsecheckout|filemode|symlinks)$') || true
script=$4
export script
cd "$top"
of_files() {
    GIT_DIR=$folder/plain GIT_WORK_TREE=$top GIT_INDEX_FILE=$folder/index
    GIT_OBJECT_DIRECTORY=${1:-$folder/plain/objects} GIT_ALTERNATE_OBJECT_DIRECTORIES=$objects
    export GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
}
now() { (of_files; git "$@"); }
lines() { tr '\\0\\n' '\\n\\0'; }
mkdir -p "$folder/plain/info" "$folder/plain/objects" "$folder/plain/refs"
echo 'ref: refs/heads/none' > "$folder/plain/HEAD"
test "$format" = sha1 || printf '[core]\\nrepositoryformatversion = 1\\n[extensions]\\nobjectformat = %s\\n' "$format" > "$folder/plain/config"
echo '* -text -filter -ident -working-tree-encoding !diff' > "$folder/plain/info/attributes"
git ls-files -z -t --stage ${prefix:+":(literal)$prefix"} > "$folder/tracked"
if test "$2$format" = listedsha1; then
    now update-index -z --index-info
else
    git ls-files -z --cached --others --exclude-standard ${prefix:+":(literal)$prefix"} > "$folder/all"
    xargs -0 sh -c 'for name do if test -f "$name" || test -L "$name"; then printf "%s\\0" "$name"; fi; done' sh \\
        < "$folder/all" > "$folder/names"
    now update-index --add --replace --info-only -z --stdin < "$folder/names"
fi
lines < "$folder/tracked" | sed -n 's/^. 160000/160000/p' | lines > "$folder/links"
test ! -s "$folder/links" || xargs -0 sh -c '
    for entry do
        name=${entry#*\t}
        if test -e "$name/.git"; then
            id=$(cd "$name" && sh -c "$script" turngate . "" "" "$script") || exit
            entry="160000 $id 0\t$name"
        fi
        test ! -d "$name" || printf "%s\\0" "$entry"
    done
' sh < "$folder/links" > "$folder/submodules"
test ! -s "$folder/links" || now update-index -z --replace --index-info < "$folder/submodules"
left_out=none
case $settings in *'sparsecheckout true'*)
    lines < "$folder/tracked" | sed -n 's/^S //p' | lines > "$folder/left-out"
    left_out=$(git hash-object --stdin < "$folder/left-out")
    if test "${3:-$left_out}" = "$left_out"; then
        xargs -0 sh -c 'for entry do test -e "${entry#*\t}" || printf "%s\\0" "$entry"; done' sh < "$folder/left-out" > "$folder/absent"
        now update-index -z --replace --index-info < "$folder/absent"
    fi ;;
esac
shift 4
"""
)

# Stores the files with these names.
STORE = """\
store() {
    xargs -0 sh -c '
        for name do
            shift
            if test -L "$name"; then
                readlink -n "$name" | git hash-object -w --stdin
            elif test -f "$name"; then
                set -- "$@" "$name"
            fi
        done
        test $# = 0 || git hash-object -w --no-filters -- "$@"
    ' sh > "$folder/output"
}
"""

# Lets files be as in the commit $1 that differ from it only as conversions of git explain it: ends of lines, objects of Git LFS. Where another filter
# would have to tell, `$folder/filtered` has the names. The attributes are those of the commit. A tree is a record of the session's start, and has the
# files as they were: only an object of Git LFS that was fetched since is the same.
CONVERT = """\
of_base() { (export GIT_DIR="$folder/plain" GIT_OBJECT_DIRECTORY="$objects" GIT_INDEX_FILE="$folder/base"; git "$@"); }
chosen() { awk -F '\t' 'NR == FNR { names[$0]; next } $2 in names' "$folder/$1" "$folder/candidates"; }
convert() {
    : > "$folder/filtered"
    now diff-index --cached --raw --no-abbrev --no-renames "$1" ${prefix:+":(literal)$prefix"} > "$folder/raw"
    case $settings in *'filemode false'* | *'symlinks false'*)
        sed -n 's/^:\\([0-9]*\\) [0-9]* \\([0-9a-f]*\\) \\2 [A-Z]\t/\\1 \\2\t/p' "$folder/raw" | now update-index --index-info ;;
    esac
    sed -n '/^:1..... 100... \\([0-9a-f]*\\) \\1 /d; s/^:100... \\(100...\\) \\([0-9a-f]*\\) [0-9a-f]* M\t/\\1 \\2\t/p' "$folder/raw" > "$folder/candidates"
    test -s "$folder/candidates" || return 0
    git ls-tree -r "$1" > "$folder/tree"
    sed -n '/[\t\\/"]\\.gitattributes"\\{0,1\\}$/p' "$folder/tree" | of_base update-index --index-info
    : > "$folder/plain/info/attributes"
    cut -f 2 "$folder/candidates" | of_base check-attr --cached --stdin filter ident working-tree-encoding text eol > "$folder/attributes"
    echo '* text=auto eol=lf -filter -ident -working-tree-encoding !diff' > "$folder/plain/info/attributes"
    sed -n 's/: filter: lfs$//p' "$folder/attributes" > "$folder/lfs"
    sum=$(command -v sha256sum || echo 'shasum -a 256')
    export sum
    of_base read-tree --empty
    chosen lfs | of_base update-index --index-info
    of_base ls-files -z --stage > "$folder/pointers"
    xargs -0 sh -c '
        for entry do
            id=${entry#* }
            pointer=$(git cat-file blob "${id%% *}" | head -c 1024)
            oid=${pointer#*"
oid sha256:"}
            case $($sum < "${entry#*\t}") in "${oid%%[!0-9a-f]*} "*) printf "%s\\0" "$entry" ;; esac
        done
    ' sh < "$folder/pointers" | now update-index -z --index-info
    test "$(git cat-file -t "$1")" = commit || return 0
    texts='s/: text: set$//p;s/: text: auto$//p;s/: eol: [cl].*$//p'
    case $(git config core.autocrlf) in true | input) texts="$texts;s/: text: unspecified$//p" ;; esac
    sed -n "$texts" "$folder/attributes" | sort -u > "$folder/texts"
    now hash-object --stdin-paths < "$folder/texts" > "$folder/ids" 2> "$folder/output"
    paste "$folder/ids" "$folder/texts" | sort > "$folder/converted"
    sed 's/^[0-9]* //' "$folder/candidates" | sort | comm -12 - "$folder/converted" | cut -f 2 | sort > "$folder/same"
    chosen same | now update-index --index-info
    git config --name-only --get-regexp '^filter\\..*\\.(clean|process)$' | sed -n 's/^filter\\.\\([A-Za-z0-9_-]*\\)\\.[a-z]*$/\\1/p' > "$folder/drivers"
    {
        sed -n 's/: ident: set$//p;s/: working-tree-encoding: [^u].*$//p' "$folder/attributes"
        while read -r driver; do test "$driver" = lfs || sed -n "s/: filter: $driver$//p" "$folder/attributes"; done < "$folder/drivers"
    } | sort -u | comm -23 - "$folder/same" > "$folder/filtered"
    chosen filtered | now update-index --index-info
}
print_filtered() {
    export GIT_INDEX_FILE="$folder/filtered-index"
    sed "s/^/100644 $(git hash-object --stdin < /dev/null)\t/" "$folder/filtered" | git update-index --index-info
    git ls-files | sed 's/^/filtered\t/'
}
"""

# Prints the commit or tree to compare with: $1, or else the last one that HEAD has in common with $2, or else $2; it fails if there is none although one
# was recorded. Without a record: what HEAD was at the time $3, else the last commit before it. A repository that began later is compared with nothing.
FIND_BASE = """\
find_base() {
    common=$(test -n "$1" || git merge-base HEAD "$2" 2> "$folder/output") || common=
    for each in "$1" "$common" "$2"; do
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

# Prints the commit, or another id if tracked files differ from it.
SUBMODULE = (
    BEGIN
    + CONVERT
    + """\
commit=$(git rev-parse --verify HEAD)
convert "$commit"
now diff-index --cached --no-renames --diff-filter=a "$commit" > "$folder/changed"
if test -s "$folder/changed"; then git hash-object --stdin < "$folder/changed"; else echo "$commit"; fi
"""
)

DIFF_OPTIONS = (
    "--no-ext-diff --no-textconv --no-color --relative --submodule=short --src-prefix=a/ --dst-prefix=b/"
)

# Lets `raw` compare with what commits have that HEAD has got since the commit $1, although they are from before the time $2: others have made them.
LEAVE_OUT = """\
leave_out() {
    test -n "$2" && commits=$(git rev-list -100 --before="$(($2 - 2))" HEAD "^$1" 2> "$folder/output") || return 0
    for tip in ${commits:+$(git merge-base --independent $commits)}; do
        git diff-tree -r --no-abbrev --no-renames "$(git merge-base "$1" "$tip")" "$tip" > "$folder/theirs" 2> "$folder/output" || continue
        awk -F '\t' '
            { split($1, of, " "); now = of[2] " " of[4] }
            FILENAME ~ /theirs$/ { theirs[$2] = now; next }
            !($2 in theirs) { print }
            $2 in theirs && theirs[$2] != now { split(theirs[$2], old, " "); print ":" old[1], of[2], old[2], of[4], of[5] "\t" $2 }
        ' "$folder/theirs" "$folder/raw" > "$folder/rest"
        mv "$folder/rest" "$folder/raw"
    done
}
"""

# $1, $2, $3: see `find_base`; $4: options of `git diff-index`; then the pathspecs that it is limited to. Without the content of a file at the
# session's start, which is not stored if it is large, no renames are found, and there is no patch.
DIFF = (
    BEGIN
    + STORE
    + CONVERT
    + FIND_BASE
    + LEAVE_OUT
    + f"""\
base=$(find_base "$1" "$2" "$3")
base=$(git rev-parse --verify "$base")
head=${{2:-$base}} seconds=$3 options=$4
shift 4
convert "$base"
test -s "$folder/raw" || exit 0
now diff-index --cached --raw --no-abbrev --no-renames "$base" ${{prefix:+":(literal)$prefix"}} > "$folder/raw"
leave_out "$head" "$seconds"
# From here on, the index and the tree have only the files that differ: the pathspecs may be many.
now read-tree --empty
sed -n 's/^:\\([1-9][0-9]*\\) [0-9]* \\([0-9a-f]*\\) [0-9a-f]* [A-Z]\t/\\1 \\2\t/p' "$folder/raw" | now update-index --index-info
base=$(now write-tree --missing-ok)
now read-tree --empty
sed -n 's/^:[0-9]* \\([1-9][0-9]*\\) [0-9a-f]* \\([0-9a-f]*\\) [A-Z]\t/\\1 \\2\t/p' "$folder/raw" | now update-index --index-info
cd "./$prefix"
now diff-index --cached --name-only -z --no-renames --diff-filter=d "$base" -- "$@" > "$folder/changed"
case $options in *--raw*) grep -q '^[^\t]* D\t' "$folder/raw" || : > "$folder/changed" ;; esac
(cd "$top" && of_files && store < "$folder/changed")
now diff-index --cached {DIFF_OPTIONS} --find-renames $options "$base" -- "$@" > "$folder/diff" 2> "$folder/output" ||
    now diff-index --cached {DIFF_OPTIONS} --no-renames $options "$base" -- "$@" > "$folder/diff"
cat "$folder/diff"
print_filtered
"""
)

# Prints how many commits are neither pushed nor before $1, then the operations in progress, an empty line, what is staged, what the files are, and
# of which only a filter could tell.
STATUS = (
    BEGIN
    + CONVERT
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
convert "$head"
cd "./$prefix"
git diff-index --cached --name-status --no-renames --relative "$head" -- . > "$folder/staged"
now diff-index --cached --name-status --no-renames --relative "$head" -- . > "$folder/changed"
sed 's/^/staged\t/' "$folder/staged"
sed 's/^/changed\t/' "$folder/changed"
print_filtered
"""
)

# Prints a tree with the files as they are now, the commit, what a sparse checkout leaves out, if $2 is not empty a tree with files of the folder `.git` and
# a list of what git ignores, and the repositories inside of the project. Large files that are not as in the commit, or more than 1000 of them, are in the tree, and their content
# is not stored, nor a large index. Git's garbage collection removes what is stored.
SNAPSHOT = (
    BEGIN
    + STORE
    + """\
head=$(git rev-parse --verify --quiet HEAD) || head=$(git hash-object -t tree --stdin < /dev/null)
now diff-index --cached --name-only -z --no-renames --diff-filter=d "$head" > "$folder/changed"
if test "$(tr -dc '\\0' < "$folder/changed" | wc -c)" -le 1000; then
    xargs -0 sh -c '
        for name do set -- "$@" "./$name"; shift; done
        test $# = 0 || find "$@" -prune \\( -type f -size -2049 -o -type l \\) -print0
    ' sh < "$folder/changed" | store
fi
(of_files "$objects" && git write-tree --missing-ok)
keep_git() {
    test -n "$1" && test -d .git && test ! -e .git/reftable && test -z "$(find .git/index -size +8192 2> "$folder/output")" || return 0
    git for-each-ref --format='%(objectname) %(refname)' > "$folder/packed-refs"
    set -- "$folder/packed-refs"
    for name in HEAD index MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD; do test ! -f ".git/$name" || set -- "$@" ".git/$name"; done
    git hash-object -w --no-filters -- "$@" > "$folder/ids"
    for each do echo "${each##*/}"; done | paste "$folder/ids" - | sed 's/^/100644 blob /' | git mktree
}
of_git=$(keep_git "$2")
ignored=$(test -z "$2" || git ls-files -z --others --ignored --exclude-standard --directory --no-empty-directory | lines | git hash-object -w --stdin)
printf '%s\\n' "$head" "$left_out" "$of_git" "$ignored"
cd "./$prefix"
test "$1" = none || git ls-files --others --exclude-standard | sed -n '/\\/"\\{0,1\\}$/p'
"""
)

# Writes the files that differ from the tree $1 as they were into a new folder, below `old`, and the names of those that are new into `new`; and the
# files of `.git` in the tree $2. $3: when the session started, or ""; $4: the list of what git ignored then, or "": what of it was written since, or is gone,
# is in `changed`. Prints the folder, those of the repository and of the project in it, and a lock file that differs. It fails if a content is not stored.
RESTORE = (
    BEGIN
    + """\
now diff-index --cached --raw --no-abbrev --no-renames -z "$1" ${prefix:+":(literal)$prefix"} > "$folder/changes"
test -n "$2" || test -s "$folder/changes"
kept=$(mktemp -d)
export kept
trap 'rm -rf "$folder"; test -e "$kept/upper" || rm -rf "$kept"' EXIT
mkdir "$kept/old"
test ! -s "$folder/changes" || xargs -0 -n 2 sh -c '
    set -e
    set -- "$2" $1
    case $2 in
        :000000) printf "%s\\0" "$1" >> "$kept/new"; exit ;;
        :160000) exit ;;
    esac
    case $1 in */*) mkdir -p "$kept/old/${1%/*}" ;; esac
    if test "$2" = :120000; then ln -s "$(git cat-file blob "$4")" "$kept/old/$1"; exit; fi
    git cat-file blob "$4" > "$kept/old/$1"
    test "$2" = :100644 || chmod +x "$kept/old/$1"
' sh < "$folder/changes"
test -z "$2" || {
    mkdir "$kept/old/.git"
    for name in $(git ls-tree --name-only "$2"); do git cat-file blob "$2:$name" > "$kept/old/.git/$name"; done
}
# What git ignores and the session has written, such as by the check that has just failed, is left out: it belongs to the files of now.
: > "$folder/later"
test -z "$3" || find . \\( -name .git -o -name node_modules -o -name .venv -o -name venv -o -name vendor \\) -prune \\
    -o -type f -newerct "@$3" -print0 2> "$folder/output" | git check-ignore -z --stdin > "$folder/later" || true
cat "$folder/later" >> "$kept/new"
test -z "$4" || git cat-file blob "$4" | grep -iv cache > "$folder/ignored" || true
test ! -s "$folder/ignored" || lines < "$folder/later" | sed 's,^[.]/,,' | awk '
    FILENAME ~ /ignored$/ { known[$0]; next }
    { while ($0 != "" && !($0 in known)) sub("[^/]*/?$", "") }
    $0 != "" { print }
' "$folder/ignored" - > "$kept/changed"
test ! -s "$folder/ignored" || while IFS= read -r name; do
    test -n "$(find "./$name" ! -type d 2> "$folder/output" | head -n 1)" || printf '%s\\n' "$name"
done < "$folder/ignored" >> "$kept/changed"
mkdir "$kept/upper"
locked=$(lines < "$folder/changes" | sed -n '/^:000000 /{n;d;};/^:/{n;p;}' |
    grep -E '(^|/)([A-Za-z-]*\\.lockb?|(package|pnpm)-lock\\.(json|yaml)|npm-shrinkwrap\\.json|go\\.sum|requirements[^/]*\\.txt)$' | head -n 1)
printf '%s\\n' "$kept" "$top" "$prefix" "$locked"
"""
)

# Runs the command after $4 in a mount namespace where the project has the files that `RESTORE` has written, at its own path. $1, $2, $3: what it printed;
# $4: PATH for the command, or "" for that of the script. What the command writes goes into memory. Without root the namespace belongs to one of users, in which the command has its own user id.
NO_OVERLAY = "turngate: the files of the start cannot be mounted"
NOT_WRITTEN = "turngate: git ignores it, it was changed since the start, and the check does not write it: "
OVERLAY = f"""\
folder=$1 top=$2 below=$3 path=${{4:-$PATH}} user=
shift 4
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
test "$(id -u)" = 0 || user="--map-user=$(id -u) --map-group=$(id -g)"
export folder top below path user
unshare --mount ${{user:+--map-root-user}} sh -c '
    # Other file systems below the project would be missing.
    ! grep -qF " $top/" /proc/self/mountinfo || exit
    cd "$top" && mount -t tmpfs none "$folder/upper" && mkdir "$folder/upper/files" "$folder/upper/work" || exit
    layers=lowerdir=.,upperdir=$folder/upper/files,workdir=$folder/upper/work
    mount -t overlay none -o "$layers" "$top" 2> /dev/null || mount -t overlay none -o "$layers,userxattr" "$top" || exit
    cd "$top" || exit
    test ! -e "$folder/old/.git" || (cd .git && rm -rf refs MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD && mkdir refs) || exit
    cp -RPp "$folder/old/." . || exit
    # Bytecode of a file that was changed within a second, and has the same size, counts as that of the old one.
    (cd "$folder/old" && find . -name "*.py") | while IFS= read -r file; do rm -rf "${{file%/*}}/__pycache__"; done
    test ! -e "$folder/new" || xargs -0 rm -f -- < "$folder/new" || exit
    cd "./$below" && touch "$folder/ready" || exit
    set -- env -u folder -u top -u below -u path -u user "PATH=$path" "$@"
    # Commands such as `git diff-index` believe the times in the index.
    test ! -e "$folder/old/.git" || set -- sh -c "git update-index -q --refresh > /dev/null 2>&1; exec \\"\\$@\\"" sh "$@"
    unshare --user $user true 2> /dev/null || user=
    ${{user:+unshare --user $user}} "$@"
    code=$?
    cd "$top" && test -e "$folder/changed" && while IFS= read -r name; do
        test -n "$(find "./$name" ! -type d 2> /dev/null | head -n 1)" || {{ echo "{NOT_WRITTEN}$name" >&2; break; }}
    done < "$folder/changed"
    exit "$code"
' sh "$@"
code=$?
test -e "$folder/ready" || {{ echo '{NO_OVERLAY}' >&2; exit 125; }}
exit "$code"
"""

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
