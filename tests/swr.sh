#!/bin/sh
# `swr` in a private home: what is damaged is named and comes back in order, nobody's work is lost, what could not be looked
# at is never called healthy, and no other command than one of the list does anything.
# shellcheck source=tests/harness.sh
. "${0%/*}/harness.sh"
unset SWR_HOME
PATH=$root/sh:$PATH # where hints need not say which swr they mean
out=$box/.out err=$box/.err

swr() { under "$at/swr" "$@"; }
at=$root/sh
# ARG...: its status, then `state subject` of each verdict line.
said() {
  swr "$@" >"$out" 2>"$err"
  printf '%s' $?
  cut -s -f 1,3 "$out" | tr '\t\n' ' ;'
}
# ARG...: the status, and how many lines there are on stderr.
refused() {
  swr "$@" >"$out" 2>"$err"
  printf '%s %s' $? "$(grep -c . "$err")"
}
# NAME: a new home, which is also the current directory.
home() {
  HOME=$box/$1
  mkdir -p "$HOME" && cd "$HOME" || exit 74
  manifest=$HOME/.swr/manifest.jsonl
}
# FILE TEXT: an executable script.
script() { printf '#!/bin/sh\n%s\n' "$2" >"$1" && chmod 755 "./$1"; }
ids() { sed -n 's/^{"id":"\([^"]*\)".*/\1/p' "$manifest" | sort | tr '\n' ' '; }

# ---- the worked example: a shim, a script, a source tree, a model, a build that needs the sources
home example
up=$box/up
mkdir -p "$up/llama.cpp/ggml/src" "$up/llama.cpp/ggml/cmake" .shim
echo 'int ggml;' >"$up/llama.cpp/ggml/src/ggml.c"
echo '@PACKAGE_INIT@' >"$up/llama.cpp/ggml/cmake/ggml-config.cmake.in"
yes model | head -c 3000000 >"$up/model.gguf"
script .shim/npx 'exec /usr/bin/npx --yes "$@"'
script run.sh 'exec llama-completion "$@"'
cp -p .shim/npx "$up/npx"
cp "$up/model.gguf" model.gguf
cp -R "$up/llama.cpp" llama.cpp
mkdir -p llama.cpp/build/bin
script llama.cpp/build/bin/llama-completion 'echo answer'
cp -p run.sh "$box/.run.sh"

is 'init' "$(said init)" 0
is 'init: scripts and large files are entries' "$(ids)" 'model.gguf run.sh shim-npx '
is 'init again: nothing is overwritten' "$(refused init)" '64 2'
is 'add: the shim' "$(said add .shim/npx --id shim --tier 0 --restore "echo shim >>order; mkdir -p .shim && cp -p $up/npx .shim/")" 0
is 'add: the hint says that the signature is gone' "$(cat "$err")" 'hint: swr sign'
is 'add: sources' "$(said add llama.cpp --id llama-src --kind tree --tier 2 --sentinel ggml/src/ggml.c \
  --sentinel ggml/cmake/ggml-config.cmake.in --restore "echo src >>order; cp -R $up/llama.cpp llama.cpp")" 0
is 'add: model' "$(said add model.gguf --id model --tier 3 --restore "echo model >>order; cp $up/model.gguf model.gguf")" 0
is 'add: build' "$(said add llama.cpp/build/bin --id llama-bins --kind tree --tier 4 --sentinel llama-completion --needs llama-src \
  --restore 'echo bins >>order; test -s llama.cpp/ggml/src/ggml.c && mkdir -p llama.cpp/build/bin &&
    printf "#!/bin/sh\necho answer\n" >llama.cpp/build/bin/llama-completion && chmod 755 llama.cpp/build/bin/llama-completion')" 0
is 'one path, one entry' "$(ids)" 'llama-bins llama-src model run.sh shim '
is 'escrow' "$(said escrow run.sh)" 0
is 'escrow: listed' "$(said escrow --list)" '0ok run.sh;'
is 'escrow: given back' "$(swr escrow --cat run.sh | cmp - run.sh && echo same)" same
is 'not signed' "$(said sign --check)" '4bad signature;'
is 'sign' "$(said sign)" 0
is 'signed' "$(said sign --check)" '0ok signature;'
is 'check: healthy' "$(said check | tr ';' '\n' | grep -c '^0*ok ')$(cut -f 1 "$out" | sort -u)" 5ok
is 'doctor: healthy, one look' "$(said doctor | cut -c 1)$(cat "$err")" '0== check'
is 'check from another directory' "$(cd / && said check | cut -c 1)" 0

