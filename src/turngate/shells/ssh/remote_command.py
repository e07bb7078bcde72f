"""A command for the POSIX shell of another machine: quoting, and the one line that starts it.

The login shell of the other machine may be any (bash, zsh, fish, tcsh), and its arguments can be seen by all users
there. So the login shell gets only BOOTSTRAP, which is the same for every command and means the same to every shell.
The rest is one line on stdin, which `/bin/sh` reads and evaluates; what follows it is the stdin of the command.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

BOOTSTRAP = "exec /bin/sh -c 'IFS= read -r turngate_line && eval \"$turngate_line\"'"

# A line has no newline, so a variable holds it.
_NEWLINE = "turngate_newline"
_DEFINE_NEWLINE = f"{_NEWLINE}=$(printf '\\nx'); {_NEWLINE}=${{{_NEWLINE}%x}}; "

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# Variables of the shell itself. bash ends when the first ones are assigned; it keeps the others up to date.
_READ_ONLY = frozenset({"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"})
_OWN_VARIABLES = frozenset({"_", "IFS", "OLDPWD", "OPTIND", "PWD", "SHLVL"})

NO_FOLDER = "folder"  # what the line prints instead of a process id
NO_PROGRAM = "program"
NOT_EXECUTABLE = "executable"
CR_LF = "crlf"
NO_INTERPRETER = "interpreter"  # and its path


def quote(text: str) -> str:
    """Return one word of a line for `/bin/sh` that stands for exactly this text, which has no NUL."""
    quoted = "'" + text.replace("'", "'\\''") + "'"
    return quoted.replace("\n", f"'\"${_NEWLINE}\"'")


def command_line(
    argv: Sequence[str], *, cwd: str, env: Mapping[str, str], base: Mapping[str, str], token: str
) -> str:
    """Return the line that replaces the shell by a program, in a folder and with exactly this environment.

    `base` is the environment that the shell itself has. Before the program starts, the line prints `TOKEN PID` on
    stdout and `TOKEN` on stderr: what comes before is from the login shell. If the program cannot start, it prints
    `TOKEN folder`, `TOKEN program`, `TOKEN executable`, `TOKEN crlf` or `TOKEN interpreter PATH`.
    """
    steps = (
        f"cd -- {quote(cwd)} 2>/dev/null || {_fail(token, NO_FOLDER)}",
        "unset OLDPWD",
        *_environment(env, base),
        *_program_checks(argv[0], token),
        f"printf '%s %s\\n' {token} $$",
        f"printf '%s\\n' {token} >&2",
        *_bash_for_script(argv),
        "exec " + " ".join(map(quote, argv)),
    )
    return as_line("; ".join(steps))


def as_line(script: str) -> str:
    """Return a script of quoted words with what they need."""
    return _DEFINE_NEWLINE + script if f'"${_NEWLINE}"' in script else script


def unsettable(env: Mapping[str, str], base: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of variables that a shell cannot set, such as `a.b`."""
    return tuple(sorted(name for name in _changed(env, base) if not _NAME.fullmatch(name)))


def _environment(env: Mapping[str, str], base: Mapping[str, str]) -> Iterable[str]:
    gone = sorted(name for name in base.keys() - env.keys() if _is_settable(name))
    if gone:
        yield "unset " + " ".join(gone)
    for name, value in _changed(env, base).items():
        if _is_settable(name):
            yield f"export {name}={quote(value)}"


def _changed(env: Mapping[str, str], base: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if base.get(name) != value}


def _is_settable(name: str) -> bool:
    return bool(_NAME.fullmatch(name)) and name not in _READ_ONLY and name not in _OWN_VARIABLES


def _program_checks(program: str, token: str) -> Iterable[str]:
    word = quote(program)
    if "/" in program:
        yield f"[ -e {word} ] || {_fail(token, NO_PROGRAM)}"
        yield f"{{ [ -f {word} ] && [ -x {word} ]; }} || {_fail(token, NOT_EXECUTABLE)}"
    else:
        yield f"command -v {word} >/dev/null 2>&1 || {_fail(token, NO_PROGRAM)}"
    if _may_be_script(program):
        no_interpreter = _fail(token, f'"{NO_INTERPRETER} $1"')
        yield f"turngate_first=; [ ! -r {word} ] || IFS= read -r turngate_first <{word}"
        yield "turngate_cr=$(printf '\\r'); set -f; set -- ${turngate_first#'#!'}; set +f"
        yield f"case $turngate_first in '#!'*\"$turngate_cr\") {_fail(token, CR_LF)} ;; esac"
        yield f"case $turngate_first in '#!'*) [ -e \"$1\" ] || {no_interpreter} ;; esac"


def _may_be_script(program: str) -> bool:
    return "/" in program and program != "/bin/sh"


def _bash_for_script(argv: Sequence[str]) -> Iterable[str]:
    """Give a script without a `#!` line to bash, as `LocalShell` does; `exec` of a shell would read it as `sh`."""
    if _may_be_script(argv[0]):
        bash = "command -v bash >/dev/null 2>&1 && exec bash " + " ".join(map(quote, argv))
        text = f"''|[[:print:][:space:]]*) [ ! -r {quote(argv[0])} ] || {{ {bash}; }} ;;"
        yield f"case $turngate_first in '#!'*) ;; {text} esac"


def _fail(token: str, why: str) -> str:
    return f"{{ printf '%s %s\\n' {token} {why}; exit 1; }}"


# The cleanup shell: one shell for each connection

# What it, the copies of files and searches need; all of them are utilities of POSIX.
PROGRAMS = "awk cat cksum find grep mkdir mv printf rm sh sleep"
MISSING = "missing"  # what the cleanup shell prints before the names of those that there are not

