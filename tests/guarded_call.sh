#!/bin/sh
# The whole guarded call on a machine that loses things: it comes back with an answer or with a number that says why not.
# shellcheck source=tests/harness.sh
. "${0%/*}/harness.sh"
# shellcheck source=tests/small_world.sh
. "$root/tests/small_world.sh"

fix() { SELFHEAL_MODE=fix "$@"; }
runs() { wc -l <"$calls" | tr -d ' '; }
world() { census "$box" | grep -v -e "^$calls " -e "^$box/said " -e "^$box d"; }

world >"$box/../${box##*/}.before"
is 'a healthy call answers' "$(guarded 'two and two' scout 8)" '0 four'
is 'check mode writes nothing' "$(world | diff "$box/../${box##*/}.before" -)" ''
rm "$box/../${box##*/}.before"
for wrong in 'x scout' 'x nosuch 8' 'x scout many' ' scout 8'; do
  # shellcheck disable=SC2086 # words of a command line
  set -- $wrong
  is "wrong usage: $wrong" "$(guarded "$@")" '64 '
done

is 'a prompt with a leading dash is a prompt' "$(guarded '-1 and 2' scout 8)" '0 four'
is 'also to the plain form' "$(under "$tree/sh/fallback" run-guarded -- '-1 and 2' scout 8 2>/dev/null)" four

# A role that is not there is wrong usage, also where a file of that name is, and the roles that are there are named.
cp "$sound" "$box/nosuch"
is 'an unknown role is no missing model' "$(cd "$box" && function_of selfheal_ensure_model nosuch)" '64 '
is 'an unknown role: the roles there are' "$(sed -n 's/^hint: //p' "$box/said")" 'the roles are scout spark sage '
is 'a role that is there' "$(function_of selfheal_ensure_model sage)" '0 sage'
rm "$box/nosuch"

# A repeated prompt is a hit, and a hit runs nothing.
SELFHEAL_MODE=fix && export SELFHEAL_MODE
: >"$calls"
is 'the first call' "$(guarded 'what is it' scout 8)" '0 four'
is 'the second, the same' "$(guarded 'what is it' scout 8)" '0 four'
is 'ran the engine once' "$(runs)" 1
is 'another prompt is a miss' "$(guarded 'what is it ' scout 8)$(runs)" '0 four2'
mv "$models" "$models.gone"
is 'a hit needs no model' "$(guarded 'what is it' scout 8)" '0 four'
mv "$models.gone" "$models"
is 'a hit in check mode' "$(SELFHEAL_MODE=check && export SELFHEAL_MODE && guarded 'what is it' scout 8)$(runs)" '0 four2'

# A model that never answers: the scout does, which is said, and never kept under the other's name.
echo 60 >"$box/slow-sage"
is 'model timeout: the scout answers, 5' "$(guarded 'deep thoughts' sage 8)" '5 four'
is 'the next call is no hit' "$(
  : >"$calls"
  guarded 'deep thoughts' sage 8
)$(sort -u "$calls" | tr '\n' ' ')" '5 foursage scout '
is 'a swarm prints who comes first' "$(under "$tree/sh/swarm" 'deep thoughts' sage scout 2>/dev/null)" '== scout: 0
four
== sage: 5
four'
rm "$box/slow-sage"
mark=7719.$(printf '%07d' $$)
echo "$mark" >"$box/slow-scout"
# shellcheck disable=SC2086 # `busybox ash` is two words
{ exec $UNDER "$tree/sh/swarm" 'stop me' scout >"$box/said" 2>&1; } &
swarm=$!
tries=500
until [ "$(alive "$mark")" = 1 ] || [ $tries = 0 ]; do tries=$((tries - 1)) && sleep 0.02; done
is 'a swarm that is told to stop: it was asked' "$(alive "$mark")" 1
kill -s TERM "$swarm"
wait "$swarm"
is 'a swarm that is told to stop: its number' "$?" 143
is 'a swarm that is told to stop leaves nothing running' "$(alive "$mark")" 0
rm "$box/slow-scout"

# A missing engine is rebuilt, with consent; llama-rebuild itself is tested elsewhere.
cat >"$tree/out/llama-rebuild" <<'END'
#!/bin/sh
case ${1-} in
  --version) echo 'llama-rebuild 0' ;;
  --status) [ -x "$HOME/llama.cpp/build/bin/llama-completion" ] || exit 4 ;;
  *) echo rebuilt >>"$HOME/rebuilt" && mv "$HOME/llama.cpp/build/gone" "$HOME/llama.cpp/build/bin" ;;
