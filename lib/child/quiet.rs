//! The environment under which programs fail instead of asking: one table.
//!
//! Left out on purpose: `CI` (package managers then refuse to touch lock files), `TERM` (programs look at the
//! stream itself), `GIT_SSH_COMMAND` (it would replace the user's `core.sshCommand` and with it his key; in a
//! session without a terminal ssh has nobody to ask anyway), and whatever answers yes (`CONDA_ALWAYS_YES`):
//! consent is not ours to give.

use std::ffi::OsStr;

/// Variable and value.
pub const QUIET: [(&str, &str); 20] = [
    // git: no user name or password from the terminal
    ("GIT_TERMINAL_PROMPT", "0"),
    // git: a helper that gives no answer, instead of a window
    ("GIT_ASKPASS", "false"),
    // ssh before 8.4 opens a window when DISPLAY is set: a helper that gives no answer
    ("SSH_ASKPASS", "false"),
    // ssh since 8.4: no helper at all
    ("SSH_ASKPASS_REQUIRE", "never"),
    // Git Credential Manager: no window, no device code
    ("GCM_INTERACTIVE", "never"),
    // gh: an error instead of a menu
    ("GH_PROMPT_DISABLED", "1"),
    // an editor would wait for ever; `false` fails, where `true` would accept a text nobody has read
    ("EDITOR", "false"),
    ("VISUAL", "false"),
    ("GIT_EDITOR", "false"),
    // git rebase -i: before GIT_EDITOR, also when only the configuration names one
    ("GIT_SEQUENCE_EDITOR", "false"),
    // a pager waits for a key
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    // debconf: the defaults of the package, no dialog
    ("DEBIAN_FRONTEND", "noninteractive"),
    // apt: no page of changes to be read before it goes on
    ("APT_LISTCHANGES_FRONTEND", "none"),
    // needrestart: list services; restarting them is not ours to decide
    ("NEEDRESTART_MODE", "l"),
    // pip: fail where it would ask for a password or a yes
    ("PIP_NO_INPUT", "1"),
    // npx installs unknown packages unasked when it has no terminal: refuse instead
    ("npm_config_yes", "false"),
    // poetry, composer, terraform: fail where a value is missing
    ("POETRY_NO_INTERACTION", "1"),
    ("COMPOSER_NO_INTERACTION", "1"),
    ("TF_INPUT", "0"),
];

/// Whether a variable of the caller's undoes one of the table: npm takes its own in either case, and of several the last.
pub(crate) fn undoes(name: &OsStr) -> bool {
    let npm = |quiet: &str| quiet.starts_with("npm_config_") && name != quiet;
    QUIET.iter().any(|(quiet, _)| npm(quiet) && name.eq_ignore_ascii_case(quiet))
}
