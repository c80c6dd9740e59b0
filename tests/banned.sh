#!/bin/sh
# Constructs that do not work alike in every shell stand in no shell file; each rule is shown a line that it must catch.
# shellcheck source=tests/harness.sh
. "${0%/*}/harness.sh"

# Lines of code without their indentation; comments go.
code() {
  sed -e 's/^[[:space:]]*//' -e 's/^#.*//' -e 's/[[:space:]]#[[:space:]].*//' "$@"
}

# RULE ERE CAUGHT INNOCENT for every file, then for the sourced file alone.
everywhere() {
  cat <<'RULES'
local (missing in ksh93)	(^|[;&|{(] *|then |do |else )local 	  local x=1	the local manifest
double brackets	\[\[[^:]	if [[ -n $x ]]; then	tr '[[:cntrl:]]' ' '
the word function	(^|[;&|] *)function +[a-z_]	function f {	a shell function x
pipefail	pipefail	set -o pipefail	a pipe that fails
declare and typeset	(^|[;&|{(] *|then |do )(declare|typeset) 	declare -A m	we declare that
echo with an option	echo +-[neE]	echo -n x	echo "-n"
source for .	(^|[;&|{(] *|then |do )source 	source ./x	the source tree
dollar-quoted text	(^|[ =(])\$'	x=$'\t'	grep 'x$'
here-string	<<<	cat <<<"$x"	cat <<EOF
double equals in test	\[ [^]]* == 	[ "$a" == b ]	[ "$a" = b ]
array	[A-Za-z_]=\(|\$\{[A-Za-z_]+\[	a=(1 2)	f() (
both streams at once	&>|\|&	x &>/dev/null	x >&2
process substitution	(^|[ =])[<>]\(	diff <(a) b	x >"$(y)"
arithmetic command	(^|[;&|] *|if |while )\(\(	((x++))	x=$((x + 1))
substring or replacement	\$\{[A-Za-z_]+(:[0-9]|/)	${x/a/b}	${x%/*}
indirection	\$\{!	${!x}	${x-}
a status number of timeout	(^|[^0-9.])(124|125|126|127|137)([^0-9.]|$)	[ $? = 124 ]	curl 127.0.0.1
kill with a double dash	kill -[A-Z0-9]+ --	kill -9 -- 1	kill -9 1
a name with a hyphen	^ *[a-z_]+-[a-z_-]*\(\)	a-b() {	a_b() {
RULES
}
sourced() {
  cat <<'RULES'
errexit or nounset	set -[a-zA-Z]*[eu]	set -eu	set +eu
exit	(^|[;&|({] *|then |else |do )exit( |$|;)	x || exit 1	return 1
trap	(^|[;&|({] *|then |do )trap 	trap : EXIT	a trap
alias	(^|[;&|({] *|then |do )(un)?alias 	alias x=y	the alias
options of one shell	(^|[;&|({] *|then |do )(shopt|setopt|unsetopt) 	setopt x	a setting
names that zsh owns	(^|[ ;(])(path|status)=|read .*[ ](path|status)( |$)	status=$?	state=$bad
a program that an alias could replace	(^|[;&|({!] *|then |do |else |\$\()(awk|cat|cut|date|df|grep|mkdir|mv|readlink|rm|sed|sort|tr|wc)( |$)	x=$(date -u)	x=$(command date -u)
a program with options of one system	(stat -c|readlink -f|sed -i|grep -P|date -[dI])	stat -c %s x	wc -c <x
an unset variable	\[ -n "\$[A-Z_]+" \]	[ -n "$X" ]	[ -n "${X-}" ]
RULES
}

# FILE... under the rules on standard input.
check() {
  while IFS='	' read -r rule pattern caught innocent; do
    is "$rule: catches" "$(printf '%s\n' "$caught" | code | grep -cE "$pattern")" 1
    is "$rule: spares" "$(printf '%s\n' "$innocent" | code | grep -cE "$pattern")" 0
    for file; do
      # the plain form of sh-timeout is the one place that knows them
      case $rule:$file in 'a status number of timeout':*/sh/fallback | 'a status number of timeout':*/sh/fallback-engine) continue ;; esac
      is "${file#"$root/"}: $rule" "$(code "$file" | grep -nE "$pattern")" ''
    done
  done
}

# Functions that a sourced file would add to the caller's shell under a name that is not ours.
strangers() {
  code "$@" | grep -E '^[a-z_]+\(\)' | grep -vE '^(_?selfheal_[a-z_]+|run_with_timeout)\(\)'
}

everywhere >"$box/everywhere"
sourced >"$box/sourced"
set -- "$root"/sh/* "$root"/tests/*.sh "$root/tests/run-shell"
[ ! -d "$root/tests/e2e" ] || set -- "$@" "$root"/tests/e2e/*
for file; do
  shift
  case $file in */banned.sh | */completions.sh) continue ;; esac # texts of rules; lines for bash and zsh alone
  ! head -n 2 "$file" | grep -q -e '^#!/bin/sh' -e 'shell=sh' || set -- "$@" "$file"
done
is 'files were found' "$([ $# -ge 7 ] && echo yes)" yes
check "$@" <"$box/everywhere"
check "$root/sh/selfheal.sh" <"$box/sourced"
is 'every name has the prefix' "$(strangers "$root/sh/selfheal.sh")" ''
is 'a name without it is caught' "$(printf 'helper() {\n' | strangers)" 'helper() {'
is 'lines of selfheal.sh' "$([ "$(wc -l <"$root/sh/selfheal.sh")" -le 450 ] && echo fit)" fit
finish
