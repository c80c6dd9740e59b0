//! Which git remote a source tree may come from, and how a remote is shown.

use std::path::Path;
use std::time::Duration;

use child::{Cause, Sink};
use contract::{State, home};

use crate::halt::{Halt, say};
use crate::machine;

/// The one repository whose code is built, as GitHub writes it; GitHub does not tell its case apart.
const REPOSITORY: &str = "ggml-org/llama.cpp";

/// The same repository's name before it moved; GitHub redirects it for as long as nobody takes that name.
const FORMER: &str = "ggerganov/llama.cpp";

/// Why a remote is not trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Distrust {
    /// Another place than the repository.
    Elsewhere,
    /// The right place over a transport that proves nothing: anyone on the way can answer.
    Plaintext,
    /// The repository's former name.
    Former,
}

impl Distrust {
    fn words(self) -> &'static str {
        match self {
            Self::Elsewhere => "is not github.com/ggml-org/llama.cpp",
            Self::Plaintext => "is not authenticated: anyone on the way could have answered",
            Self::Former => "is the former name of github.com/ggml-org/llama.cpp",
        }
    }
}

/// Whether a URL, in any spelling git accepts, is the trusted repository over a transport that authenticates it.
///
/// Everything is compared exactly after taking the URL apart; what cannot be taken apart without doubt
/// (percent signs, backslashes, queries, several `@`, dot segments) is somewhere else.
pub(crate) fn judge(url: &str) -> Result<(), Distrust> {
    let (scheme, authority, path) = split(url).ok_or(Distrust::Elsewhere)?;
    let host_port = match authority.rsplit_once('@') {
        // two of them: not every program agrees on where the host begins
        Some((user, _)) if user.contains('@') => return Err(Distrust::Elsewhere),
        Some((_, host_port)) => host_port,
        None => authority,
    };
    let (host, port) = host_port.split_once(':').unwrap_or((host_port, ""));
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let authenticated = match (scheme.as_str(), host.as_str(), port) {
        ("https", "github.com", "" | "443")
        | ("ssh" | "git+ssh" | "ssh+git", "github.com", "" | "22")
        // GitHub's ssh for networks that let only port 443 through
        | ("ssh" | "git+ssh" | "ssh+git", "ssh.github.com", "443") => true,
        ("http", "github.com", "" | "80") | ("git", "github.com", "" | "9418") => false,
        _ => return Err(Distrust::Elsewhere),
    };
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    if path.eq_ignore_ascii_case(FORMER) {
        return Err(Distrust::Former);
    }
    if !path.eq_ignore_ascii_case(REPOSITORY) {
        return Err(Distrust::Elsewhere);
    }
    if authenticated { Ok(()) } else { Err(Distrust::Plaintext) }
}

/// Scheme in lower case, authority and path of a URL, or of the form `[user@]host:path` that means ssh.
fn split(url: &str) -> Option<(String, &str, &str)> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~:/@[]+!$&()*,;=".contains(&b);
    if !url.bytes().all(plain) || url.contains("::") {
        return None;
    }
    if let Some((scheme, rest)) = url.split_once("://") {
        let (authority, path) = rest.split_once('/')?;
        return Some((scheme.to_ascii_lowercase(), authority, path));
    }
    let (authority, path) = match url.strip_prefix('[') {
        Some(rest) => rest.split_once("]:")?,
        None => url.split_once(':')?,
    };
    // with a slash before the first colon it would be a local path
    (!authority.contains('/')).then(|| ("ssh".to_owned(), authority, path.strip_prefix('/').unwrap_or(path)))
}

/// A URL without user names, passwords and tokens.
pub(crate) fn shown(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        // the last @ of all: a password may hold a slash
        Some((scheme, rest)) => format!("{scheme}://{}", rest.rsplit('@').next().unwrap_or_default()),
        None if url.contains(':') => url.rsplit('@').next().unwrap_or_default().to_owned(),
        None => url.to_owned(),
    }
}

/// Text of git with the credentials of every URL in it removed.
pub(crate) fn redacted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        let end = after.find(|c: char| c.is_whitespace() || c == '\'' || c == '"').unwrap_or(after.len());
        let (url, tail) = after.split_at(end);
        out.push_str(url.rsplit('@').next().unwrap_or_default());
        rest = tail;
    }
    out.push_str(rest);
    out
}

