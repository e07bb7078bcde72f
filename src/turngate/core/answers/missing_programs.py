r"""The lines with which programs say that what they should run is not there: a script, a program, a target of make.

To add a program: its line here, which no failing check may print. `\ ` is a blank: the patterns are verbose.
"""

# The program itself then ends with exit code 2, which would be a block.
_ENDS_WITH_2 = r"""
    (?:.*/)?(?:python|pypy)[\d.]*:\ can't\ open\ file\ .*       # python FILE, also after `uv run`, `poetry run` …
  | error:\ Failed\ to\ spawn:\ .*                              # uv run
  | error:\ No\ interpreter\ found\ for\ Python\ .*             # uv run
  | (?:.*/)?(?:da)?sh:\ 0:\ cannot\ open\ .*                    # dash FILE; line 0 is the script itself
  | (?:.*/)?sh:\ can't\ open\ '.*                               # sh FILE of busybox
  | Can't\ open\ perl\ script\ .*
  | Fatal\ error:\ cannot\ open\ file\ .*                       # Rscript FILE
  | g?make(?:\[\d+\])?:\ \*\*\*\ (?:No\ rule\ to\ make\ target\ \S+|No\ targets\ .*|\S+:\ No\ such\ file\ or\ directory)\.\s+Stop\.
"""
_ENDS_OTHERWISE = r"""
    (?:\S*/)?(?:ba|da|z|k|a)?sh:\s(?:line\s)?(?:\d+:\s)?\S+:\s(?:command\s)?not\ found
  | (?:\S*/)?zsh:(?:\d+:)?\scommand\ not\ found:\s\S+
  | \S+:\s(?:line\s)?\d+:\s\S+:\s(?:command\s)?not\ found       # in a script
  | (?:\S*/)?python[\d.]*:\sNo\ module\ named\s\S+              # python -m TOOL
  | g?make(?:\[\d+\])?:\s\*\*\*\s.*\sError\s12[67]              # the program of a recipe
  | npm\s(?:ERR!|error)\sMissing\ script:.*
  | npm\s(?:ERR!|error)\s(?:enoent\ )?Could\ not\ read\ package\.json:.*
  | npm\s(?:ERR!|error)\scould\ not\ determine\ executable\ to\ run.*
  | npx\ canceled\ due\ to\ missing\ packages.*
  | \s*ERR_PNPM_NO_SCRIPT.*
  | error\ Command\ ".*"\ not\ found\.?                         # yarn
  | error:\ Script\ not\ found\ ".*"                            # bun
  | error:\ no\ such\ (?:sub)?command:?\s`.*                    # cargo
  | error:\ rustup\ could\ not\ choose\ a\ version\ of\ \S+\ to\ run.*
  | error:\ toolchain\ '.*'\ is\ not\ installed.*               # rustup
  | error:\ could\ not\ find\ `Cargo\.toml`\ in\ .*
  | go:\ (?:cannot\ find\ main\ module|go\.mod\ file\ not\ found).*
  | Command\ not\ found:\s\S+                                   # poetry
  | As\ a\ reminder,\ you're\ using\ offline\ mode.*             # cargo, without a package
  | .*\*\*\ \(Mix\)\ (?:Could\ not\ find\ an\ SCM\ for\ dependency\ .*|Can't\ continue\ due\ to\ errors\ on\ dependencies)
  | bundler:\ command\ not\ found:\s\S+
  | .*:\ can't\ find\ executable\ \S+\ for\ gem\ \S+\ .*           # bundler, with the start script of Debian
  | .*\bCould\ not\ find\ .*\ in\ (?:locally\ installed\ gems|any\ of\ the\ sources|cached\ gems).*   # bundler
"""
MISSING = f"(?x)(?:{_ENDS_WITH_2} | {_ENDS_OTHERWISE})"
# At the end of stderr, with the line of uv that says why.
NOT_STARTED = rf"(?xm)^(?:{_ENDS_WITH_2})(?:\n\s+(?:cause|Caused\ by):\ .*)?\Z"
