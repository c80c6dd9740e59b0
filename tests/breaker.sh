#!/bin/sh
# `gguf-verify | breaker` and the repair idiom, typed in each shell, on the verdicts of the real programs: a fetch that keeps
# failing is tried three times, and health closes.
# shellcheck source=tests/harness.sh
. "${0%/*}/harness.sh"

PATH=$SELFHEAL_BIN_DIR:$PATH
SELFHEAL_MODE=fix
# Nobody listens on port 1 of the loopback interface.
SELFHEAL_TEST_HTTP=1 HF_ENDPOINT=http://127.0.0.1:1
export SELFHEAL_MODE SELFHEAL_TEST_HTTP HF_ENDPOINT
tar -xJf "$root/tests/vectors/gguf/corpus.tar.xz" -C "$box" --wildcards '*dv-good.gguf' --transform 's|.*/||'
sed -e '/^{"role":"[^"]*"/{/^{"role":"scout"/!d;}' -e 's/"file":"Qwen[^"]*"/"file":"dv-good.gguf"/' \
  -e 's/"bytes":484220320,"sha256":"[0-9a-f]*"/"bytes":483616,"sha256":"'"$(sha256sum <"$box/dv-good.gguf" | cut -c 1-64)"'"/' \
  -e 's/}\]},$/}]}/' "$root/manifest.json" >"$box/manifest.json"
SELFHEAL_MANIFEST=$box/manifest.json
mkdir -p "$box/.selfheal/models"
log=$box/.selfheal/selfheal.log

# A command line in the shell under test: the state and subject of each line, then the status.
typed() {
  said=$(under -c "$1" 2>"$box/stderr")
  code=$?
  printf '%s%s' "$(printf '%s\n' "$said" | cut -f 1,3 | tr '\t\n' ' ;')" "$code"
}
verify='gguf-verify scout | breaker'
repair='gguf-verify scout >/dev/null || breaker --verdicts scout -- hf-fetch --limit 1 scout'

SELFHEAL_MODE=check
is 'check mode: what is missing leaves as it came' "$(typed "$verify")" 'missing scout;3'
is 'check mode: the repair asks for consent' "$(typed "$repair")" 'would scout;5'
is 'check mode: nothing is written' "$(find "$box/.selfheal" -type f)" ''
SELFHEAL_MODE=fix
is 'damage alone is no failure' "$(typed "$verify")$(typed "$verify")$(typed "$verify")" 'missing scout;3missing scout;3missing scout;3'
is 'the first fetch fails' "$(typed "$repair")" 'failed scout;3'
is 'the second fetch fails' "$(typed "$repair")" 'failed scout;3'
is 'what is missing is not open yet' "$(typed "$verify")" 'missing scout;3'
is 'the third fetch fails' "$(typed "$repair")" 'failed scout;3'
is 'the fourth is not made' "$(typed "$repair")" ';5'
is 'which takes one line to say' "$(grep -c . "$box/stderr")$(sed -n 's/ for .*//p' "$box/stderr")" "1breaker: 'scout' is open"
is 'a filter says so, too' "$(typed "$verify")" 'open scout;5'
is 'and check mode' "$(SELFHEAL_MODE=check typed "$verify")" 'open scout;5'
is 'the log has one trip' "$(cut -d ' ' -f 2- "$log" | grep breaker)" 'breaker open scout'
cp "$box/dv-good.gguf" "$box/.selfheal/models/"
is 'health closes' "$(typed "$verify")" 'ok scout;0'
is 'and is logged' "$(cut -d ' ' -f 2- "$log" | grep breaker | tail -n 1)" 'breaker close scout'
is 'healthy: nothing to repair' "$(typed "$repair")" ';0'
rm "$box/.selfheal/models/dv-good.gguf"
is 'the count starts anew' "$(typed "$repair")" 'failed scout;3'
# shellcheck disable=SC2016 # the shell under test expands it
is 'a shell without the program adds failures' "$(typed 'date +%s >>"$HOME/.selfheal/state/breaker/scout.pending"
  date +%s >>"$HOME/.selfheal/state/breaker/scout.pending"; gguf-verify scout | breaker')" 'open scout;5'
is 'a producer that is not there is no health' "$(typed 'nosuch 2>/dev/null | breaker')" ';5'
is 'a producer without a home is no health' "$(typed 'HOME= SELFHEAL_HOME= gguf-verify 2>/dev/null | breaker')" ';5'
is 'a command typed by hand' "$(typed 'breaker reset scout; breaker x -- sh -c "exit 7"')" 'healed scout;7'
is 'a status is read by the shell' "$(typed 'breaker x -- false || breaker x -- true && echo yes')" 'yes;0'
finish
