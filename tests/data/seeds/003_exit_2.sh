if ! npm test; then
  echo "Tests failed. Please fix:" >&2
  npm test 2>&1 >&2  # Show errors to Claude
  exit 2
fi
