#!/bin/sh
# Completion names every option, verb and role that the programs' help names, in bash and in zsh, and never waits.
# shellcheck disable=SC2016 # the other shell's
# shellcheck source=tests/harness.sh
. "${0%/*}/harness.sh"

case $UNDER in
  bash | */bash)
    # WORD...: what is offered in place of the last one.
    offered() {
      "$UNDER" --norc -c '. "$0" && COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) && set -- "$1" "${!#}" &&
        _selfheal_bash "$1" "$2" && [ -z "$COMPREPLY" ] || printf "%s\n" "${COMPREPLY[@]}"' "$root/sh/completions" "$@"
    }
    is 'every program is registered' \
      "$("$UNDER" --norc -c '. "$0" && complete -p' "$root/sh/completions" | sed -n 's/.* -F _selfheal_bash //p' | sort | tr '\n' ' ')" \
      "$(cd "$root/bins" && printf '%s\n' * swr | sort | tr '\n' ' ')"
    ;;
  zsh | */zsh)
    # compadd takes everything and leaves the choice to zsh, so the choice is made here.
    offered() {
      "$UNDER" -f -c 'f=$0 last=${@[-1]}; words=("$@") CURRENT=$#; compadd() { shift; print -rl -- "$@"; }; _files() { : }; . $f' \
        "$root/sh/completions" "$@" | awk -v last="$(eval "printf '%s' \"\${$#}\"")" 'NF && index($0, last) == 1'
    }
    mkdir "$box/functions" && cp "$root/sh/completions" "$box/functions/_selfheal"
    is 'every program is registered' "$("$UNDER" -f -c 'fpath=("$0" $fpath); autoload -Uz compinit && compinit -D -u
      print -l ${(k)_comps[(R)_selfheal]}' "$box/functions" | sort | tr '\n' ' ')" "$(
      cd "$root/bins" && printf '%s\n' * swr | sort | tr '\n' ' '
    )"
    ;;
  *)
    finish
    exit
    ;;
esac

bin=$SELFHEAL_BIN_DIR
PATH=$bin:$root/sh:$PATH
# The options of a help text, as the documents' own test reads them, with those that every program has.
options() {
  {
    printf '%s\n' --help --version
    sed -n 's/^ \{1,\}\(-.*\)$/\1/p' "$root/bins/$1/help.txt" | awk '{
      for (i = 1; i <= NF && $i ~ /^-/; i++) {
        word = $i; more = sub(/,$/, "", word); sub(/[=[].*/, "", word); print word
        if (!more) break
      }
    }'
  } | sort -u
}
for program in "$root"/bins/*/; do
  program=$(basename "$program")
  is "$program: options" "$(offered "$program" - | sort)" "$(options "$program")"
done
is 'an option begun' "$(offered sh-timeout --max)" --max-output
is 'an option later on the line' "$(offered gguf-verify scout --de)" --deep
is 'by its path' "$(offered "$bin/gguf-verify" --de)" --deep
is 'verbs, and no others behind one' "$(offered model-budget re | tr '\n' ' ')$(offered model-budget record re)" 'record reset '
is 'the first verb of a usage too' "$(offered swr-canary pl)" plant
is 'roles' "$(offered gguf-verify s | tr '\n' ' ')$(offered run-guarded x sa)" 'scout spark sage sage'
is 'no roles where none is taken' "$(offered swr-why s)" ''
is 'commands of swr' "$(offered swr re | sort | tr '\n' ' ')" 'restore retighten '
is 'options of a command of swr' "$(offered swr add --sen)" --sentinel
is 'options of a command that swr itself is' "$(offered swr doctor --d | sort | tr '\n' ' ')$(offered swr init --w)" '--deep --dry-run --workspace'
is 'a program that is not there' "$(offered "$bin/nothing" -)" ''

# A program that was swept away, or hangs, offers nothing of its own, and soon.
mkdir "$box/bin"
cp "$bin/sh-timeout" "$box/bin/"
: >"$box/bin/breaker"
printf '#!/bin/sh\nexec sleep 60\n' >"$box/bin/hf-fetch"
chmod 755 "$box/bin"/*
began=$(date +%s)
is 'an empty program' "$(offered "$box/bin/breaker" - | sort | tr '\n' ' ')" '--help --version '
is 'a program that hangs' "$(offered "$box/bin/hf-fetch" '')" ''
is 'soon' "$([ $(($(date +%s) - began)) -le 20 ] && echo yes)" yes
finish
