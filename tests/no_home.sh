#!/bin/sh
# Without a home, HOME being unset, empty or relative, every command says so in one line with the contract's number, and
# nothing is looked for or written in the root directory instead.
# shellcheck source=tests/harness.sh
. "${0%/*}/harness.sh"
# shellcheck source=tests/small_world.sh
. "$root/tests/small_world.sh"

mkdir "$box/cwd"
cd "$box/cwd" || exit 74
# HOME ARG...: a command of the shell under test there; its status, then how many lines it said.
homeless() {
  case $1 in
    unset) unset HOME ;;
    *) HOME=$1 && export HOME ;;
  esac
  shift
  SELFHEAL_MODE=fix
  export SELFHEAL_MODE
  "$@" >"$box/out" 2>"$box/err" </dev/null
  printf '%s %s' $? "$(grep -c . "$box/err")"
}
# FUNCTION ARG...: a function of selfheal.sh.
# shellcheck disable=SC2016 # the other shell's
sourced() { under -c '. "$0/sh/selfheal.sh"; "$@"' "$tree" "$@"; }
# bash and zsh look HOME up where it is unset, which is as good as one.
homes=' empty relative'
# shellcheck disable=SC2016 # the other shell's
[ "$(unset HOME && under -c 'echo "${HOME-none}"')" != none ] || homes="$homes unset"

everything() { census "$box" | grep -v -e "^$box/out " -e "^$box/err " -e "^$box d"; }
everything >"$box/../${box##*/}.before"
# shellcheck disable=SC2046 # one word each
for home in $(printf '%s\n' "$homes" | tr ' ' '\n'); do
  case $home in empty) home= ;; esac
  like "HOME '$home': preflight names it" "$(homeless "$home" under "$tree/sh/preflight")$(cat "$box/out")" \
    '"5 0"*"bad	host	home	HOME is not an absolute path"*'
  is "HOME '$home': preflight --json, too" \
    "$(homeless "$home" under "$tree/sh/preflight" --json)$(grep -c '"state":"bad","kind":"host","subject":"home"' "$box/out")" '5 01'
  for program in 'gguf-verify scout' 'hf-fetch scout' 'breaker x -- true' 'llama-rebuild --status' 'model-budget scout 8' \
    'run-guarded x scout 8'; do
    is "HOME '$home': plain $program" "$(eval "homeless '$home' under '$tree/sh/fallback' $program")" '74 2'
    like "HOME '$home': $program" "$(eval "homeless '$home' '$tree/out/'$program")" "'74 '[23]"
    like "HOME '$home': $program names the variable" "$(cat "$box/err")" '*HOME*"hint: export HOME"*'
  done
  is "HOME '$home': what needs no home works" "$(homeless "$home" under "$tree/sh/fallback" sh-timeout 5 true)" '0 0'
  is "HOME '$home': install-shim" "$(homeless "$home" under "$tree/sh/install-shim")" '74 2'
  is "HOME '$home': install-shim --check" "$(homeless "$home" under "$tree/sh/install-shim" --check)" '74 2'
  is "HOME '$home': a guarded call" "$(homeless "$home" under "$tree/sh/run_guarded.sh" x scout 8)" '74 2'
  is "HOME '$home': a swarm" "$(homeless "$home" under "$tree/sh/swarm" x scout)" '74 2'
  is "HOME '$home': tune" "$(homeless "$home" under "$tree/sh/tune.sh")" '74 2'
  is "HOME '$home': a model" "$(homeless "$home" sourced selfheal_ensure_model scout)" '74 2'
  is "HOME '$home': heal" "$(homeless "$home" sourced selfheal_heal)" '74 2'
  is "HOME '$home': a package" "$(homeless "$home" sourced selfheal_host_package no-such-package | cut -d ' ' -f 1)" 74
  is "HOME '$home': PATH has no shim directory" "$(homeless "$home" sourced env)$(grep -c 'PATH=.*shim' "$box/out")" '0 00'
  is "HOME '$home': a home of its own is enough" \
    "$(SELFHEAL_HOME=$box/.selfheal SELFHEAL_MODE=check && export SELFHEAL_HOME && homeless "$home" under "$tree/sh/fallback" gguf-verify scout)" '0 0'
done
is 'SELFHEAL_HOME is relative: wrong usage' "$(SELFHEAL_HOME=x && export SELFHEAL_HOME && homeless "$box" sourced selfheal_heal)" '64 2'
like 'SELFHEAL_HOME is relative: named' "$(cat "$box/err")" '*"SELFHEAL_HOME is not"*'
is 'nothing was written' "$(everything | diff "$box/../${box##*/}.before" -)" ''
rm "$box/../${box##*/}.before"

if command -v strace >/dev/null; then
  # COMMAND...: the paths below / that stand for a home which is none, and programs sought in / itself.
  sought() {
    strace -f -qq -e trace=%file -o "$box/trace" -- "$@" >/dev/null 2>&1 </dev/null
    grep -oE '"/(\.selfheal|\.shim|\.swr|\.clawhub|llama\.cpp|sh-timeout|gguf-verify|run-guarded)[^"]*"' "$box/trace" | sort -u
  }
  is 'a look that finds something is seen' "$(sought ls /.selfheal)" '"/.selfheal"'
  is 'preflight looks for nothing in /' "$(HOME='' && export HOME && sought sh "$tree/sh/preflight")" ''
  for program in 'gguf-verify scout' 'breaker x -- true' 'llama-rebuild --status'; do
    # shellcheck disable=SC2086 # words of a command line
    is "plain $program looks for nothing in /" "$(HOME='' && export HOME && eval "sought sh '$tree/sh/fallback' $program")" ''
  done
  is 'a guarded call looks for nothing in /' "$(HOME='' && export HOME && sought sh "$tree/sh/run_guarded.sh" x scout 8)" ''
else
  echo 'note: not here, not tested: strace'
fi
finish