/// The URL a fetch from `url` would really go to, after the `insteadOf` rules of the user and the system.
pub(crate) fn effective(url: &str) -> Result<String, Halt> {
    let asked = machine::git()?
        .args(["ls-remote", "--get-url", "--", url])
        .stdout(Sink::Head(16 << 10))
        .stderr(Sink::Null)
        .limit(Duration::from_secs(20));
    let outcome = machine::run(asked)?;
    if !outcome.success() {
        return Err(Halt::new(State::Failed, "git cannot say where the manifest's remote is"));
    }
    Ok(String::from_utf8_lossy(&outcome.stdout).trim_end().to_owned())
}

/// Refuses a tree unless every one of its remotes is trusted: what is checked out may have come from any of them.
pub(crate) fn require_trusted(tree: &Path) -> Result<(), Halt> {
    let remotes = read(tree)?;
    let name = contract::message::quoted(tree.as_os_str());
    if remotes.is_empty() {
        return Err(Halt::new(State::Bad, format!("{name} has no git remote: nothing says what it is"))
            .hint("llama-rebuild --from-archive FILE builds a pinned source archive instead"));
    }
    let Some((url, why)) = remotes.iter().find_map(|url| Some((url, judge(url).err()?))) else {
        return Ok(());
    };
    if home::any_remote() {
        say(&format!("{} {}; SELFHEAL_LLAMA_ANY_REMOTE approves it", shown(url), why.words()));
        return Ok(());
    }
    Err(distrusted(url, why, &format!("the remote of {name},")))
}

/// The refusal of a URL.
pub(crate) fn distrusted(url: &str, why: Distrust, what: &str) -> Halt {
    let halt = Halt::new(State::Bad, format!("{what} {}, {}", shown(url), why.words()));
    match why {
        Distrust::Former | Distrust::Plaintext => {
            halt.hint("git remote set-url origin https://github.com/ggml-org/llama.cpp.git && git fetch")
        }
        Distrust::Elsewhere => halt.hint("SELFHEAL_LLAMA_ANY_REMOTE=1 approves another remote"),
    }
}

