#!/bin/sh
# Preflight says of each thing what is so of it, in words; it ends 0 or 5, writes nothing, and never waits for what hangs.
# shellcheck source=tests/harness.sh
. "${0%/*}/harness.sh"

# A machine with an installed toolkit, one everyday model, an engine that says its version, and what repairs need.
good=$SELFHEAL_BIN_DIR
unset SELFHEAL_BIN_DIR SELFHEAL_MANIFEST
mkdir -p "$box/.selfheal/models" "$box/.shim" "$box/bin" "$box/sh" "$box/host" "$box/tools"
cp "$root"/sh/* "$box/sh/"
cp "$good"/* "$box/bin/" && rm -f "$box"/bin/*.gz
(cd "$box" && SELFHEAL_MODE=fix SELFHEAL_HOME=$box/aside sh "$box/sh/install-shim" >"$box/shimmed") || cat "$box/shimmed"
tar -xJf "$root/tests/vectors/gguf/corpus.tar.xz" -C "$box" --wildcards '*dv-good.gguf' --transform 's|.*/||'
model=$box/.selfheal/models/dv-good.gguf
cp "$box/dv-good.gguf" "$model"
sed -e '/^{"role":"[^"]*"/{/^{"role":"scout"/!d;}' -e 's/"file":"Qwen[^"]*"/"file":"dv-good.gguf"/' \
  -e 's/"bytes":484220320,"sha256":"[0-9a-f]*"/"bytes":483616,"sha256":null/' -e 's/}\]},$/}]}/' \
  "$root/manifest.json" >"$box/manifest.json"
