#!/bin/sh
# Field case D29: sourcing sh/selfheal.sh leaves the caller's shell as it was, whatever state that was in, and its functions
# return.
# shellcheck source=tests/harness.sh
. "${0%/*}/harness.sh"

# The library lies below a directory with a blank in its name, is named by a relative path, and finds out/ by where it lies.
mkdir -p "$box/a b/tree/sh" "$box/a b/tree/out" "$box/a b/cwd"
cp "$root/sh/selfheal.sh" "$root/sh/preflight" "$box/a b/tree/sh/"
cp "$SELFHEAL_BIN_DIR/sh-timeout" "$box/a b/tree/out/"
unset SELFHEAL_BIN_DIR

# SETUP SOURCE AFTER: a shell whose user did SETUP, sources, and then does AFTER, whose output is printed.
user_shell() {
  cat >"$box/caller.sh" <<END
state() {
  case \$- in *e*) printf 'errexit\n' ;; esac
  set +o
  trap
  umask
  printf 'IFS <%s>\n' "\${IFS-unset}"
  pwd
  alias
  printf '%s arguments\n' "\$#"
  printf '<%s>\n' "\$@"
  printf 'mine <%s> <%s> <%s> <%s> <%s>\n' "\${name-}" "\${at-}" "\${left-}" "\${rest-}" "\${self-}"
  # zsh keeps \$? in status and PATH in path.
  [ -n "\${ZSH_VERSION-}" ] || printf 'mine <%s> <%s>\n' "\${status-}" "\${path-}"
}
HERE=\$HOME
$1
# Names that are set, but for those that shells set by themselves and the two that may change.
variables() {
  set | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p' | sort -u |
    grep -v -e '^_selfheal_dir$' -e '^_\$' -e '^BASH_' -e '^PIPESTATUS$' -e '^pipestatus$' -e '^OPT' -e '^LINENO$' -e '^KSH_MATCH$'
}
state "\$@" >|"\$HERE/before"
variables >|"\$HERE/before.names"
{
$2
} >|"\$HERE/said" 2>&1
state "\$@" >|"\$HERE/after"
variables >|"\$HERE/after.names"
$3
END
  (cd "$box/a b/cwd" && under "$box/caller.sh" one 'two  words' '' 2>"$box/stderr")
}
thrice='. ../tree/sh/selfheal.sh; . ../tree/sh/selfheal.sh; . ../tree/sh/selfheal.sh'

while read -r setup; do
  case $setup in *EXIT*) bye=bye ;; *) bye= ;; esac
  is "d29 [$setup] shell lives on" "$(user_shell "$setup" "$thrice" 'printf alive')" "alive$bye"
  is "d29 [$setup] nothing printed" "$(cat "$box/said" "$box/stderr")" ''
  is "d29 [$setup] state" "$(cat "$box/after")" "$(cat "$box/before")"
  is "d29 [$setup] variables" "$(diff "$box/before.names" "$box/after.names")" ''
done <<'SETUPS'
name=n at=a left=l rest=r self=s
[ -n "${ZSH_VERSION-}" ] || { path=mine; status=mine; }
set -eu
set -u
set -e
set -f
set -C
IFS=:
IFS=
unset IFS
umask 077
trap "printf bye" EXIT
trap "" INT; trap : TERM
shift 2
set -- -e -- "*"
alias readlink=false tr=false cat=false command=command
cd() { return 1; }; readlink() { return 1; }
set -eu; unset HOME
HOME=; export HOME
HOME=relative
cd "$HOME"; cd "$OLDPWD"
SETUPS

# The check itself can fail: a library with effects is found out.
for effect in 'set +f; set -f' 'trap : HUP' 'umask 027' 'IFS=,' 'cd /' 'alias ll=ls' 'leak=1'; do
  user_shell : "$effect" ''
  like "a source that does '$effect' is found out" \
    "$(diff -a "$box/before" "$box/after")$(diff "$box/before.names" "$box/after.names")" '*?*'
done

