"""The cases of the gate `clean`. It runs no command of the user; output of any size is that of `git status`."""

import os

from tests.support.gates import GateCase
from tests.support.git_projects import commit, fails, files, removed, repository, runs_git, steps

WORDS = ("clean",)
ADVICE = "Commit what belongs to your task, or stash it with `git stash`."
FILES = {"a.txt": "1\n", "b.txt": "1\n", "sub/c.txt": "1\n"}
REPOSITORY = repository(FILES)
MERGE = (
    REPOSITORY,
    runs_git("checkout", "-q", "-b", "other"),
    files({"a.txt": "2\n"}),
    commit,
    runs_git("checkout", "-q", "main"),
    files({"a.txt": "3\n"}),
    commit,
)
ORIGIN = (
    REPOSITORY,
    runs_git("init", "-q", "--bare", "../origin.git"),
    runs_git("remote", "add", "origin", "../origin.git"),
    runs_git("push", "-q", "--set-upstream", "origin", "main"),
)


def blocked(*findings: str) -> dict[str, str]:
    listed = "\n".join(each if each.startswith("and ") else f"- {each}" for each in findings)
    return {"decision": "block", "reason": f"these changes are not committed:\n{listed}\n{ADVICE}"}


def reason(text: str) -> dict[str, str]:
    return {"decision": "block", "reason": text}


def not_enforced(why: str) -> dict[str, str]:
    return {"systemMessage": f'gate "clean" could not run: {why}; it was NOT enforced'}


START = steps(REPOSITORY, files({"a.txt": "of the user\n", "notes of the user": ""}), removed("b.txt"))

