"""Scripts for a POSIX `sh` that describe, read and replace files, and how their output is read.

Names are arguments, never part of a script. Messages of programs are read in the locale C. Nothing is assumed but the
utilities of POSIX, and `stat` where there is one: without it, times are not known.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence

from turngate.filesystem.descent import PathChanged
from turngate.filesystem.described import Content, Described

GNU, BSD, NO_STAT = "gnu", "bsd", "none"  # which `stat` there is; that of BusyBox has the options of GNU's

_PREFIX = "turngate: "  # of our own messages on stderr
_VERSION_PREFIX = "turngate-version: "
_C = "LC_ALL=C TZ=UTC0; export LC_ALL TZ; unset CDPATH QUOTING_STYLE POSIXLY_CORRECT; "
_FIELDS = {
    GNU: "%f %i %d %h %u %g %s %.9X %.9Y %.9Z %n",
    BSD: "%Xp %i %d %l %u %g %z %Fa %Fm %Fc %N",
}
# `describe L|"" NAME…` prints one line for each file; L follows links. BSD's `stat -L` does not report a broken link.
_DESCRIBE = f"""\
describe() {{ follow=$1; shift; case $stat_kind in
{GNU}) stat ${{follow:+-L}} -c '{_FIELDS[GNU]}' -- "$@" ;;
{BSD}) {{ [ -z "$follow" ] || [ $# -gt 1 ] || ls -dL -- "$1" >/dev/null; }} && stat ${{follow:+-L}} -f '{_FIELDS[BSD]}' -- "$@" ;;
*) ls -dlin$follow -- "$1" ;;
esac; }}
"""
# `target NAME` sets `target` to what a link holds, also with newlines at its end.
_TARGET = """\
if command -v readlink >/dev/null; then target() { target=$(readlink -n "$1" && printf x) && target=${target%x}; }
else target() { target=$(ls -ld "$1" && printf x) && target=${target%?x} && target=${target#*"$1 -> "}; }; fi
"""

STAT_KIND = (
    f"if stat -c %f / >/dev/null 2>&1; then echo {GNU}; "
    f"elif stat -f %p / >/dev/null 2>&1; then echo {BSD}; else echo {NO_STAT}; fi"
)
STAT = f'{_C}{_DESCRIBE}stat_kind=$1; describe "$2" "$3"'
READLINK = f"""{_C}{_TARGET}
[ -h "$1" ] || {{ ls -d "$1" >/dev/null && echo 'Invalid argument' >&2; exit 1; }}
target "$1" && printf %s "$target" """
LISTDIR = f"""{_C}
ls -dL "$1" >/dev/null || exit 1
[ -d "$1" ] || {{ echo 'Not a directory' >&2; exit 1; }}
cd "$1" && find . ! -name . -prune -exec printf '%s\\0' {{}} +"""
IS_EXECUTABLE = '[ -x "$1" ] || exit 3'

# A pipe or a device may never end, so only regular files are opened.
_CHECK_REGULAR = """\
[ -f "$1" ] || { [ ! -d "$1" ] || echo 'Is a directory'; ls -dL "$1" >/dev/null && echo 'turngate: special'; exit 1; } >&2
"""
# `version NAME` prints what differs after a file was written.
_VERSION = f"""\
version() {{ case $stat_kind in
{GNU}) stat -c '%s %.9Y' -- "$1" ;;
{BSD}) stat -f '%z %Fm' -- "$1" ;;
*) cksum <"$1" ;;
esac; }}
"""
# `enter FOLDER`: it has no links, unless one has been put there meanwhile.
_ENTER = f"""\
enter() {{ [ -d "$1" ] || {{ ls -dL -- "$1" >/dev/null && echo 'Not a directory' >&2; exit 1; }}
cd -P "$1" 2>/dev/null || {{ echo 'Permission denied' >&2; exit 1; }}
here=$(pwd -P && printf x) && [ "$here" = "$1$(printf '\\nx')" ] || fail link; }}
fail() {{ echo "{_PREFIX}$1" >&2; exit 1; }}
"""
# `READ PATH STAT_KIND FIRST COUNT`: blocks. The version is on stderr.
BLOCK_BYTES = 65536
_READ = f"""\
stat_kind=$2 v=$(version "$1") && echo {_VERSION_PREFIX}$v >&2
exec dd if="$1" bs={BLOCK_BYTES} skip="$3" count="$4" """
READ = f"{_C}{_VERSION}{_CHECK_REGULAR}{_READ}"
# The same for a path without links: `READ_RESOLVED ./NAME STAT_KIND FIRST COUNT FOLDER`
READ_RESOLVED = f"""{_C}{_VERSION}{_ENTER}
enter "$5"; [ ! -h "$1" ] || fail link
{_CHECK_REGULAR}{_READ}"""

# `INSPECT STAT_KIND FOLDER ./NAME`: the line of `stat` for the file itself, its version, and whether it may be written.
INSPECT = f"""{_C}{_DESCRIBE}{_VERSION}{_ENTER}
enter "$2"; stat_kind=$1; describe '' "$3" || exit 1
printf '\\0'; [ -h "$3" ] || [ ! -f "$3" ] || echo $(version "$3"); printf '\\0'; [ ! -w "$3" ] || echo w"""
# `REPLACE STAT_KIND FOLDER NAME TEMPORARY SIZE CREATE VERSION OWNER MODE` replaces a file by stdin in one step, if it still has this
# version; an empty one means that there is no such file. Prints the new version.
REPLACE = f"""{_C}{_VERSION}{_ENTER}
[ -z "$6" ] || mkdir -p -- "$2" || exit 1
enter "$2"; stat_kind=$1 name=$3 temporary=./$4
[ ! -h "$name" ] || fail link
[ ! -e "$name" ] || current=$(version "$name") || exit 1
[ "$(echo $current)" = "$7" ] || fail changed
set -C; : >"$temporary" || exit 1; set +C
trap 'rm -f "$temporary"' EXIT; trap 'exit 1' HUP INT PIPE TERM
cat >"$temporary" || exit 1
[ "$(wc -c <"$temporary")" -eq "$5" ] || fail short
[ -z "$9" ] || {{ chown "$8" "$temporary" 2>/dev/null; chmod "$9" "$temporary" || exit 1; }}
mv -f "$temporary" "$name" || exit 1
echo $(version "$name")"""

_ERRORS = {
    "Disk quota exceeded": errno.EDQUOT,
    "File name too long": errno.ENAMETOOLONG,
    "Filename too long": errno.ENAMETOOLONG,  # musl
    "Input/output error": errno.EIO,
    "Invalid argument": errno.EINVAL,
    "Is a directory": errno.EISDIR,
    "No space left on device": errno.ENOSPC,
    "No such file or directory": errno.ENOENT,
    "Not a directory": errno.ENOTDIR,
    "Operation not permitted": errno.EPERM,
    "Permission denied": errno.EACCES,
    "Quota exceeded": errno.EDQUOT,  # musl
    "Read-only file system": errno.EROFS,
    "Stale file handle": errno.ESTALE,
    "Symbolic link loop": errno.ELOOP,  # musl
    "Too many levels of symbolic links": errno.ELOOP,
}


class FileChanged(OSError):
    """The file is not what it was when it was inspected."""


def error_of(messages: str, path: str) -> OSError:
    """Return the error that a script or, at the end of a line, a program printed."""
    for line in messages.splitlines():
        if line.startswith(_PREFIX):
            return _own_error(line.removeprefix(_PREFIX), path)
        for text, number in _ERRORS.items():
            if line.endswith(text):
                return OSError(number, os.strerror(number), path)
    return OSError(errno.EIO, messages.strip().rpartition("\n")[2] or os.strerror(errno.EIO), path)


def _own_error(name: str, path: str) -> OSError:
    match name:
        case "link":
            return PathChanged(path)
        case "special":
            return OSError(errno.EINVAL, "it is not a regular file", path)
        case "changed":
            return FileChanged(errno.EBUSY, "it has just been changed; try again", path)
        case _:
            return OSError(errno.EIO, "not all of it arrived", path)


def version_in(messages: str) -> str:
    """Return the version that READ printed."""
    found = (line for line in messages.splitlines() if line.startswith(_VERSION_PREFIX))
    return next(found, "").removeprefix(_VERSION_PREFIX)


_N, _TIME = r"(\d{1,20})", r"(-?\d{1,20}(?:\.\d+)?)"  # larger ones would overflow
_LINE = re.compile(
    rf"([0-9a-f]{{1,8}}) {_N} (-?\d+) {_N} {_N} {_N} {_N} {_TIME} {_TIME} {_TIME} ", re.IGNORECASE
)
_LS_LINE = re.compile(rf" *{_N} +([a-zA-Z-]{{10}})\S* +{_N} +{_N} +{_N} +{_N}(,?)")


def parse_stat(text: str, stat_kind: str) -> os.stat_result:
    """Return what `describe` printed for one file. Raises ValueError."""
    found = (_LS_LINE if stat_kind == NO_STAT else _LINE).match(text)
    if found is None:
        raise ValueError(f"not the output of stat: {text[:100]!r}")
    return _from_ls(*found.groups()) if stat_kind == NO_STAT else _from_fields(*found.groups())


def _from_fields(mode: str, *fields: str) -> os.stat_result:
    inode, device, links, uid, gid, size = map(int, fields[:6])
    times = [_nanoseconds(field) for field in fields[6:]]
    seconds = [time // 10**9 for time in times]
    named = dict(zip(("st_atime_ns", "st_mtime_ns", "st_ctime_ns"), times, strict=True))
    floats = dict(zip(("st_atime", "st_mtime", "st_ctime"), (time / 10**9 for time in times), strict=True))
    return os.stat_result(
        (int(mode, 16), inode, device, links, uid, gid, size, *seconds), {**named, **floats}
    )


def _nanoseconds(text: str) -> int:
    """`12.5`; without a fraction from a `stat` that has none."""
    seconds, _, fraction = text.partition(".")
    nanoseconds = int(fraction[:9].ljust(9, "0")) if fraction else 0
    return int(seconds) * 10**9 + nanoseconds


_KINDS = {
    "-": stat.S_IFREG,
    "d": stat.S_IFDIR,
    "l": stat.S_IFLNK,
    "p": stat.S_IFIFO,
    "s": stat.S_IFSOCK,
    "b": stat.S_IFBLK,
    "c": stat.S_IFCHR,
}


def _from_ls(
    inode: str, mode: str, links: str, uid: str, gid: str, size: str, is_device: str
) -> os.stat_result:
    bits = _KINDS.get(mode[0], 0)
    for n, letter in enumerate(mode[1:10]):
        bits |= (letter not in "-ST") << (8 - n)
    for n, bit in ((3, stat.S_ISUID), (6, stat.S_ISGID), (9, stat.S_ISVTX)):
        bits |= bit if mode[n] in "sStT" else 0
    return os.stat_result(
        (bits, int(inode), 0, int(links), int(uid), int(gid), 0 if is_device else int(size), 0, 0, 0)
    )


# Many files with one command

# `sh -c DESCRIBE_ALL sh STAT_KIND LINKS FOLDER NAME…` prints `dFOLDER`. For each name follow three fields: what it is (l: link,
# f: file, d: folder, o: other, -: missing; then r if it is readable, x if it is executable) with the name; for a link, if
# LINKS is not empty, its target, and the line of `stat` for what it leads to. After an empty field come the lines of
# `stat` for all names, without LINKS for what they lead to. Each field ends with NUL.
DESCRIBE_ALL = f"""{_C}{_DESCRIBE}{_TARGET}
stat_kind=$1 links=$2; printf 'd%s\\0' "$3"; shift 3
for f do
r=-; [ -r "$f" ] && r=r; x=-; [ -x "$f" ] && x=x; target= followed= kind=o
if [ -h "$f" ]; then kind=l; [ -z "$links" ] || {{ target "$f"; followed=$(describe L "$f"); }}
elif [ -f "$f" ]; then kind=f; elif [ -d "$f" ]; then kind=d; elif [ ! -e "$f" ]; then kind=-; fi
printf '%s%s%s%s\\0%s\\0%s\\0' $kind $r $x "$f" "$target" "$followed"
done
printf '\\0'
case $stat_kind-$links in {NO_STAT}*) ;; *-) describe L "$@" ;; *) describe '' "$@" ;; esac
printf '\\0'
exit 0"""

# `sh -c FETCH_ALL sh STAT_KIND TOKEN FOLDER NAME…` prints `cFOLDER`, the names of the files that can be read, an empty field,
# and the lines of `stat`. Then come the contents of all of them, and TOKEN: a file may have changed meanwhile.
FETCH_ALL = f"""{_C}{_DESCRIBE}
stat_kind=$1 token=$2; printf 'c%s\\0' "$3"; shift 3
for f do shift; [ -f "$f" ] && [ -r "$f" ] && set -- "$@" "$f"; done
printf '%s\\0' "$@" ''; [ $# -eq 0 ] || describe L "$@"; printf '\\0'
[ $# -eq 0 ] || cat -- "$@"; printf '%s\\0' "$token"
exit 0"""

# `TREE DESCRIBE_ALL STAT_KIND FOLDER DEPTH NAMES PRUNE…` describes what is below a folder and not a folder itself. PRUNE is the
# beginning of the expression of `find`, NAMES another part of it with one word on each line. It prints `e` first if folders are
# deeper than DEPTH.
TREE = f"""{_C}{_ENTER}
describe=$1 stat_kind=$2 folder=$3 depth=$4 names=$5; shift 5; enter "$folder"
find . "$@" -type d -print | awk -F/ -v "depth=$depth" 'NF > depth + 1 {{ printf "e"; exit }}'
set -f; IFS='
'
find . "$@" ! -type d $names -exec sh -c "$describe" sh "$stat_kind" '' "$folder" {{}} +
exit 0"""

# `SEARCH TEXT FOLDER PRUNE…`: the names of the files that have a text, one on each line.
SEARCH = f"""{_C}{_ENTER}
enter "$2"; text=$1; shift 2
find . "$@" -type f -exec grep -lF -e "$text" {{}} +
exit 0"""

# `SNAPSHOT DESCRIBE_ALL FETCH_ALL STAT_KIND TOKEN PATH…` describes all paths, and everything down to three levels below each path
# that ends with `/.`, one level below one that ends with `/./.`; it prints the contents of small files. It fails if a folder
# could not be listed: names that are left out must not look like files that do not exist.
MAX_SNAPSHOT_FILE_BYTES = 65536
_SMALL_FILES = f"-type f -size -{MAX_SNAPSHOT_FILE_BYTES + 1}c"
SNAPSHOT = f"""{_C}
describe=$1 fetch=$2 stat_kind=$3 token=$4 code=0; shift 4
sh -c "$describe" sh "$stat_kind" links '' "$@"
find "$@" -prune {_SMALL_FILES} -exec sh -c "$fetch" sh "$stat_kind" "$token" '' {{}} +
for folder do case $folder in
*/./.) cd "$folder" || continue
find . ! -name . -prune -exec sh -c "$describe" sh "$stat_kind" links "${{folder%/.}}" {{}} + || code=1
;; */.) cd "$folder" || continue
find . -path './*/*/*/*' -prune -o -exec sh -c "$describe" sh "$stat_kind" links "$folder" {{}} + || code=1
find . -path './*/*/*/*' -prune -o {_SMALL_FILES} -exec sh -c "$fetch" sh "$stat_kind" "$token" "$folder" {{}} +
;; esac; done
exit $code"""


def parse_files(data: bytes, stat_kind: str, token: str) -> Iterator[Described | Content]:
    """Yield what DESCRIBE_ALL and FETCH_ALL printed. Raises ValueError for anything else, such as output that was truncated."""
    output = _Output(data)
    while not output.at_end:
        kind, folder = output.head()
        if kind == "d":
            yield from _described(output, folder, stat_kind)
        elif kind == "c":
            yield from _contents(output, folder, stat_kind, token.encode())
        else:
            raise ValueError("unknown output")


class _Output:
    """Fields that end with NUL."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def at_end(self) -> bool:
        return self._at == len(self._data)

    def field(self) -> str:
        end = self._data.index(0, self._at)
        field = self._data[self._at : end]
        self._at = end + 1
        return field.decode("utf-8", "surrogateescape")

    def head(self) -> tuple[str, str]:
        field = self.field()
        return field[:1], field[1:].removesuffix("/.")

    def fields(self, count: int) -> Iterator[tuple[str, ...]]:
        """Yield groups of fields until the first one of a group is empty."""
        while first := self.field():
            yield (first, *(self.field() for _ in range(count - 1)))

    def contents(self, sizes: Sequence[int], token: bytes) -> list[bytes] | None:
        """Return the contents of files of these sizes, or None if the token does not follow them."""
        start = self._at
        self._at = self._data.index(token + b"\0", start) + len(token) + 1
        if self._at - len(token) - 1 != start + sum(sizes):
            return None
        ends = [start := start + size for size in sizes]
        return [self._data[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def _described(output: _Output, folder: str, stat_kind: str) -> Iterator[Described]:
    records = [(first[:3], first[3:], *more) for first, *more in output.fields(3)]
    stats = _stat_lines(output.field(), [name for _, name, *_ in records], stat_kind)
    for (flags, name, target, followed), info in zip(records, stats, strict=True):
        leads_to = parse_stat(f"{followed} ", stat_kind) if followed else None
        if path := _join(folder, name):
            yield Described(path, flags[0], flags[1:2] == "r", flags[2:] == "x", target, info, leads_to)


def _contents(output: _Output, folder: str, stat_kind: str, token: bytes) -> Iterator[Content]:
    names = [name for name, *_ in output.fields(1)]
    stats = _stat_lines(output.field(), names, stat_kind)
    known = [info for info in stats if info is not None]
    contents = output.contents([info.st_size for info in known], token)
    if contents is not None and len(known) == len(names):
        for name, info, content in zip(names, known, contents, strict=True):
            if path := _join(folder, name):
                yield Content(path, info, content)


def _stat_lines(text: str, names: Sequence[str], stat_kind: str) -> list[os.stat_result | None]:
    """Return the lines for these names, in this order; None where there is none."""
    found: list[os.stat_result | None] = []
    at = 0
    for name in names:
        line = _LINE.match(text, at)
        if line is not None and text.startswith(f"{name}\n", line.end()):
            found.append(parse_stat(line[0], stat_kind))
            at = line.end() + len(name) + 1
        else:
            found.append(None)
    return found


def _join(folder: str, name: str) -> str:
    """Return the path of a name that is absolute, or begins with `./`, or is `.`; "" if the name is none of these.

    The machine is not trusted to print only names that it was asked for.
    """
    if folder and name != ".":
        return f"{folder.rstrip('/')}/{name[2:]}" if name.startswith("./") and is_plain(name[2:]) else ""
    path = f"{folder.rstrip('/')}/." if folder else name
    plain = path.removesuffix("/.").removesuffix("/.")
    return path if path.startswith("/") and (plain in ("", "/") or is_plain(plain[1:])) else ""


def is_plain(path: str) -> bool:
    """Return whether a relative path is only names, so that it stays below its folder."""
    return not any(name in ("", ".", "..") for name in path.split("/"))
