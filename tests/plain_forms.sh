#!/bin/sh
# A plain form ends with the number its program ends with, whatever is wrong with the call, the manifest or the variables.
# shellcheck source=tests/harness.sh
. "${0%/*}/harness.sh"
# shellcheck source=tests/small_world.sh
. "$root/tests/small_world.sh"

# PROGRAM ARG...: the number of the program, then that of its plain form.
numbers() {
  program=$1
  shift
  "$tree/out/$program" "$@" >/dev/null 2>&1 </dev/null
  printf '%s ' $?
  under "$tree/sh/fallback" "$program" "$@" >"$box/out" 2>"$box/err" </dev/null
  printf '%s' $?
}
# MANIFEST WANT: every program that reads it, with that one.
manifest() {
  SELFHEAL_MANIFEST=$1
  export SELFHEAL_MANIFEST
  for call in 'gguf-verify' 'gguf-verify scout' 'hf-fetch scout' 'model-budget scout 8' 'model-budget show' 'run-guarded x scout 8'; do
    is "manifest $3: $call" "$(eval "numbers $call")" "$2 $2"
    is "manifest $3: plain $call: what to do" "$(grep -c '^hint: ' "$box/err")" 1
  done
  is "manifest $3: a path needs none" "$(numbers gguf-verify "$sound")" "$4"
  unset SELFHEAL_MANIFEST
}
manifest "$box/none.json" 69 'that is not there' '0 5'
manifest "$box" 74 'that is a directory' '0 5'
printf 'Entry not found' >"$box/page.json"
manifest "$box/page.json" 74 'that is an error page' '0 5'
manifest "$box/page.json/x" 69 'below a file' '0 5'
mv "$tree/manifest.json" "$box/away.json"
for call in 'gguf-verify scout' 'hf-fetch scout' 'model-budget show' 'run-guarded x scout 8'; do
  is "no manifest beside the programs: $call" "$(eval "numbers $call")" '69 69'
done
mv "$box/away.json" "$tree/manifest.json"
mv "$engine" "$box/engine"
is 'no manifest and nothing to build from' "$(SELFHEAL_MANIFEST=$box/none.json && export SELFHEAL_MANIFEST && numbers llama-rebuild)" '69 69'
mv "$box/engine" "$engine"

for call in 'gguf-verify --bogus' 'hf-fetch' 'hf-fetch --bogus' 'hf-fetch nosuch' 'breaker --bogus' 'breaker x' 'prompt-cache -k 1 -- true' \
  'model-budget nosuch 8' 'model-budget scout 0' 'llama-rebuild x' 'run-guarded x nosuch 8' 'run-guarded x scout' 'sh-timeout x true' \
  'sh-timeout 5'; do
  is "wrong usage: $call" "$(eval "numbers $call")" '64 64'
done
is 'breaker after a producer that said nothing' "$(numbers breaker) $(wc -l <"$box/err")" '5 5 1'
for program in $(programs); do
  is "$program --help" "$(numbers "$program" --help)" '0 0'
  # shellcheck disable=SC2016 # like evaluates it
  like "$program --help, plain, says how it is called" "$(cat "$box/out")" '*"usage: $program "*'
done
for variable in SELFHEAL_HOME SELFHEAL_MODELS_DIR; do
  is "$variable is relative" "$(eval "$variable=x && export $variable" && numbers gguf-verify scout)" '64 64'
done
is 'SELFHEAL_LLAMA_DIR is relative' "$(SELFHEAL_LLAMA_DIR=x && export SELFHEAL_LLAMA_DIR && numbers llama-rebuild --status)" '64 64'

# What would be refused is refused in both modes, and not called what would be done.
printf 'Entry not found' >"$models/scout.gguf"
HF_ENDPOINT=http://10.0.0.5:8080
export HF_ENDPOINT
for SELFHEAL_MODE in check fix; do
  export SELFHEAL_MODE
  is "$SELFHEAL_MODE mode, an endpoint of plain http" "$(numbers hf-fetch scout)$(cut -f 1,4 "$box/out" | cut -d : -f 1)" '3 3failed	refused'
  is "$SELFHEAL_MODE mode, an endpoint of plain http: nothing is promised" "$(grep -c DRY "$box/err")" 0
done
unset HF_ENDPOINT
is 'fix mode, a directory of models that cannot be made' \
  "$(SELFHEAL_MODELS_DIR=/proc/none/models && export SELFHEAL_MODELS_DIR && numbers hf-fetch scout)$(grep -c SELFHEAL_MODELS_DIR "$box/out")" '3 31'
unset SELFHEAL_MODE

# The command behind a plain form has the caller's own environment.
for LC_ALL in C.UTF-8 C; do
  export LC_ALL
  for form in 'sh-timeout 5' 'breaker x --' "prompt-cache -k $(printf '%064d' 7) --"; do
    is "plain $form hands LC_ALL=$LC_ALL on" "$(eval "under '$tree/sh/fallback' $form printenv LC_ALL" 2>&1)" "$LC_ALL"
  done
done
unset LC_ALL
rm "$tree/out/sh-timeout"
is 'no LC_ALL is handed on as none, over timeout(1) too' "$(under "$tree/sh/fallback" sh-timeout 5 printenv LC_ALL)" ''
finish