esac
END
chmod 755 "$tree/out/llama-rebuild"
mv "$engine" "$box/llama.cpp/build/gone"
is 'missing engine, no consent: 4' "$(SELFHEAL_MODE=check && export SELFHEAL_MODE && guarded 'no engine' scout 8)" '4 '
is 'and says what it would do' "$(grep -c '^DRY: would rebuild the engine$' "$box/said")" 1
is 'missing engine: rebuilt, then answers' "$(guarded 'no engine' scout 8) $(cat "$box/rebuilt")" '0 four rebuilt'
cp "$good/llama-rebuild" "$tree/out/"

# A missing model, and an error page of 15 bytes instead of one, are fetched, with consent; here by the plain form over a
# curl that needs no network.
rm "$tree/out/hf-fetch"
cat >"$box/host/curl" <<'END'
#!/bin/sh
cat >/dev/null
printf '%s\n' "$*" >>"$HOME/fetched"
while [ $# -gt 0 ]; do
  [ "$1" != -o ] || cp "$(cat "$HOME/serves")" "$2"
  shift
done
END
chmod 755 "$box/host/curl"
PATH=$box/host:$PATH
echo "$sound" >"$box/serves"
for damage in missing page; do
  rm -f "$models/scout.gguf" "$box/fetched"
  [ $damage = missing ] || printf 'Entry not found' >"$models/scout.gguf"
  before=$(census "$models")
  is "model $damage, no consent" \
    "$(SELFHEAL_MODE=check && export SELFHEAL_MODE && function_of selfheal_ensure_model scout)" '5 spark'
  is "model $damage, no consent: said" "$(grep -c '^DRY: would fetch the model of scout$' "$box/said")" 1
  is "model $damage, no consent: nothing changed" "$(census "$models")" "$before"
  HF_TOKEN=hf_secret && export HF_TOKEN
  is "model $damage: fetched, then answers" "$(guarded "model $damage" scout 8)" '0 four'
  is "model $damage: it is the pinned one" "$(sha256sum <"$models/scout.gguf")" "$sum"
  is "model $damage: no token on a command line" "$(grep -c hf_secret "$box/fetched")$(grep -c '/o/r/resolve/main/scout.gguf' "$box/fetched")" 01
  unset HF_TOKEN
done
rm "$models/scout.gguf"
printf 'GGUF but another file' >"$box/other"
echo "$box/other" >"$box/serves"
for role in scout scout scout; do function_of selfheal_ensure_model "$role" >/dev/null; done
rm "$box/fetched"
is 'what keeps failing is not fetched again' "$(function_of selfheal_ensure_model scout)$(ls "$box/fetched" 2>/dev/null)" '5 spark'
is 'no partial file is left' "$(find "$models" -name '*partial*')" ''
cp "$sound" "$models/scout.gguf"

# A model that somebody put there under the name is no damaged copy, and stays.
rm -r "$box/.selfheal/state/breaker" # what failed above is not what fails now
echo "$sound" >"$box/serves"
{ cat "$sound" && echo; } >"$models/scout.gguf"
is 'a longer model is moved aside, not replaced' \
  "$(guarded 'a longer model' scout 8) $(find "$models" -name 'scout.gguf.before-selfheal.*' -size "+$((size - 1))c" | grep -c .)" '0 four 1'
rm -f "$models"/*.before-selfheal.*

# npx without its shim hangs where it asks; with it the input is at its end, and consent decides about --yes.
# shellcheck disable=SC2016 # the program expands them
printf '#!/bin/sh\nread -r x && echo asked\necho "npx $npm_config_yes$NPM_CONFIG_YES $*"\n' >"$box/host/npx"
chmod 755 "$box/host/npx"
is 'no consent, no shim' "$(
  SELFHEAL_MODE=check && export SELFHEAL_MODE
  under "$tree/sh/install-shim" 2>/dev/null
  echo $?
  ls "$box/.shim" 2>/dev/null
)" 5
is 'shims installed' "$(under "$tree/sh/install-shim" | grep -v '^ok')" 'missing	binary	shim/hf-fetch	there is no working copy to install'
cp "$good/hf-fetch" "$tree/out/"
is 'healed by heal' "$(function_of selfheal_heal | head -c 1)$(under "$tree/sh/install-shim" --check | grep -vc '^ok')" '00'
is 'heal that is asked for help repairs nothing' "$(function_of selfheal_heal --help)" '64 '
# What stands in ~/.shim and is not ours is not lost.
rm "$box/.shim/breaker.sha256" "$box/.shim/timeout"
printf '#!/bin/sh\necho theirs\n' >"$box/.shim/breaker"
ln -s /usr/bin/timeout "$box/.shim/timeout"
under "$tree/sh/install-shim" >"$box/shimmed" 2>/dev/null
is "somebody else's program under our name is moved aside" "$(sh "$box"/.shim/breaker.before-selfheal.*)" theirs
is "somebody else's timeout is left alone, and that is said" \
  "$(readlink "$box/.shim/timeout")$(grep -c '^degraded	binary	shim/timeout' "$box/shimmed")" /usr/bin/timeout1
rm "$box"/.shim/breaker.before-selfheal.* "$box/.shim/timeout"
mkdir "$box/.shim/put"
mv "$box/.shim/npx" "$box/.shim/npx.sha256" "$box/.shim/put/"
mkdir "$box/.shim/npx"
is 'what cannot be put there is no success' "$(
  rm -rf "$box/.shim/npx.sha256" && : >"$box/.shim/npx.sha256"
  under "$tree/sh/install-shim" >"$box/shimmed" 2>&1
  printf %s $?
)$(grep -c '^ok	binary	shim/npx' "$box/shimmed")" 740
rmdir "$box/.shim/npx"
mv "$box/.shim/put"/* "$box/.shim/"
rmdir "$box/.shim/put"
is 'and all is well again' "$(under "$tree/sh/install-shim" >/dev/null 2>&1 && under "$tree/sh/install-shim" --check | grep -v '^ok')" ''
is 'npx with consent' "$(echo y | "$box/.shim/npx" a 'b c')" 'npx true --yes a b c'
is 'npx without' "$(SELFHEAL_MODE=check && echo y | "$box/.shim/npx" a)" 'npx false a'
is 'npx without, whatever the caller had saved' "$(SELFHEAL_MODE=check NPM_CONFIG_YES=true && export NPM_CONFIG_YES && "$box/.shim/npx" a)" 'npx false a'
is 'npx never finds itself' "$(
  PATH=$box/.shim:$box/.shim/ "$box/.shim/npx" a 2>/dev/null
  echo $?
)" 4
rm "$box/.shim/npx"
is 'a shim that is gone is named' "$(under "$tree/sh/install-shim" --check | grep -v '^ok' | cut -f 1-3)" 'missing	binary	shim/npx'
is 'and made again' "$(function_of selfheal_heal | head -c 1)$(echo y | "$box/.shim/npx" a)" '0npx true --yes a'
chmod 644 "$box/.shim/gguf-verify"
printf x >>"$box/.shim/breaker"
function_of selfheal_heal >/dev/null
is 'heal restores bits and bytes' "$(under "$tree/sh/install-shim" --check | grep -v '^ok')" ''

# The program and its plain form count in the same files, whichever is there; check mode counts nothing.
# shellcheck disable=SC2120,SC2119 # `ends` calls it with arguments
plain() { under "$tree/sh/fallback" breaker "$@" 2>/dev/null; }
ends() {
  "$@" 2>/dev/null
  printf '%s ' $?
}
for subject in plainly 'a/b c%' "$(printf '%0200d' 0)/"; do
  (
    SELFHEAL_MODE=check && export SELFHEAL_MODE
    for program in false false false false; do ends plain "$subject" -- $program; done
  ) >"$box/said"
  is "$subject: check mode" "$(cat "$box/said")$(find "$box/.selfheal/state/breaker" -name '*.pending')" '1 1 1 1 '
  is "$subject: three failures open for both" "$(
    ends "$good/breaker" "$subject" -- false
    ends plain "$subject" -- false
    ends "$good/breaker" "$subject" -- true
    ends plain "$subject" -- false
    ends plain "$subject" -- false
    ends "$good/breaker" "$subject" -- false
    ends plain "$subject" -- true
    ends "$good/breaker" "$subject" -- true
  )" '1 1 0 1 1 1 5 5 '
  # shellcheck disable=SC2119
  is "$subject: as a filter" "$(printf 'short\tmodel\t%s\tx\n' "$subject" "$subject" | plain | cut -f 1,3)" "open	$subject
open	$subject"
done

# Speeds are measured and recorded; one thread is faster here, but a run uses all.
# shellcheck disable=SC2016
printf '#!/bin/sh\n[ "$1" != --version ] || exit 0\n[ "$4" = %s ] && t=2.5 || t=9.5\nprintf "n,avg_ts\\n1,\\"%%s\\"\\n" $t\n' "$(nproc)" >"$engine/llama-bench"
chmod 755 "$engine/llama-bench"
is 'tune measures, and records with consent alone' "$(
  SELFHEAL_MODE=check && export SELFHEAL_MODE
  under "$tree/sh/tune.sh" scout 2>/dev/null | tail -n 1 | cut -f 1,3
  function_of selfheal_model_budget show scout | cut -f 2,3
)" 'scout	2.5
30	default (unmeasured)'
is 'tune measures and records' "$(
  under "$tree/sh/tune.sh" scout 2>/dev/null | tail -n 1 | cut -f 1,3
  function_of selfheal_model_budget show scout | cut -f 2,3
)" 'scout	2.5
2.5	measured'
finish
