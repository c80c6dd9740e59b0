#!/bin/sh
# The whole guarded call: a kept answer, else a healthy engine, a proven model and one bounded inference.
#
# usage: run_guarded.sh "PROMPT" ROLE N
#
# Standard output is the answer alone; the number is run-guarded's. Repairs happen with SELFHEAL_MODE=fix only.

script=$0 # zsh calls a function by its own name there
case $script in */*) sh_dir=${script%/*} ;; *) sh_dir=. ;; esac

# A hit needs three programs of one directory and nothing else. Words decide: a damaged copy gives no key, or no byte.
if [ $# = 3 ]; then
  for at in "${SELFHEAL_BIN_DIR:-/dev/null}" "$sh_dir/../out" "$sh_dir/../bin" "$sh_dir/../../../bin" "${HOME:-/dev/null}/.shim"; do
    [ -s "$at/run-guarded" ] || continue
    if [ ! -x "$at/run-guarded" ] || [ ! -x "$at/prompt-cache" ] || [ ! -x "$at/sh-timeout" ]; then continue; fi
    if [ -z "${SELFHEAL_MANIFEST-}" ] && [ -f "$sh_dir/../manifest.json" ]; then
      SELFHEAL_MANIFEST=$sh_dir/../manifest.json
      export SELFHEAL_MANIFEST
    fi
    key=$("$at/sh-timeout" --stdin 10 "$at/run-guarded" --key -- "$@" 2>/dev/null </dev/null)
    case $key in '' | *[!0-9a-f]*) break ;; esac
    answer=$("$at/sh-timeout" 10 "$at/prompt-cache" --get "$key" 2>/dev/null && printf x)
    case $answer in
      x | '') ;;
      *x)
        { printf '%s' "${answer%x}" 3>&1; } 2>/dev/null && exit
        sh -c 'echo "run_guarded.sh: cannot write to standard output: it is full or closed" >&2'
        exit 74
        ;;
    esac
    break
  done
fi

if [ ! -f "$sh_dir/selfheal.sh" ]; then
  printf 'run_guarded.sh: selfheal.sh is not beside it\nhint: in a checkout git checkout sh; else reinstall: make install, or install.sh\n' >&2
  exit 69
fi
_selfheal_from=$sh_dir
# shellcheck source=sh/selfheal.sh
. "$sh_dir/selfheal.sh"
_selfheal_alone
_selfheal_name=run_guarded.sh
_selfheal_put '' || exit # with a closed standard output the next file opened would be taken for it

say() { (printf 'run_guarded.sh: %s\n' "$1" >&2) || :; }

# The role that `auto` will choose, so that its model can be made ready: at most eight words are a short question.
chosen() {
  [ "$2" = auto ] || { printf '%s\n' "$2" && return; }
  if [ "$(($(printf '%s' "$1" | wc -w)))" -le 8 ]; then printf 'scout\n'; else printf 'spark\n'; fi
}

main() {
  if [ "$#:${1-}" = 1:--help ]; then
    _selfheal_help "$script"
    return
  fi
  if [ $# != 3 ]; then
    printf 'run_guarded.sh: PROMPT, ROLE and N are needed\nhint: %s\n' 'run_guarded.sh "What is the capital of France?" auto 64' >&2
    return 64
  fi
  if [ "$1" = - ]; then
    printf "run_guarded.sh: '-' reads no prompt here\nhint: run-guarded - ROLE N\n" >&2
    return 64
  fi
  _selfheal_home || return
  selfheal_llama_rebuild --status >/dev/null || {
    say 'the engine is not healthy'
    selfheal_do 'rebuild the engine' selfheal_llama_rebuild >&2
  }
  # what is wrong with the call itself is run-guarded's to say
  selfheal_ensure_model "$(chosen "$1" "$2")" >/dev/null
  key=''
  _selfheal_seek run-guarded
  at=${_sh_found#ok }
  if [ "$_sh_found" != "$at" ]; then
    key=$(_selfheal_environment && run_with_timeout 20 "$at" --key -- "$@" 2>/dev/null)
    case $key in *[!0-9a-f]*) key='' ;; esac
    if [ ${#key} = 64 ]; then
      selfheal_prompt_cache -k "$key" -- "$at" -- "$@"
      return
    fi
  fi
  selfheal_run_guarded -- "$@"
}

main "$@"