damage() {
  rm .shim/npx
  echo 'my work' >llama.cpp/mine.c
  : >llama.cpp/ggml/src/ggml.c
  head -c 1500000 "$up/model.gguf" >model.gguf
  rm -r llama.cpp/build
  chmod 644 run.sh
  rm -f order
}
damage
is 'check: damaged' "$(said check | cut -c 1)" 1
for line in 'missing	file	shim' 'corrupt	tree	llama-src' 'short	blob	model' 'missing	tree	llama-bins' 'stripped	file	run.sh'; do
  is "check: $line" "$(grep -c "^$line	" "$out")" 1
done
is 'explain: the same status, and words' "$(said explain llama-src)$(grep -c 'cause: .*sentinel empty: ggml/src/ggml.c' "$out")" 11
is 'why: without a look' "$(said why shim)$(grep -c '^  fix: ' "$out")" 01
census . >"$box/.before"
is 'dry run' "$(said doctor --dry-run | tr ';' '\n' | grep '^would' | tr '\n' ';')" \
  'would shim;would run.sh;would llama-src;would model;would llama-bins;'
is 'dry run: nothing but what swr keeps was written' "$(census . | diff "$box/.before" - | grep '^[<>]' | grep -v '^. \./\.swr')" ''
is 'doctor: healed' "$(said doctor | cut -c 1)" 0
is 'doctor: in the order of tiers' "$(grep '^healed' "$out" | cut -f 3 | tr '\n' ' ')" 'shim run.sh llama-src model llama-bins '
is 'doctor: recipes once each, none for a mode' "$(tr '\n' ' ' <order)" 'shim src model bins '
is 'doctor: three steps' "$(grep '^==' "$err" | tr '\n' ';')" '== check;== restore;== check again;'
is 'doctor: no work is lost' "$(find .swr/quarantine -name mine.c -exec cat {} +)" 'my work'
is 'doctor: it says where' "$(grep -c 'kept aside: .*/quarantine/.*llama.cpp' "$out")" 1
is 'doctor: the bytes' "$(cmp model.gguf "$up/model.gguf" && ./llama.cpp/build/bin/llama-completion && find run.sh -perm 755)" 'answer
run.sh'
is 'check: all is well again' "$(said check | cut -c 1)" 0
census llama.cpp model.gguf .shim run.sh >"$box/.before"
is 'doctor again: touches nothing' "$(said doctor | cut -c 1)$(census llama.cpp model.gguf .shim run.sh | diff "$box/.before" -)" 0
rm -r llama.cpp/build
is 'a swept build is damage of the build alone' "$(said check | cut -c 1)$(grep -v '^ok' "$out" | cut -f 1,3 | tr '\t\n' ' ;')" \
  '1missing llama-bins;degraded exclusion-sweep;'
is 'a swept build: built again' "$(said doctor | cut -c 1)$(tr '\n' ' ' <order)" '0shim src model bins bins '
is 'stats: of every turn' "$(swr stats | awk -F '\t' '$1 == "shim" { print NF, $5 }')" '5 ok'

rm run.sh
is 'an embedded file comes back' "$(said doctor | cut -c 1)$(cmp run.sh "$box/.run.sh" && find run.sh -perm 755)" 0run.sh
damage
mv "$up/llama.cpp" "$up/gone"
is 'sources that do not come: 2' "$(said doctor | cut -c 1)" 2
is 'sources that do not come: no build' "$(grep -E '^(healed|failed|skipped)' "$out" | cut -f 1,3 | tr '\t\n' ' ;')" \
  'healed shim;healed run.sh;failed llama-src;healed model;skipped llama-bins;'