/// The URLs that the remotes of a tree are fetched from, as git resolves them. The tree's configuration is hostile:
/// `git remote` runs nothing that it names, and no repository above the tree is looked for.
fn read(tree: &Path) -> Result<Vec<String>, Halt> {
    if tree.join(".git").symlink_metadata().is_err() {
        return Ok(Vec::new());
    }
    let asked = machine::git_in(tree)?
        .args(["remote", "-v"])
        .stdout(Sink::Head(64 << 10))
        .stderr(Sink::Head(4 << 10))
        .limit(Duration::from_secs(20));
    let outcome = machine::run(asked)?;
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    match outcome.cause {
        Cause::Exited(0) => {}
        Cause::Exited(_) if said.contains("dubious ownership") => {
            let name = contract::message::quoted(tree.as_os_str());
            return Err(Halt::new(State::Bad, format!("{name} belongs to another user"))
                .hint("chown it, or name it in git's safe.directory"));
        }
        Cause::Exited(_) => return Ok(Vec::new()),
        _ => return Err(Halt::new(State::Failed, "git did not say the remotes of the source tree")),
    }
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let fetched = text.lines().filter_map(|line| {
        let (_, url) = line.split_once('\t')?;
        // a partial clone shows its filter behind
        Some(url.split_once(" (fetch)")?.0.to_owned())
    });
    Ok(fetched.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_the_trusted_repository_is_trusted() {
        for url in [
            "https://github.com/ggml-org/llama.cpp",
            "https://github.com/ggml-org/llama.cpp.git",
            "https://github.com/ggml-org/llama.cpp/",
            "https://github.com/ggml-org/llama.cpp.git/",
            "HTTPS://GitHub.com/ggml-org/llama.cpp",
            "https://github.com/GGML-Org/Llama.CPP.git",
            "https://github.com:443/ggml-org/llama.cpp",
            "https://github.com./ggml-org/llama.cpp",
            "https://user@github.com/ggml-org/llama.cpp",
            "https://user:token@github.com/ggml-org/llama.cpp",
            "ssh://git@github.com/ggml-org/llama.cpp.git",
            "ssh://github.com:22/ggml-org/llama.cpp",
            "ssh://git@ssh.github.com:443/ggml-org/llama.cpp.git",
            "git+ssh://git@github.com/ggml-org/llama.cpp",
            "git@github.com:ggml-org/llama.cpp.git",
            "git@github.com:/ggml-org/llama.cpp",
            "github.com:ggml-org/llama.cpp",
            "[git@github.com:22]:ggml-org/llama.cpp",
        ] {
            assert_eq!(judge(url), Ok(()), "{url}");
        }
    }

    #[test]
    fn a_look_alike_is_refused() {
        for url in [
            "",
            "https://github.com",
            "https://github.com/",
            "https://github.com.evil.org/ggml-org/llama.cpp",
            "https://evil-github.com/ggml-org/llama.cpp",
            "https://www.github.com/ggml-org/llama.cpp",
            "https://github.com/ggml-org/llama.cpp-evil",
            "https://github.com/ggml-org/llama.cpp.git.git",
            "https://github.com/ggml-org-evil/llama.cpp",
            "https://github.com/evil/llama.cpp",
            "https://github.com/ggml-org/llama.cpp/../../evil/llama.cpp",
            "https://github.com/evil/../ggml-org/llama.cpp",
            "https://github.com/ggml-org/llama.cpp/../x",
            "https://github.com/ggml-org//llama.cpp",
            "https://github.com//ggml-org/llama.cpp",
            "https://github.com/ggml-org/%6clama.cpp",
            "https://github.com/ggml-org/llama.cpp?x=.git",
            "https://github.com/ggml-org/llama.cpp#main",
            "https://github.com@evil.org/ggml-org/llama.cpp",
            "https://a@evil.org@github.com/ggml-org/llama.cpp",
            "https://evil.org#@github.com/ggml-org/llama.cpp",
            "https://evil.org\\@github.com/ggml-org/llama.cpp",
            "https://github.com:8443/ggml-org/llama.cpp",
            "https://github.com:80443/ggml-org/llama.cpp",
            "https://ssh.github.com/ggml-org/llama.cpp",
            "ssh://git@ssh.github.com/ggml-org/llama.cpp",
            "https://g\u{456}thub.com/ggml-org/llama.cpp",
            "https://github.com/ggml\u{2010}org/llama.cpp",
            "https://github.com/ggml-org/llama.cpp\n",
            " https://github.com/ggml-org/llama.cpp",
            "ext::sh -c true github.com/ggml-org/llama.cpp",
            "https::https://github.com/ggml-org/llama.cpp",
            "file:///github.com/ggml-org/llama.cpp",
            "/srv/github.com/ggml-org/llama.cpp",
            "github.com/ggml-org/llama.cpp",
            "./github.com:ggml-org/llama.cpp",
            "git@evil.org:ggml-org/llama.cpp",
            "git@github.com:evil/llama.cpp",
            "git@github.com:2222/ggml-org/llama.cpp",
        ] {
            assert_eq!(judge(url), Err(Distrust::Elsewhere), "{url}");
        }
        for url in ["http://github.com/ggml-org/llama.cpp", "git://github.com/ggml-org/llama.cpp.git"] {
            assert_eq!(judge(url), Err(Distrust::Plaintext), "{url}");
        }
        assert_eq!(judge("https://github.com/ggerganov/llama.cpp.git"), Err(Distrust::Former));
    }

    #[test]
    fn credentials_are_never_shown() {
        for (url, want) in [
            ("https://user:s3cret@host/x", "https://host/x"),
            ("https://user:s3/cret@host/x", "https://host/x"),
            ("https://s3cret@a@host/x?token=s3cret#s3cret", "https://host/x"),
            ("s3cret@host:x", "host:x"),
            ("/local/pa@th", "/local/pa@th"),
        ] {
            assert_eq!(shown(url), want);
        }
        let said = "fatal: unable to access 'https://u:s3cret@host/x/': no; see ssh://s3cret@b/c d@e";
        assert_eq!(redacted(said), "fatal: unable to access 'https://host/x/': no; see ssh://b/c d@e");
    }
}