# shellcheck disable=SC2016 # the caller expands these
{
  is 'the shim directory is on PATH once' "$(user_shell 'set -eu' "$thrice" 'printf "%s" "$PATH"')" "$box/.shim:$PATH"
  is 'a PATH that has it is left alone' "$(user_shell 'PATH=$PATH:$HOME/.shim' "$thrice" 'printf "%s" "$PATH"')" "$PATH:$box/.shim"
  is 'no PATH, nothing prepended' "$(user_shell 'old=$PATH; PATH=' '. ../tree/sh/selfheal.sh' 'echo "<$PATH>"; PATH=$old')" '<>'

  found="$box/a b/tree/sh/../out/sh-timeout"
  is 'it knows where it lies' "$(user_shell : "$thrice" 'selfheal_find sh-timeout')" "${found#"$box/a b/cwd/"}"
  is 'also when a function sources it' \
    "$(user_shell 'load() { . ../tree/sh/selfheal.sh; }' load 'selfheal_find sh-timeout')" "$found"
  is 'also in a subshell' "$(user_shell : : '(. ../tree/sh/selfheal.sh; selfheal_find sh-timeout)')" "$found"
  is 'also by its absolute path' "$(user_shell : '. "$HOME/a b/tree/sh/selfheal.sh"' 'cd /; selfheal_find sh-timeout')" "$found"

  printf '#!/bin/sh\necho "gguf-verify 9"\n' >"$box/a b/cwd/gguf-verify"
  chmod 755 "$box/a b/cwd/gguf-verify"
  is 'a program in the current directory is not taken for ours' \
    "$(user_shell 'PATH=.::$PATH:' "$thrice" 'selfheal_find gguf-verify || echo $?')" 69
  is 'on PATH it is' "$(user_shell 'PATH=$PATH:$PWD' "$thrice" 'selfheal_find gguf-verify')" "$box/a b/cwd/gguf-verify"

  # What a caller made readonly is no name of ours, and what is exported reaches the command as it was.
  names='name found bad bound sought left here place file state first at what role seen other code line base log stamp now last self fd rest kind text dir roles program'
  is 'readonly names of the caller are none of ours' "$(user_shell ". ../tree/sh/selfheal.sh; readonly $(printf '%s=his' "$names" | sed 's/ /=his /g')" : \
    'selfheal_find sh-timeout; run_with_timeout 5 echo ran; selfheal_do x true; selfheal_ensure_model scout; echo $?')" "$found
ran
69"
  is 'an exported name reaches the command as it was' "$(user_shell "export $(printf '%s=his' "$names" | sed 's/ /=his /g')" "$thrice" \
    'run_with_timeout 5 env' | grep -c '^[a-z]*=his$')" "$(($(printf '%s\n' "$names" | wc -w)))"
  is 'exporting everything, and a CDPATH, change nothing' "$(user_shell 'set -a; CDPATH=/' "$thrice" \
    'selfheal_find sh-timeout; run_with_timeout 5 echo ran')" "$found
ran"

  # A function that fails returns its number: the shell goes on without errexit, and a handler sees it with errexit.
  for setup in : 'set -u' 'set -eu' 'set -f; IFS=:' 'trap "printf bye" EXIT'; do
    case $setup in *EXIT*) bye=bye ;; *) bye= ;; esac
    is "d29 [$setup] functions return" "$(user_shell "$setup" "$thrice" '
      selfheal_do && : || printf "%s " $?
      selfheal_do "x" false && : || printf "%s " $?
      SELFHEAL_MODE=maybe
      selfheal_do "x" true && : || printf "%s " $?
      run_with_timeout && : || printf "%s " $?
      selfheal_find && : || printf "%s " $?
      selfheal_find "" && : || printf "%s " $?
      selfheal_find ../tree/out/sh-timeout && : || printf "%s " $?
      selfheal_find nothing-of-that-name && : || printf "%s " $?
      selfheal_preflight --no-such && : || printf "%s " $?
      selfheal_gguf_verify && : || printf "%s " $?
      SELFHEAL_MODE=check
      selfheal_ensure_model && : || printf "%s " $?
      selfheal_ensure_model "a b" && : || printf "%s " $?
      selfheal_ensure_model scout && : || printf "%s " $?
      selfheal_host_package "x; y" && : || printf "%s " $?
      selfheal_host_package no-such-package && : || printf "%s " $?
      selfheal_heal && : || printf "%s " $?
      printf alive')" "64 5 64 64 64 64 64 69 64 69 64 64 69 64 5 5 alive$bye"
    # with the plain forms beside it, no program is needed
    cp "$root"/sh/fallback* "$root/manifest.json" "$box/a b/tree/sh/"
    mv "$box/a b/tree/sh/manifest.json" "$box/a b/tree/"
    is "[$setup] plain forms return" "$(user_shell "$setup" "$thrice" '
      selfheal_gguf_verify scout >/dev/null && : || printf "%s " $?
      selfheal_hf_fetch scout >/dev/null && : || printf "%s " $?
      selfheal_breaker && : || printf "%s " $?
      selfheal_prompt_cache && : || printf "%s " $?
      selfheal_llama_rebuild --status >/dev/null && : || printf "%s " $?
      selfheal_model_budget scout 80 && : || printf "%s " $?
      selfheal_model_budget && : || printf "%s " $?
      selfheal_run_guarded x scout 8 && : || printf "%s " $?
      selfheal_ensure_model scout && : || printf "%s " $?
      selfheal_heal >/dev/null && : || printf "%s " $?
      printf alive' </dev/null)" "3 5 5 64 4 34
64 4 3 5 alive$bye"
    rm "$box/a b/tree/sh/"fallback* "$box/a b/tree/manifest.json"
  done
  is 'a failing function alone on its line ends nothing' \
    "$(user_shell : "$thrice" 'selfheal_do x false; run_with_timeout; selfheal_find nothing-of-that-name; printf alive')" alive
  is 'errexit is still on after a call' "$(user_shell 'set -e' "$thrice" 'selfheal_find sh-timeout >/dev/null; false; printf on')" ''
}

finish