CASES = [
    GateCase("passed: all is committed", WORDS, steps(REPOSITORY), {}),
    GateCase(
        "passed: nothing changed since a commit",
        WORDS,
        steps(REPOSITORY, files({"a.txt": "2\n"}), commit),
        {},
    ),
    GateCase(
        "failed: changed, staged, deleted",
        WORDS,
        steps(REPOSITORY, files({"a.txt": "2\n", "n.txt": ""}), runs_git("add", "n.txt"), removed("b.txt")),
        blocked("modified: a.txt", "deleted: b.txt", "new: n.txt"),
    ),
    GateCase(
        "passed, with a note: a new repository inside of the project",
        WORDS,
        steps(REPOSITORY, files({"part/b.txt": ""}), runs_git("init", "-q", "part")),
        {"systemMessage": 'gate "clean": not checked, because it is a repository of its own: part/'},
    ),
    GateCase(
        "failed: staged, with the file as it was",
        WORDS,
        steps(REPOSITORY, runs_git("rm", "-q", "--cached", "a.txt")),
        blocked("deleted: a.txt"),
    ),
    GateCase(
        "failed: renamed",
        WORDS,
        steps(REPOSITORY, runs_git("mv", "a.txt", "z.txt")),
        blocked("deleted: a.txt", "new: z.txt"),
    ),
    GateCase(
        "failed: a change that is hidden from git status",
        WORDS,
        steps(REPOSITORY, runs_git("update-index", "--assume-unchanged", "a.txt"), files({"a.txt": "2\n"})),
        blocked("modified: a.txt"),
    ),
    GateCase(
        "passed: stashed", WORDS, steps(REPOSITORY, files({"a.txt": "2\n"}), runs_git("stash", "-q")), {}
    ),
    GateCase("passed: a file that is not tracked", WORDS, steps(REPOSITORY, files({"new.txt": ""})), {}),
    GateCase(
        "failed: a file that is not tracked, by choice",
        ("clean", "--untracked"),
        steps(REPOSITORY, files({"folder/new file": "", ".gitignore": "ignored\n", "ignored": ""})),
        blocked("not tracked: .gitignore", 'not tracked: "folder/new file"'),
    ),
    GateCase(
        "failed: many files",
        WORDS,
        steps(REPOSITORY, files({f"{number:02}": "" for number in range(22)}), runs_git("add", ".")),
        blocked(*(f"new: {number:02}" for number in range(10)), "and 12 more"),
    ),
    GateCase(
        "failed: stop_hook_active passes no gate",
        WORDS,
        steps(REPOSITORY, files({"a.txt": "2\n"}), stop_hook_active=True),
        blocked("modified: a.txt"),
    ),
    GateCase(
        "waiting: a subagent works in the background",
        WORDS,
        steps(
            REPOSITORY,
            files({"a.txt": "2\n"}),
            background_tasks=[{"id": "1", "type": "subagent", "status": "running"}],
        ),
        {"systemMessage": 'gate "clean" waits: a subagent works in the background; it was NOT enforced'},
    ),
    GateCase("recorded: what the user has left does not count", WORDS, steps(), {}, START),
    GateCase(
        "recorded: what the user has left counts once it is changed",
        WORDS,
        steps(files({"a.txt": "of the agent\n"})),
        blocked("modified: a.txt"),
        START,
    ),
    GateCase(
        "recorded: new files count",
        WORDS,
        steps(files({"new.txt": ""})),
        blocked("not tracked: new.txt"),
        START,
    ),
    GateCase(
        "recorded: new files do not count, by choice",
        ("clean", "--tracked-only"),
        steps(files({"new.txt": ""})),
        {},
        START,
    ),
    GateCase(
        "recorded: what is staged since counts",
        WORDS,
        steps(runs_git("add", "a.txt")),
        blocked("modified: a.txt"),
        START,
    ),
    GateCase(
        "recorded: what the user has staged may lose its place in the index",
        WORDS,
        steps(runs_git("reset", "--quiet")),
        {},
        steps(START, runs_git("add", "a.txt")),
    ),
    GateCase("recorded: all is committed", WORDS, steps(files({"new.txt": ""}), commit), {}, START),
    GateCase(
        "failed: a merge with conflicts",
        WORDS,
        steps(*MERGE, fails("merge", "other")),
        reason(
            f"a merge is in progress: complete or abort it.\nthese changes are not committed:\n- unmerged: a.txt\n{ADVICE}"
        ),
    ),
    GateCase(
        "failed: a rebase in progress, nothing to commit",
        WORDS,
        steps(*MERGE, fails("rebase", "other"), runs_git("checkout", "-q", "--force", "HEAD")),
        reason("a rebase is in progress: complete or abort it."),
    ),
    GateCase(
        "recorded: a merge of the user in progress",
        WORDS,
        steps(),
        {},
        steps(*MERGE, fails("merge", "other")),
    ),
    GateCase("passed: pushed", ("clean", "--pushed"), steps(*ORIGIN), {}),
    GateCase(
        "failed: not pushed",
        ("clean", "--pushed"),
        steps(*ORIGIN, commit, commit),
        reason("the branch has 2 commits that are not pushed: run `git push`."),
    ),
    GateCase("passed: not pushed is fine by default", WORDS, steps(*ORIGIN, commit), {}),
    GateCase("recorded: commits of the user", ("clean", "--pushed"), steps(), {}, steps(*ORIGIN, commit)),
    GateCase(
        "passed: no upstream, with a note",
        ("clean", "--pushed"),
        steps(REPOSITORY),
        {
            "systemMessage": 'gate "clean": the branch has no upstream, so whether its commits are pushed is not known'
        },
    ),
    GateCase("passed: an empty repository", WORDS, steps(runs_git("init", "-q")), {}),
    GateCase(
        "failed: a repository without a commit",
        WORDS,
        steps(runs_git("init", "-q"), files({"a": ""}), runs_git("add", "a")),
        blocked("new: a"),
    ),
    GateCase(
        "could not run: no git", WORDS, steps(files(FILES)), not_enforced("the project has no git repository")
    ),
    GateCase(
        "could not run: an empty project", WORDS, steps(), not_enforced("the project has no git repository")
    ),
    GateCase(
        "strict: no git",
        ("clean", "--strict"),
        steps(),
        reason('gate "clean" could not run: the project has no git repository'),
    ),
    GateCase(
        "failed: names with blanks, newlines, quotes, arrows and bytes that are not UTF-8",
        ("clean", "--untracked"),
        steps(
            REPOSITORY,
            files({"-rf": "", "a b\nc": "", 'q"': "", "ü": "", "x -> y": "", os.fsdecode(b"\xff"): ""}),
        ),
        blocked(
            "not tracked: -rf",
            'not tracked: "a b\\nc"',
            'not tracked: "q\\""',
            'not tracked: "x -> y"',
            "not tracked: ü",
            'not tracked: "\\xff"',
        ),
    ),
    GateCase(
        "failed: 10 MB in a binary file",
        WORDS,
        steps(REPOSITORY, files({"a.txt": bytes(range(256)) * 40960})),
        blocked("modified: a.txt"),
    ),
    GateCase(
        "could not run: a corrupt index",
        WORDS,
        steps(REPOSITORY, files({".git/index": "DIRC" + "x" * 100})),
        not_enforced(
            "the state of the git repository cannot be read: "
            "error: bad index version 2021161080 fatal: index file corrupt"
        ),
    ),
    GateCase(
        "could not run: its own timeout",
        ("clean", "--timeout", "0.01"),
        steps(REPOSITORY),
        not_enforced("the state of the git repository cannot be read within 0.01 s"),
    ),
]