# `exec sh` in .bashrc reads the line as a script; it would also read what is meant for the stdin of commands.
REPLACED = "a startup file there starts another shell, also without a terminal"

# `end_run PID START MARKER`: TERM to all processes of a run, KILL to those that are left half a second later. They are the
# process group PID, and if there is a /proc also its session, all descendants of PID, and all processes with MARKER in their
# initial environment. Zombies do not count: not every init reaps them soon. PID counts only if it is not 0, and not the
# number of another process by now: one that did not start at START. `has_processes PID MARKER`, after the end of PID: is one
# left?
_END_FUNCTIONS = """\
start_of() { t=; read -r t <"/proc/$1/stat" && { t=${t##*)}; set -- $t; t=${20}; }; };
marked() { grep -l -e "$m" /proc/[0-9]*/environ; };
is_ours() { [ "$p" -gt 1 ] && { start_of "$p"; [ -z "$t" ] || [ "$t" = "$s" ]; }; };
living() { r=$d g=; is_ours && r="$p $d" g=$p; [ -z "$r" ] || cat /proc/[0-9]*/stat | awk -v "roots=$r" -v "group=$g" '
{ pid = $1; sub(/^.*[)] /, ""); parent[pid] = $2; if ($1 == "Z") dead[pid]; if ($3 == group || $4 == group) ours[pid] }
END { split(roots, list); for (i in list) ours[list[i]]; for (pid in parent) if (!(pid in dead)) {
n = 0; for (q = pid; q > 1 && n++ < 9999; q = parent[q]) if (q in ours) { print pid; break } } }'; };
signal() { is_ours && kill -s "$1" -- "-$p"; for f in $d; do kill -s "$1" "$f"; done;
for f in $(marked); do f=${f#/proc/}; kill -s "$1" "${f%/environ}"; done; };
alive() { d=$(living); [ -n "$d$(marked)" ] || { [ ! -r /proc/self/stat ] && is_ours && kill -s 0 -- "-$p"; }; };
nap() { sleep 0.1 || sleep 1; };
end_run() { p=$1 s=$2 m=$3 d=; d=$(living); signal TERM; i=0;
while alive && [ $i -lt 5 ]; do nap; i=$((i + 1)); done; i=0;
while alive && [ $i -lt 20 ]; do signal STOP; signal KILL; nap; i=$((i + 1)); done; };
has_processes() { p=$1 s= m=$2 d=; alive; } 2>/dev/null;"""

# `make_folder NAME`: make a private folder for temporary files, and print its path, or why there is none.
_MAKE_FOLDER = """\
make_folder() { case $TMPDIR in /*) d=$TMPDIR ;; *) d=/tmp ;; esac; d=$d/turngate-$1;
e=$(umask 077; mkdir "$d" 2>&1) && e=$d; };"""

# It ends if a program is missing. Otherwise it prints its environment, then reads `+ PID MARKER` (a run starts, with PID 0
# before it is known), `- PID MARKER` (it has ended), `! PID MARKER` (end it), `. 0 MARKER` (only answer), `/ 0 NAME` (make a
# folder), and `= 0 MARKER` with a short script on the next line. At the end of its stdin the connection is gone: it ends
# what still runs, and removes the folder.
_CLEANUP = """\
[ -n "$turngate_line" ] || {{ echo "{replaced}" >&2; exit 1; }};
trap '' HUP INT PIPE TERM; exec 2>/dev/null;
( m=; for p in {programs}; do command -v "$p" >/dev/null || m="$m $p"; done;
[ -z "$m" ] || {{ echo "{token} {missing}$m"; false; }} ) || exit;
printf '%s\\n' {token};
awk -v "end={token}" 'BEGIN {{ for (name in ENVIRON) printf "%s=%s\\n%s\\n", name, ENVIRON[name], end; print end }}';
runs=; folder=;
remove() {{ kept=; for run in $runs; do [ "${{run##*:}}" = "$1" ] || kept="$kept $run"; done; runs=$kept; }};
while read -r what pid marker; do start_of "$pid"; case $what in
+) runs="$runs $pid:$t:$marker" ;;
-) remove "$marker" ;;
!) remove "$marker"; {{ end_run "$pid" "$t" "$marker"; echo "{token} $marker"; }} </dev/null & ;;
.) printf '%s %s\\n' {token} "$marker" ;;
/) make_folder "$marker" && folder=$d; printf '%s %s %s\\n' {token} "$marker" "$e" ;;
=) IFS= read -r line; o=$(eval "$line" </dev/null 2>&1); printf '%s %s %s %s\\n' {token} "$marker" $? "$o" ;;
esac; done;
for run in $runs; do pid=${{run%%:*}}; t=${{run#*:}};
end_run "$pid" "${{t%:*}}" "${{run##*:}}" </dev/null >/dev/null & done; wait;
[ -z "$folder" ] || rm -rf "$folder";"""


def cleanup_line(token: str) -> str:
    cleanup = _CLEANUP.format(token=token, programs=PROGRAMS, missing=MISSING, replaced=REPLACED)
    return " ".join(map(_joined, (_END_FUNCTIONS, _MAKE_FOLDER, cleanup)))


def end_line(pid: str, marker: str) -> str:
    """Return the line that ends one run, for a connection whose cleanup shell does not answer."""
    steps = f'exec 2>/dev/null; {_joined(_END_FUNCTIONS)} start_of {quote(pid)}; end_run {quote(pid)} "$t" {quote(marker)}'
    return as_line(steps)


def _joined(script: str) -> str:
    return " ".join(script.splitlines())