is 'sources that do not come: what was there is there' "$(cat llama.cpp/mine.c)$(tr '\n' ' ' <order)" 'my workshim src model '
mv "$up/gone" "$up/llama.cpp"
is 'doctor: one entry' "$(said doctor --only llama-src | cut -c 1)$(ls llama.cpp)" 0ggml
is 'doctor: JSON' "$(said doctor --json | cut -c 1)$(grep -cv '^{"state":"[a-z]*","kind":".*"}$' "$out")" 00

# ---- what is lost in every turn and healed in every turn
home fragile
printf x >f
swr init && swr add f --id f --restore 'test ! -e broken && printf x >f' 2>"$err" && swr sign
for _ in 1 2 3; do
  rm -f f && swr doctor >"$out" 2>"$err"
done
is 'stats: an entry that is lost every turn' "$(swr stats)" 'f	0.250	2	3	healed'
is 'explain: how often it was lost here' "$(swr why f | grep -c 'lost in 2 of 2 turns here$')" 1
rm f && : >broken
is 'the number of a failed repair stays its own' "$(said doctor | cut -c 1)$(swr stats | cut -f 3,5 | tr '\t' ' ')" '23 missing'

mkdir precious
is 'a variable of the caller is no place to clean' "$(
  work=$HOME/precious pipe=x && export work pipe && said doctor --json >/dev/null
  ls -d precious
)" precious
rm -r broken && said doctor >/dev/null

# ---- stopped half way
home stopped
printf x >f
swr init && swr add f --id f --restore "test -e again || { : >began; sleep 7719$$; }; printf x >f" 2>"$err" && swr sign
rm f
# shellcheck disable=SC2086 # `busybox ash` is two words
{ exec $UNDER "$at/swr" doctor >"$out" 2>"$err"; } &
doctor=$!
tries=500
until [ -e began ] || [ $tries = 0 ]; do
  tries=$((tries - 1)) && sleep 0.02
done
kill -s TERM "$doctor"
wait "$doctor"
is 'a doctor told to stop: its number' "$?" 143
is 'a doctor told to stop leaves no recipe behind' "$(grep -ls "[7]719$$" /proc/[0-9]*/cmdline)" ''
is 'a doctor told to stop leaves no file behind' "$(find .swr -name '.swr.*')" ''
: >again
is 'a doctor told to stop: resumed at once' "$(said restore --resume --wait 1)" '0healed f;'

# ---- only a manifest of this box runs, and no look is not health
home gate
script tool.sh true
swr init && swr add tool.sh --restore 'touch ran' 2>"$err"
is 'unsigned: check works' "$(said check)" '0ok tool.sh;'
: >tool.sh
is 'unsigned: check names the damage' "$(said check | cut -c 1)" 1
is 'unsigned: doctor' "$(said doctor | grep -o '^4.*bad signature')$(ls)" '4short tool.sh;bad signaturetool.sh'
swr sign
sed 's/touch ran/touch run/' "$manifest" >"$manifest.new" && mv "$manifest.new" "$manifest"
is 'altered: doctor' "$(said doctor | cut -c 1)$(ls)" 4tool.sh
like 'altered: hint' "$(cat "$err")" '*hint:*--trust*'
head -c 40 "$manifest" >"$manifest.new" && mv "$manifest.new" "$manifest"
is 'half a manifest: check' "$(refused check)" '4 1'
for verb in check doctor explain restore audit; do
  is "half a manifest: $verb" "$(said "$verb")" '4bad manifest;'
done
rm "$manifest"
for verb in check doctor explain restore; do
  is "no manifest: $verb" "$(said "$verb")" '4bad manifest;'
done
is 'no manifest: sign --check' "$(said sign --check)" 4
is 'no manifest: escrow --list' "$(said escrow --list)" 4
mkdir "$manifest"
is 'a directory where the manifest belongs' "$(refused add tool.sh)$(ls "$manifest")" '74 2'
is 'a home that cannot be made' "$(SWR_HOME=/proc/none/swr && export SWR_HOME && refused init)" '74 2'
is 'a home that is no absolute path' "$(
  SWR_HOME=swr && export SWR_HOME && refused init
  ls
)" '74 2tool.sh'

