# Runs one step of the checks: sh tools/step.sh NAME COMMAND...
# Prints one line if it passes (and the tests that were skipped), and the whole output if it fails.
name=$1
shift
printf '%-8s' "$name"
if output=$("$@" 2>&1); then
  printf '%s\n' "${output:-ok}" | tail -n 1
  printf '%s\n' "$output" | sed -n 's/^SKIPPED/        skipped/p'
else
  code=$?
  printf 'failed\n%s\n' "$output"
  exit "$code"
fi
