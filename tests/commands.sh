#!/bin/sh
# Every command in sh/, as it is there, says how it is called, refuses what it does not know, and never takes an answer for
# given that did not arrive: a full or closed standard output ends 74 with one line.
# shellcheck source=tests/harness.sh
. "${0%/*}/harness.sh"
# shellcheck source=tests/small_world.sh
. "$root/tests/small_world.sh"

# COMMAND ARG...: its status, stdout and stderr in the files `out` and `err`.
call() {
  called=$1
  shift
  under "$tree/sh/$called" "$@" >"$box/out" 2>"$box/err" </dev/null
  printf '%s' $?
}

count=0
for file in "$tree"/sh/*; do
  [ -x "$file" ] || continue
  count=$((count + 1)) name=${file##*/}
  is "$name --help ends 0 and says nothing on stderr" "$(call "$name" --help)$(cat "$box/err")" 0
  # shellcheck disable=SC2016 # like evaluates it
  like "$name --help says how it is called" "$(cat "$box/out")" '*"usage: $name"*'
  is "$name with an option it does not know: 64 with a hint, nothing on stdout" \
    "$(call "$name" --no-such-option) $(grep -c '^hint: ' "$box/err") $(cat "$box/out")" '64 1 '
  before=$(census "$box" | grep -v -e "^$box/[oe][ur][tr] " -e "^$box d")
  is "$name with an argument it does not know writes nothing, also with consent" \
    "$(SELFHEAL_MODE=fix && export SELFHEAL_MODE && call "$name" --no-such-option)" 64
  is "$name: nothing was written" "$(census "$box" | grep -v -e "^$box/[oe][ur][tr] " -e "^$box d")" "$before"
done
is 'commands were found' "$([ "$count" -ge 8 ] && echo yes)" yes
is 'an argument too many: the hook' "$(call turn-start-hook.sh 5 more)" 64
is 'an argument too many: install-shim' "$(call install-shim --check --json more)" 64
is 'an option behind a role is not measured' "$(call tune.sh scout --bogus)" 64
is 'a swarm without a prompt' "$(call swarm --)" 64

# Standard output that is full, then closed: the status, and how often the loss is said.
lost() {
  lost=$1
  shift
  under "$tree/sh/$lost" "$@" 2>"$box/err" </dev/null >/dev/full
  printf '%s %s, ' $? "$(grep -c 'cannot write to standard output' "$box/err")$(grep -cv 'cannot write to standard output' "$box/err")"
  under "$tree/sh/$lost" "$@" 2>"$box/err" </dev/null >&-
  printf '%s %s' $? "$(grep -c 'cannot write to standard output' "$box/err")$(grep -cv 'cannot write to standard output' "$box/err")"
}
said='74 10, 74 10'
for command in preflight 'preflight --json' 'preflight --help' 'install-shim --check' 'install-shim --check --json' \
  'install-shim --help' 'run_guarded.sh --help' 'swarm --help' 'tune.sh --help' 'turn-start-hook.sh --help' 'fallback --help' \
  'fallback gguf-verify' 'fallback gguf-verify --json scout' 'fallback gguf-verify ./none' 'fallback hf-fetch scout' \
  'fallback model-budget scout 8' 'fallback model-budget show' 'fallback llama-rebuild --status' 'fallback breaker --help'; do
  is "stdout lost: $command" "$(eval "lost $command")" "$said"
done
like 'stdout lost: an answer' "$(lost run_guarded.sh x scout 8)" "'74 1'*', 74 1'*"
like 'stdout lost: an answer of the plain form' "$(lost fallback run-guarded x scout 8)" "'74 1'[0-9]', 74 1'*"
SELFHEAL_MODE=fix && export SELFHEAL_MODE
is 'an answer is kept' "$(guarded 'keep it' scout 8)" '0 four'
is 'stdout lost: a kept answer' "$(lost run_guarded.sh 'keep it' scout 8)" "$said"
is 'stdout lost: a swarm' "$(lost swarm 'keep it' scout | cut -c 1-2)" 74
is 'stdout lost: shims that are installed' "$(lost install-shim)" "$said"
unset SELFHEAL_MODE
for state in ok failed; do
  printf '%s\tmodel\tscout\tx\n' $state >"$box/lines"
  is "stdout lost: verdicts through the plain breaker, $state" "$(
    under "$tree/sh/fallback" breaker <"$box/lines" >/dev/full 2>/dev/null
    printf '%s ' $?
    under "$tree/sh/fallback" breaker <"$box/lines" 2>/dev/null >&-
    printf '%s' $?
  )" '74 74'
done
is 'stdout lost: verdicts of a command of the plain breaker' "$(lost fallback breaker --verdicts x -- echo y)" "$said"
is 'what only hands on runs its command without a stdout too' "$(
  under "$tree/sh/fallback" sh-timeout 5 true >&-
  printf '%s ' $?
  under "$tree/sh/fallback" prompt-cache -k "$(printf '%064d' 7)" -- true >&-
  printf '%s' $?
)" '0 0'

# The functions that print.
for call in 'selfheal_find sh-timeout' 'selfheal_ensure_model scout' 'selfheal_preflight --json'; do
  # shellcheck disable=SC2016 # the other shell's
  is "stdout lost: $call" "$(
    under -c '. "$0/sh/selfheal.sh"; "$@" >/dev/full' "$tree" "${call% *}" "${call#* }" 2>"$box/err"
    printf '%s %s, ' $? "$(grep -c 'cannot write' "$box/err")"
    under -c '. "$0/sh/selfheal.sh"; "$@" >&-' "$tree" "${call% *}" "${call#* }" 2>"$box/err"
    printf '%s %s' $? "$(grep -c 'cannot write' "$box/err")"
  )" '74 1, 74 1'
done
finish
