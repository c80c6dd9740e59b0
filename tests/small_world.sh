# shellcheck shell=sh
# A machine in a private home for tests of the guarded call: the toolkit in $tree, a small sound model, a fake engine.
# Sourced behind harness.sh.
# shellcheck disable=SC2154,SC2034 # box and root are harness.sh's; what is set here is for the tests

tree=$box/tree engine=$box/llama.cpp/build/bin models=$box/.selfheal/models calls=$box/calls
good=$SELFHEAL_BIN_DIR
unset SELFHEAL_BIN_DIR SELFHEAL_MANIFEST
programs() { printf '%s\n' sh-timeout gguf-verify llama-rebuild hf-fetch breaker prompt-cache model-budget run-guarded; }
mkdir -p "$tree/sh" "$tree/out" "$engine" "$models" "$box/host" "$box/source"
cp "$root"/sh/* "$tree/sh/"
for program in $(programs); do cp "$good/$program" "$tree/out/"; done
tar -xJf "$root/tests/vectors/gguf/corpus.tar.xz" -C "$box/source" --wildcards '*dv-good.gguf' --transform 's|.*/||'
sound=$box/source/dv-good.gguf
sum=$(sha256sum <"$sound")
size=$(($(wc -c <"$sound")))

# ROLE LIGHT BASE: one line of the manifest; every model is the same small one under another name.
model_line() {
  printf '{"role":"%s","file":"%s.gguf","bytes":%s,"sha256":"%s","repository":"o/r","revision":null,"light":%s,' \
    "$1" "$1" "$size" "${sum%% *}" "$2"
  printf '"base_s":%s,"ms_per_token":10,"cap_s":20,"default_tps":30}' "$3"
}
printf '{"version":1,"models":[\n%s,\n%s,\n%s\n],"engine":{"remote":"x","tag":"x","archives":[]}}\n' \
  "$(model_line scout true 15)" "$(model_line spark true 15)" "$(model_line sage false 1)" >"$tree/manifest.json"
for role in scout spark sage; do cp "$sound" "$models/$role.gguf"; done

# Answers `four`, unless a file `slow-ROLE` says that this role never ends; counts its runs.
fake_engine() {
  cat <<'END'
#!/bin/sh
case $1 in
  --version) echo 'version: 7 (fake)' >&2; exit 0 ;;
  --help) cat <<'HELP'
-t,    --threads N   threads
-c,    --ctx-size N   context
-n,    --predict, --n-predict N   tokens
-f,    --file FNAME   a file
-m,    --model FNAME   path
-e,    --escape, --no-escape   escapes
--temp, --temperature N   temperature
--display-prompt, --no-display-prompt   display
-cnv,  --conversation, -no-cnv, --no-conversation   conversation
-st,   --single-turn   one turn
--simple-io   plain
HELP
    exit 0 ;;
esac
while [ $# -gt 0 ]; do
  [ "$1" != -m ] || model=$2
  shift
done
model=${model##*/}
echo "${model%.gguf}" >>"$HOME/calls"
[ ! -f "$HOME/slow-${model%.gguf}" ] || exec sleep "$(cat "$HOME/slow-${model%.gguf}")"
printf 'four [end of text]\n\n\n'
echo 'common_perf_print: total' >&2
END
}
fake_engine >"$engine/llama-completion"
chmod 755 "$engine/llama-completion"
: >"$calls"

# PROMPT ROLE N: the whole guarded call in the shell under test: its number, then its answer; stderr in the file `said`.
guarded() {
  answer=$(under "$tree/sh/run_guarded.sh" "$@" 2>"$box/said")
  printf '%s %s' $? "$answer"
}
# FUNCTION ARG...: a function of selfheal.sh in the shell under test: its number, then its output.
function_of() {
  # shellcheck disable=SC2016 # the other shell's
  answer=$(under -c '. "$0/sh/selfheal.sh"; "$@"' "$tree" "$@" 2>"$box/said")
  printf '%s %s' $? "$answer"
}