engine=$box/host/llama-completion
printf '#!/bin/sh\necho "version: 1 (test)" >&2\n' >"$engine"
for program in cmake c++ curl git; do printf '#!/bin/sh\n' >"$box/host/$program"; done
chmod 755 "$box"/host/*
PATH=$box/host:$PATH

# Runs preflight: its status, its lines in the file `said`.
look() {
  under "$box/sh/preflight" "$@" >"$box/said" 2>"$box/stderr"
  printf '%s' $?
}
# Runs it and prints the status, then `state kind subject` of each line that is not ok.
wrong() {
  look
  grep -v -e '^ok' -e "^${but-none}" "$box/said" | cut -f 1-3 | tr '\t\n' ' ;'
}
everything() { census "$box/.selfheal" "$box/.shim" "$box/bin" "$box/sh" "$box/manifest.json"; }

everything >"$box/before"
is 'healthy: 0, every line' "$(look)
$(cut -f 1-3 "$box/said")" '0
ok	binary	sh-timeout
ok	binary	run-guarded
ok	binary	llama-rebuild
ok	binary	engine
ok	binary	gguf-verify
ok	model	scout
ok	binary	hf-fetch
ok	binary	breaker
ok	binary	prompt-cache
ok	binary	model-budget
ok	binary	shim/sh-timeout
ok	binary	shim/gguf-verify
ok	binary	shim/llama-rebuild
ok	binary	shim/hf-fetch
ok	binary	shim/breaker
ok	binary	shim/prompt-cache
ok	binary	shim/model-budget
ok	binary	shim/run-guarded
ok	binary	shim/npx
ok	binary	shim/timeout
ok	host	cmake
ok	host	c++
ok	host	curl
ok	host	git
ok	host	home
ok	host	disk'
is 'healthy: four fields, none empty' "$(grep -cvE '^[^	]+	[^	]+	[^	]+	[^	]+$' "$box/said")" 0
is 'healthy: nothing on stderr' "$(cat "$box/stderr")" ''
is 'healthy: nothing was written' "$(everything | diff "$box/before" -)" ''
# shellcheck disable=SC2016 # $0 and $- are the other shell's
is 'healthy: also by the function, which leaves the shell alone' \
  "$(under -c '. "$0/sh/selfheal.sh"; set -u; selfheal_preflight | grep -c "^ok"; printf "%s" "$-" | grep -c u' "$box")" '26
1'
is 'healthy: JSON' "$(look --json)$(grep -cE '^{"state":"ok","kind":"[a-z]+","subject":"[^"]+","detail":"[^"]+"}$' "$box/said")" 026
is 'a reader that takes one line' "$(under "$box/sh/preflight" 2>&1 | head -n 1 | cut -f 1-3)" 'ok	binary	sh-timeout'
is 'an argument it does not know' "$(look --jsno)$(grep -c . "$box/said")" 640

shim() {
  SELFHEAL_HOME=$box/aside under "$box/sh/install-shim" 2>&1
  printf '%s' $?
}
is 'install-shim without consent, and nothing to do' "$(shim)" 0
printf x >>"$box/bin/breaker"
is 'install-shim without consent, and a newer program' "$(shim)" 'DRY: would install the programs in ~/.shim
5'
cp "$good/breaker" "$box/bin/"
chmod 644 "$box/.shim/breaker"
is 'install-shim without consent, and a damaged copy' "$(shim)" 'DRY: would install the programs in ~/.shim
5'
printf x >>"$box/.shim/npx"
rm "$box/.shim/hf-fetch.sha256"
is 'shims that are damaged' "$(wrong)" '5unknown binary shim/hf-fetch;stripped binary shim/breaker;corrupt binary shim/npx;'
mkdir "$box/.clawhub"
is 'a place for a token without one' "$(wrong | grep -o 'missing host token')" 'missing host token'
echo t >"$box/.clawhub/TOKEN"
is 'files that must be there' "$(
  SELFHEAL_REQUIRED_FILES="$box/.clawhub/TOKEN:$box/no such file" && export SELFHEAL_REQUIRED_FILES && wrong |
    grep -o 'missing host required-[0-9]'
)" 'missing host required-2'
# shellcheck disable=SC2089,SC2090 # a name like any other
SELFHEAL_REQUIRED_FILES="$box/no\\such \"file\"
"
# shellcheck disable=SC2090
export SELFHEAL_REQUIRED_FILES
is 'a file that must be there is named' "$(look | tr -d 05)$(grep '	required-1	' "$box/said" | cut -f 4)" \
  "missing, empty or unreadable: $box/no\\\\such \"file\" "
is 'and named in JSON that can be read' "$(look --json | tr -d 05)$(grep '"required-1"' "$box/said" | sed 's/.*"detail"://')" \
  "\"missing, empty or unreadable: $box/no\\\\such \\\"file\\\" \"}"
unset SELFHEAL_REQUIRED_FILES
rm -f "$box/bin/swr-verify"
mkdir "$box/.swr"
: >"$box/.swr/manifest.jsonl"
is 'a workspace that nothing can check' "$(wrong | grep -o 'unknown host workspace')" 'unknown host workspace'
for code in 0:ok 1:degraded 2:degraded 3:degraded 4:bad 70:unknown; do
  # shellcheck disable=SC2016 # the program expands it
  printf '#!/bin/sh\n[ "$1" != --version ] || { echo swr-verify 1 && exit 0; }\nexit %s\n' "${code%:*}" >"$box/bin/swr-verify"
  chmod 755 "$box/bin/swr-verify"
  look >/dev/null
  is "a workspace, swr-verify ends ${code%:*}" "$(grep -o '^[a-z]*	host	workspace' "$box/said")" "${code#*:}	host	workspace"
done
rm -r "$box/.swr" "$box/.clawhub" "$box/bin/swr-verify"

# From here on without copies in ~/.shim, which would stand in for each program that is damaged below.
rm -r "$box/.shim" && mkdir "$box/.shim"
is 'nothing in ~/.shim' "$(wrong)" '5missing host shim;'
is 'nothing in ~/.shim: what an installed copy has, too' "$(grep -c "SELFHEAL_MODE=fix $box/sh/install-shim$" "$box/said")" 1
but='missing	host	shim'

chmod 644 "$engine"
is 'engine not executable' "$(wrong)" '5stripped binary engine;'
: >"$engine"
chmod 755 "$engine"
is 'engine empty' "$(wrong)" '5short binary engine;'
is 'engine empty: JSON, same number' "$(look --json)$(grep -c '"state":"short","kind":"binary","subject":"engine"' "$box/said")" 51
rm "$engine"
is 'engine missing' "$(wrong)" '5missing binary engine;'
is 'engine missing: fix mode repairs nothing' "$(SELFHEAL_MODE=fix && export SELFHEAL_MODE && wrong)" '5missing binary engine;'

printf 'Entry not found' >"$model"
is 'a model that is an error page, two causes at once' "$(wrong)" '5missing binary engine;corrupt model scout;'
is 'the next command for each' "$(cat "$box/stderr")" "hint: SELFHEAL_MODE=fix $box/bin/llama-rebuild
hint: SELFHEAL_MODE=fix $box/bin/hf-fetch ROLE"
is 'the next command, as it is found' "$(PATH=$box/bin:$PATH && look >/dev/null && cat "$box/stderr")" 'hint: SELFHEAL_MODE=fix llama-rebuild
hint: SELFHEAL_MODE=fix hf-fetch ROLE'
cp "$box/dv-good.gguf" "$model"
printf '#!/bin/sh\necho "version: 1 (test)" >&2\n' >"$engine"
chmod 755 "$engine"

chmod 644 "$box/bin/gguf-verify"
is 'a program lost its execute bits' "$(wrong)" '5stripped binary gguf-verify;unknown model models;'
: >"$box/bin/gguf-verify"
chmod 755 "$box/bin/gguf-verify"
is 'a program of 0 bytes, which ends 0 in a shell' "$(wrong)" '5corrupt binary gguf-verify;unknown model models;'
printf '#!/bin/sh\necho "run-guarded 1"\n' >"$box/bin/gguf-verify"
is 'another program under its name' "$(wrong)" '5corrupt binary gguf-verify;unknown model models;'
rm "$box/bin/gguf-verify"
is 'a program is missing' "$(wrong)" '5missing binary gguf-verify;unknown model models;'
: >"$box/bin/gguf-verify"
cp "$good/gguf-verify" "$box/.shim/"
is 'a working copy in ~/.shim serves' "$(wrong)" 5

rm "$box/bin/gguf-verify"
mv "$box/bin/sh-timeout" "$box/bin/gone"
is 'without sh-timeout, timeout(1) bounds the probes' "$(wrong)" '5missing binary sh-timeout;'
for tool in awk bash busybox cat cut dash date df env grep head ksh93 ls mksh printf readlink sed sh sort tr yash zsh; do
  at=$(PATH=/usr/bin:/bin && command -v $tool) && ln -s "/${at#/}" "$box/tools/"
done
is 'without any bound nothing is tried, and nothing called missing' "$(PATH=$box/host:$box/tools && wrong)" \
  '5missing binary sh-timeout;unknown binary run-guarded;unknown binary llama-rebuild;unknown binary engine;unknown binary gguf-verify;unknown model models;unknown binary hf-fetch;unknown binary breaker;unknown binary prompt-cache;unknown binary model-budget;'
mv "$box/bin/gone" "$box/bin/sh-timeout"

mv "$box/manifest.json" "$box/gone"
is 'no manifest: the models are unknown' "$(wrong)" '5unknown model models;'
mv "$box/gone" "$box/manifest.json"
is 'a program that repairs need is missing' "$(rm "$box/host/c++" && PATH=$box/host:$box/tools && wrong)" '5missing host c++;'
cp "$box/host/cmake" "$box/host/c++"
is 'a home where nothing can be made' "$(
  SELFHEAL_HOME=$box/manifest.json/none SELFHEAL_MODELS_DIR=$box/.selfheal/models
  export SELFHEAL_HOME SELFHEAL_MODELS_DIR && wrong | grep -o 'degraded host home'
)" 'degraded host home'

# What hangs is cut off, and what comes after it is still said.
printf '#!/bin/sh\nexec sleep 60.%s\n' $$ >"$box/bin/run-guarded"
"$box/bin/run-guarded" &
i=0
while [ "$(alive "60.$$")" = 0 ] && [ $i -lt 400 ]; do i=$((i + 1)); done
is 'hung program: one that is left would be seen' "$(alive "60.$$")" 1
kill $!
wait
began=$(date +%s)
is 'hung program' "$(wrong)" '5corrupt binary run-guarded;'
cp "$box/bin/run-guarded" "$engine"
cp "$good/run-guarded" "$box/bin/run-guarded"
is 'hung engine' "$(wrong)" '5unknown binary engine;'
is 'hung programs: not waited for' "$([ $(($(date +%s) - began)) -le 22 ] && echo yes)" yes
is 'hung programs: none is left' "$(alive "60.$$")" 0
printf '#!/bin/sh\necho "version: 1 (test)" >&2\n' >"$engine"
mv "$box/.shim/gguf-verify" "$box/bin/gguf-verify"

is 'all is well again' "$(wrong)" 5
finish
