# Builds the sdist and the wheel, tries both and the Dockerfile in empty environments, and says what is left to do.
# Nothing is published.
set -eu
version=$(.venv/bin/python -c 'import tomllib; print(tomllib.load(open("pyproject.toml", "rb"))["project"]["version"])')
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
rm -rf dist
.venv/bin/python -m venv "$scratch/build"
"$scratch/build/bin/pip" install -q --disable-pip-version-check build pipx twine uv
# PyPI shows the README without the files beside it: its links become addresses.
github=https://github.com/turngate/turngate
mkdir "$scratch/source"
cp -R pyproject.toml CHANGELOG.md LICENSE man src "$scratch/source"
sed -E -e "s#\]\((docs/assets/)#]($github/raw/main/\1#g" -e "s#\]\((docs/|[A-Z]+\.md)#]($github/blob/main/\1#g" \
  README.md >"$scratch/source/README.md"
"$scratch/build/bin/python" -m build -q --outdir dist "$scratch/source"
"$scratch/build/bin/twine" check dist/*

try() { # NAME PROGRAM: one blocked stop, by the installed program
  mkdir -p "$scratch/project/.turngate"
  echo '{"hooks": {"Stop": [{"hooks": [{"type": "gate", "command": "test -e done"}]}]}}' >"$scratch/project/.turngate/settings.json"
  code=0
  (cd "$scratch/project" && HOME="$scratch/home" "$2" fire Stop --trust >"$scratch/printed" 2>&1) || code=$?
  [ "$code" = 10 ] || { cat "$scratch/printed"; echo "$1: exit code $code instead of 10"; exit 1; }
  echo "works     $1: $("$2" --version)"
}

for file in dist/*; do
  .venv/bin/python -m venv "$scratch/empty"
  "$scratch/empty/bin/pip" install -q --disable-pip-version-check "$file"
  try "pip install $file" "$scratch/empty/bin/turngate"
  rm -rf "$scratch/empty"
done
wheel=$(ls dist/*.whl)
export UV_CACHE_DIR="$scratch/cache" UV_TOOL_DIR="$scratch/uv" UV_TOOL_BIN_DIR="$scratch/uv-bin"
"$scratch/build/bin/uv" tool install -q "$wheel"
try 'uv tool install' "$scratch/uv-bin/turngate"
echo "works     uvx --from: $("$scratch/build/bin/uvx" -q --from "$wheel" turngate --version)"
PIPX_HOME="$scratch/pipx" PIPX_BIN_DIR="$scratch/pipx-bin" "$scratch/build/bin/pipx" install -q "$wheel" >/dev/null
try 'pipx install' "$scratch/pipx-bin/turngate"
"$scratch/build/bin/uv" lock -q --check
.venv/bin/python tools/docker_steps.py >"$scratch/printed" 2>&1 || { cat "$scratch/printed"; echo "the steps of the Dockerfile failed"; exit 1; }
echo "works     the steps of the Dockerfile, without apt-get"
cat <<END

Built dist/ for $version. To publish it, a person has to:
  1. write the date of the version in CHANGELOG.md, run "make reference", and commit
  2. git tag v$version && git push origin main v$version
  3. uvx twine upload dist/*
  4. the first time: write "uv tool install turngate" in README.md and docs/how-to/install.md
END