# ---- hostile names, and writers at once
home names
# shellcheck disable=SC2016 # a name that looks like a command
newline=$(printf 'a b"\n$(touch ran).')
mkdir -- '-d'
for file in "$newline" '-rf.sh' 'a b.sh' 'a-b.sh' "it's.sh" '%41 \n.sh' '-d/--help'; do script "$file" true; done
is 'init: hostile names' "$(said init)" 0
is 'init: each has an entry of its own' "$(grep -c '^{"id"' "$manifest")" 7
is 'add: a leading dash' "$(said add -- -rf.sh | cut -c 1)$(grep -c '^{"id"' "$manifest")" 07
is 'sign and check' "$(swr sign && said check | cut -c 1)" 0
find . -name .swr -prune -o -type f -exec chmod 644 {} +
is 'doctor: their modes' "$(said doctor | cut -c 1)$(grep -c '^healed' "$out")$(find . -name .swr -prune -o -type f -perm 755 -print0 | tr -cd '\0' | wc -c | tr -d ' ')" 077
is 'nothing in a name was run' "$(find "$box" -name ran)" ''

home writers
swr init
for n in 1 2 3 4 5; do
  echo $n >"file$n"
  (
    swr add "file$n" >/dev/null 2>&1
    echo $? >"$box/.code$n"
  ) &
done
wait
for n in 1 2 3 4 5; do
  is "writers at once: $n is in, or told to come again" "$(cat "$box/.code$n")$(ids | grep -o "file$n ")" \
    "$(case $(cat "$box/.code$n") in 75) echo 75 ;; *) echo "0file$n " ;; esac)"
done
is 'writers at once: nothing is left over' "$(find .swr -mindepth 1 | sort | tr '\n' ' ')" '.swr/manifest.jsonl .swr/manifest.lock '
is 'modes' "$(find .swr -maxdepth 1 -printf '%m ')" '700 600 600 '

