# Runs one step of the checks: sh tools/step.sh NAME WHAT COMMAND...
# Says what it does before it starts, and how long it took. Prints the whole output only if the step fails.
name=$1 what=$2
shift 2
printf '%-8s %s ... ' "$name" "$what"
started=$(date +%s)
code=0
output=$("$@" 2>&1) || code=$?
seconds=$(($(date +%s) - started))
if [ "$code" = 0 ]; then
  printf '%s (%s s)\n' "$(printf '%s' "${output:-ok}" | tail -n 1)" "$seconds"
  printf '%s\n' "$output" | sed -n 's/^SKIPPED/         skipped/p'
else
  printf 'failed (%s s)\n%s\n' "$seconds" "$output"
  exit "$code"
fi
