#!/bin/sh
# `make demo`: a real engine and a real model answer, lose what a snapshot takes, are named for what they are, heal, answer
# again. Everything happens in a throwaway home; every step checks what it shows, and the first wrong one ends the demo.
set -u
kind=demo
case $0 in */*) ;; *) echo 'call it by its path' >&2 && exit 64 ;; esac
# shellcheck source=tests/e2e/world.sh
. "${0%/*}/world.sh"

question='What is the capital of France?'
table=''

# NAME COMMAND...: runs a step and notes its seconds for the table.
timed() {
  step=$1 began_step=$(now)
  shift
  "$@" || die "$step: ended $?"
  table="$table$(printf '%9s s  %s' "$(seconds $(($(now) - began_step)))" "$step")
"
}

# STATUS PATTERN COMMAND...: shows what a tool says; it must end with STATUS and say PATTERN (an extended regular
# expression, `^$` for nothing at all).
shows() {
  want=$1 pattern=$2
  shift 2
  printf '\n$ %s\n' "$*"
  "$@" >"$world/said" 2>&1
  status=$?
  sed 's/^/    /' "$world/said"
  printf '    -> %s\n' "$status"
  [ "$status" = "$want" ] || die "that ended $status, not $want"
  grep -qE "$pattern" "$world/said" || die "that does not say: $pattern"
}

# One answer, complete by the three signs, which is what run-guarded's 0 means.
answer() {
  said=$(selfheal_run_guarded "$question" demo 48) || die "no answer: $?"
  [ -n "$said" ] || die 'an empty answer'
  printf '\n    %s\n    -> %s\n\n' "$question" "$said"
}

# Everything that preflight calls a program or a model is so: STATE.
all_well() {
  # shellcheck disable=SC2119 # no arguments meant
  selfheal_preflight >"$world/said"
  sed 's/^/    /' "$world/said"
  ! grep -v '^ok' "$world/said" | grep -E '	(binary|model)	'
}

# Every file of the home and the toolkit: equal before and after means nothing was written.
untouched() { find "$HOME" "$world/toolkit" -printf '%p %y %m %s %T@ %l\n' | sort; }

# What a snapshot does: large files emptied, a download replaced by an error page, execute bits gone.
wipe() {
  for program in "$HOME"/.selfheal/engine/*/llama-completion; do : >"$program"; done
  chmod a-x "$HOME"/.selfheal/engine/*/llama-simple "$SELFHEAL_BIN_DIR/gguf-verify"
  printf 'Entry not found' >"$models/$file"
}

main() {
  build_world
  # The one small model is the everyday one here.
  sed -e '/^{"role":"[^"]*"/{/^{"role":"demo"/!d;}' -e 's/"test":true,//' "$root/manifest.json" >"$world/toolkit/manifest.json"
  printf 'A throwaway home: %s\nKept for the next run: %s\n\n' "$HOME" "$cache"

  say 'source of the engine and the small model: proven in the cache, or fetched (130 MB, about half a minute)'
  timed 'source and model, fetched or proven' fetched
  say 'engine: reused if kept, else compiled (about 8 minutes on two idle cores)'
  timed 'engine, compiled or reused' bring_engine
  say 'model: copied, proven, renamed'
  timed 'model, copied and proven' bring_model
  say 'first answer'
  timed 'first answer' answer
  say 'preflight, healthy'
  timed 'preflight, healthy' all_well || die 'not healthy'

  serve_models
  say 'the wipe: engine emptied, model replaced by an error page, execute bits gone'
  wipe
  before=$(untouched)
  start=$(now)
  say 'what each tool says'
  shows 5 '^stripped	binary	gguf-verify	' selfheal_preflight
  shows 69 'lost its execute bits' selfheal_find gguf-verify
  shows 3 '^corrupt	model	demo	' selfheal_gguf_verify demo
  shows 5 '^DRY: would give gguf-verify' \
    selfheal_do 'give gguf-verify its execute bits back' chmod 755 "$SELFHEAL_BIN_DIR/gguf-verify"
  shows 3 '^corrupt	model	demo	.*Entry not found' env SELFHEAL_MANIFEST="$world/toolkit/manifest.json" "$programs/gguf-verify" demo
  shows 5 '^would	model	demo	' fetch_model
  shows 4 '^short	binary	engine	llama-completion.* 0 bytes' selfheal_llama_rebuild --status
  shows 5 '^DRY: would rebuild the engine' selfheal_llama_rebuild --from-archive "$archive"
  shows 4 'llama-completion' selfheal_run_guarded "$question" demo 48
  [ "$(untouched)" = "$before" ] || die 'check mode wrote'
  table="$table$(printf '%9s s  %s' "$(seconds $(($(now) - start)))" 'eight diagnoses after the wipe')
"

  SELFHEAL_MODE=fix
  export SELFHEAL_MODE
  say 'healing: execute bits, model, engine (compiled again from the compiler cache)'
  timed 'execute bits back' selfheal_do 'give gguf-verify its execute bits back' chmod 755 "$SELFHEAL_BIN_DIR/gguf-verify"
  timed 'model healed' fetch_model
  timed 'engine healed' selfheal_do 'rebuild the engine' rebuild_engine
  unset SELFHEAL_MODE
  say 'second answer'
  timed 'second answer' answer
  say 'preflight, healed'
  timed 'preflight, healed' all_well || die 'not healed'
  printf '\nselfheal.log:\n'
  sed 's/^/    /' "$HOME/.selfheal/selfheal.log"
  printf '\n%s%9s s  all\n' "$table" "$(seconds $(($(now) - began)))"
}

# The repair of a model: fetched from the hub, here nginx on the loopback interface, through the breaker.
fetch_model() {
  SELFHEAL_MANIFEST=$world/toolkit/manifest.json "$SELFHEAL_BIN_DIR/breaker" --verdicts demo -- "$SELFHEAL_BIN_DIR/hf-fetch" demo
}

fetched() {
  "$root/tests/e2e/fetch.sh" archive >/dev/null && "$root/tests/e2e/fetch.sh" model >/dev/null
}

main