# ---- an installation, found beside sh/ and by PATH
home fresh
mkdir -p .local/bin .local/share/selfheal/sh
for tool in "$root"/bins/*; do cp "$SELFHEAL_BIN_DIR/${tool##*/}" .local/bin/; done
cp "$root/sh/swr" .local/bin/
# What others have beside it comes and goes.
script .local/bin/mytool true
script .local/bin/swr-mine true
chmod 644 .local/bin/swr-mine
cp "$root/sh"/* .local/share/selfheal/sh/
cp "$root/manifest.json" .local/share/selfheal/
script mine.sh true
head -c 2000000 /dev/zero >data.bin
unset SELFHEAL_BIN_DIR
at=$HOME/.local/share/selfheal/sh
is 'autopilot' "$(said autopilot | tr ';' '\n' | sort | tr '\n' ';')" \
  "$({ ls "$root/bins" && printf '%s\n' mytool swr; } | sed 's/^/local-bin-/' | { cat && printf '%s\n' selfheal data.bin mine.sh; } |
    sed 's/^/ok /' | sed '/^ok selfheal/s/^/0/' | sort | tr '\n' ';')"
is 'autopilot: signed' "$(said sign --check)" '0ok signature;'
cp "$manifest" "$box/.before"
is 'autopilot again: nothing changes' "$(said autopilot | cut -c 1)$(cmp "$manifest" "$box/.before")" 0
is 'retighten: nothing changes' "$(said retighten | cut -c 1)$(cmp "$manifest" "$box/.before")" 0
chmod 644 .local/bin/swr-stats
is 'the toolkit is an entry' "$(said doctor | cut -c 1)$(find .local/bin/swr-stats -perm 755)" 0.local/bin/swr-stats
rm .local/bin/swr-mine
is "what is not the toolkit's may go from beside it" "$(said doctor | cut -c 1)" 0
for part in selfheal.sh swr-manifest swr-help ../manifest.json; do
  mv "$at/$part" "$box/.part"
  is "the toolkit without $part is not healthy" "$(said check --only selfheal | cut -d ';' -f 1)" '1corrupt selfheal'
  mv "$box/.part" "$at/$part"
done
cp .local/bin/breaker "$box/.part" && head -c 20000 "$box/.part" >.local/bin/breaker
is 'half a program is not what autopilot tracks from now on' "$(swr autopilot 2>"$err" | grep -v '^ok' | cut -f 1,3 | tr '\t\n' ' ;')" \
  'short local-bin-breaker;degraded credential-loss;'
cp "$box/.part" .local/bin/breaker
printf x >>.local/bin/breaker
is 'an upgraded program: damage until autopilot is run again' "$(said check | cut -c 1)$(said autopilot | cut -c 1)" 10

mkdir "$box/alone"
cp "$root/sh/swr" "$root/sh/swr-help" "$root/sh/swr-manifest" "$box/alone/"
at=$box/alone
PATH=$HOME/.local/bin:$PATH
is 'by PATH' "$(said check | cut -c 1)" 0
swr help >"$out"
is 'help: without arguments' "$(swr | cmp - "$out")" ''
is 'version' "$(swr --version)" "$(swr verify --version | sed 's/^swr-verify/swr/')"
for verb in autopilot check doctor explain init retighten add audit canary escrow restore sign stats verify why; do
  is "help: $verb" "$(grep -c "^  $verb  *[a-z]" "$out")" 1
  is "$verb --help" "$(swr "$verb" --help </dev/null | grep -c '^usage: swr')" 1
done
is 'an unknown command' "$(refused chekc)" '64 2'
is 'a path is no command' "$(refused ../swr-verify)" '64 2'
is 'a text that speaks of --help is a text' "$(said add mine.sh --notes 'see --help' </dev/null)" 0
is 'an argument that autopilot does not know' "$(refused autopilot now)" '64 2'

head -c 20000 .local/bin/swr-stats >"$box/.half" && cat "$box/.half" >.local/bin/swr-stats
swr sign && chmod 644 mine.sh
is 'half a swr-stats costs no repair' "$(said doctor >/dev/null)$(find mine.sh -perm 755)" mine.sh
rm .local/bin/swr-verify
: >.local/bin/swr-verify
chmod 755 .local/bin/swr-verify
is 'an emptied program is not healthy: check' "$(refused check)" '69 2'
is 'an emptied program is not healthy: doctor' "$(said doctor)" 69
head -c 100000 /dev/zero >.local/bin/swr-verify
is 'a program of zeros is not healthy' "$(said doctor)" 69

# ---- a checkout in the home
home checkout
mkdir -p src/out
for tool in "$root"/bins/*; do cp "$root/out/${tool##*/}" src/out/; done
cp -R "$root/sh" "$root/Makefile" src/
at=$HOME/src/sh
is 'autopilot in a checkout: sh/ and out/' "$(said autopilot | tr ';' '\n' | grep -c 'ok selfheal$\|ok src-out$')$(ids | wc -w | tr -d ' ')" 22
printf x >>src/out/sh-timeout
is 'a rebuild is no damage' "$(said check --no-cache | cut -c 1)" 0
rm src/out/run-guarded src/sh/selfheal.sh
is 'a checkout without a program and without selfheal.sh' "$(said check | tr ';' '\n' | grep -c 'corrupt selfheal$\|corrupt src-out$')" 2

# ---- the example of the documentation
home reference
SELFHEAL_BIN_DIR=$root/out
[ -x "$SELFHEAL_BIN_DIR/swr-verify" ] || SELFHEAL_BIN_DIR=$box/fresh/.local/bin
example=$root/reference/manifest.example.jsonl
"$SELFHEAL_BIN_DIR/swr-verify" --manifest "$example" >"$out" 2>"$err"
is 'the example manifest is valid, and nothing of it is here' "$?$(cut -f 1 "$out" | sort -u | tr '\n' ' ')" '1degraded missing '
for word in '"kind":"file"' '"kind":"blob"' '"kind":"tree"' '"tier":0' '"tier":1' '"tier":2' '"tier":3' '"tier":4' '"sha256"' \
  '"samples"' '"sentinels":\["' '"count"' '"members"' '"merkle"' '"target"' '"needs"' '"restore"' '"timeout_s"' '"escrow"'; do
  is "the example shows $word" "$(grep -q "$word" "$example" && echo yes)" yes
done
is 'each of its entries has notes' "$(grep -c '^{"id"' "$example")" "$(grep -c '"notes":"' "$example")"
is 'what it embeds is whole' "$("$SELFHEAL_BIN_DIR/swr-escrow" --list <"$example" | cut -f 1,3)" 'ok	run-sh'
finish
