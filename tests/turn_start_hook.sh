#!/bin/sh
# The turn-start hook repairs what it can, says on stderr what it found, always ends, and its status is one of 0 2 4 5.
# shellcheck source=tests/harness.sh
. "${0%/*}/harness.sh"
unset SWR_HOME
cd "$box" || exit 74

# ARG...: the hook's status and whatever it wrote to stdout.
hook() {
  under "$at/turn-start-hook.sh" "$@" 2>"$box/.err"
  printf '%s' $?
}
at=$root/sh

is 'no manifest' "$(hook)" 5
is 'no manifest: one line and what to do' "$(grep -c . "$box/.err")$(grep -c '^hint: bring back a copy of .swr .* swr autopilot' "$box/.err")" 31
printf '#!/bin/sh\necho tool\n' >tool.sh
chmod 755 tool.sh
cp -p tool.sh up.sh
"$root/sh/swr" init
"$root/sh/swr" sign
is 'healthy' "$(hook)" 0
is 'healthy: the verdicts are on stderr' "$(grep -c '^ok	file	' "$box/.err")" 2
chmod 644 tool.sh
is 'repaired' "$(hook)$(grep -c '^healed	file	tool.sh' "$box/.err")" 01
is 'repaired: it works' "$(./tool.sh)" tool
: >tool.sh
is 'damage that no recipe repairs: the turn goes on' "$(hook)$(grep -c '^failed	file	tool.sh' "$box/.err")" 51
"$root/sh/swr" add up.sh --notes 'not signed' 2>/dev/null
is 'a manifest that is not signed' "$(hook)$(grep -c '^bad	manifest	signature' "$box/.err")" 51
is 'it reads no terminal and no input' "$(echo words | { hook && cat; })" 5words
is 'an argument that is no bound' "$(hook soon)" 64
is 'no bound at all' "$(hook 0)" 64
is 'a bound that no clock holds' "$(hook 99999999999)" 64

# A doctor that hangs, and one that is not there.
at=$box/copy
mkdir "$at"
cp "$root"/sh/* "$at/"
printf '#!/bin/sh\nexec sleep 60\n' >"$at/swr"
began=$(date +%s)
is 'a doctor that hangs' "$(hook 1)" 2
is 'a doctor that hangs: within 30 s' "$([ $(($(date +%s) - began)) -le 30 ] && echo yes)" yes
# shellcheck disable=SC2016 # like evaluates it
like 'a doctor that hangs: what to do' "$(cat "$box/.err")" '*"did not end within 1 s"*"hint: $at/swr restore --resume"*'
is 'a doctor that hangs: none is left' "$(pgrep -f "$at/swr" | grep -cv "^$$\$")" 0
printf '#!/bin/sh\nexit 3\n' >"$at/swr"
is 'still damaged' "$(hook)" 5
printf '#!/bin/sh\nexit 70\n' >"$at/swr"
is 'a doctor with a bug' "$(hook)" 2
printf '#!/bin/sh\nexit 69\n' >"$at/swr"
is 'no programs' "$(hook)" 4
rm "$at/swr"
is 'no swr' "$(hook)" 4

# Without sh-timeout, timeout(1) bounds it; without either nothing is started.
printf '#!/bin/sh\n: >"%s/ran"\nexec sleep 60\n' "$box" >"$at/swr"
SELFHEAL_BIN_DIR=$box/none
is 'bounded by timeout(1)' "$(hook 1)$(ls "$box/ran")" "2$box/ran"
rm "$box/ran"
mkdir "$box/tools"
for tool in bash busybox cat dash env grep ksh93 mksh printf readlink sed sh tr yash zsh; do
  found=$(PATH=/usr/bin:/bin && command -v $tool) && ln -s "/${found#/}" "$box/tools/"
done
# shellcheck disable=SC2123 # meant
is 'without any bound nothing is started' "$(PATH=$box/tools && hook)$(ls "$box/ran" 2>/dev/null)" 4
finish
