//! `hf-fetch` on its way to a server: redirects, tokens, certificates, proxies.
#![allow(clippy::disallowed_methods, reason = "tests lay out files themselves")]

mod fetching;
mod private_home;
mod servers;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fetching::*;
use private_home::*;
use servers::behaviour::{TAG, content, good, serving};
use servers::real::{Authority, Process, free_port, nginx, nginx_log, tinyproxy};
use servers::{Server, Tunnel};

const TOKEN: &str = "hf_SecretTokenOfTheUser";

/// Redirects every request to `there`.
fn redirecting(status: u16, there: impl Fn(&str) -> String + Send + Sync + 'static) -> Server {
    Server::start(move |asked, wire| {
        wire.head(status, &[("location", &there(&asked.path)), ("content-length", "0")]);
    })
}

#[test]
fn every_kind_of_redirect_is_followed_and_resolved() {
    let file = content(50, 10_000);
    for status in [301, 302, 303, 307, 308] {
        let content = file.clone();
        let server = Server::start(move |asked, wire| match asked.path.as_str() {
            "/a/c/file?x=1" => good(&content, TAG, asked, wire),
            "/a/b/next" => wire.head(status, &[("location", "../c/file?x=1#part")]),
            _ => wire.head(status, &[("location", "/a/b/next")]),
        });
        let output = run(&mut fetch(&home_of(&file), &server.url(), &["m"]));
        assert_eq!(output.code, 0, "{status}: {output:?}");
    }
}

#[test]
fn an_ipv6_address_is_an_address() {
    let file = content(57, 10_000);
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return servers::real::not_run("no IPv6 on the loopback interface");
    }
    let content = file.clone();
    let server = Server::start_on("[::1]:0", move |asked, wire| good(&content, TAG, asked, wire));
    let home = home_of(&file);
    let output = run(&mut fetch(&home, &server.url(), &["m"]));
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(server.gets()[0].header("host"), Some(server.address.to_string().as_str()));
}

/// Nobody listens, and nobody answers: both are over soon.
#[test]
fn an_endpoint_that_is_not_there_is_unreachable() {
    let home = home_of(b"x");
    let endpoint = format!("http://127.0.0.1:{}", free_port());
    let output = run(&mut fetch(&home, &endpoint, &["m"]));
    assert_eq!((output.code, output.field(1)), (3, "failed".into()), "{output:?}");
    assert!(output.field(4).starts_with("unreachable: http://127.0.0.1:"), "{output:?}");
    assert!(output.err().contains("trying again") && output.err().contains("hint: "), "{output:?}");
}

#[test]
fn redirects_that_lead_nowhere_are_refused() {
    let elsewhere = Server::start(|_, wire| wire.head(200, &[]));
    let table: Vec<(&str, Server, usize)> = vec![
        ("a loop", redirecting(302, |_| "/again".into()), 6),
        ("another host", redirecting(302, |_| "https://example.com/x".into()), 1),
        ("a private address", redirecting(302, |_| "http://169.254.169.254/x".into()), 1),
        ("another scheme", redirecting(302, |_| "file:///etc/passwd".into()), 1),
        ("user information", redirecting(302, |_| "http://127.0.0.1@example.com/".into()), 1),
        ("plain http to the hub", redirecting(308, |_| "http://huggingface.co/x".into()), 1),
    ];
    for (case, server, asked) in table {
        let home = home_of(b"x");
        let output = run(&mut fetch(&home, &server.url(), &["m"]));
        assert_eq!((output.code, output.field(1)), (3, "failed".into()), "{case}: {output:?}");
        assert!(output.field(4).starts_with("refused: "), "{case}: {output:?}");
        assert_eq!(server.asked().len(), asked, "{case}");
    }
    assert_eq!(elsewhere.asked().len(), 0);
}

/// A home with the certificate authority in `ca/`, and nginx with these server blocks; `%B%` is a second port.
fn secure(home: &Home, names: &str, servers: &str) -> Option<(Authority, Process, u16)> {
    let ca = Authority::new(&home.path("ca"))?;
    ca.sign("server", names);
    let second = free_port();
    let certificate = "ssl_certificate %DIR%/../ca/server.pem; ssl_certificate_key %DIR%/../ca/server.key;";
    let servers = servers.replace("%CERT%", certificate).replace("%B%", &second.to_string());
    let process = nginx(&home.path("nginx"), &servers)?;
    Some((ca, process, second))
}

/// Every file below a directory that contains `text`.
fn containing(dir: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(containing(&path, text));
        } else if String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(text) {
            found.push(path);
        }
    }
    found
}

/// Two origins: the endpoint and a file server, which also leads back to the endpoint.
const TWO: &str = "
server { listen 127.0.0.1:%PORT% ssl; %CERT% root %DIR%/www;
  location /o/ { return 302 https://127.0.0.1:%B%/m.gguf; }
  location /back/ { return 307 https://127.0.0.1:%B%/back; }
  location /same/ { return 307 https://127.0.0.1:%PORT%/m.gguf; }
  location /name/ { return 302 https://localhost:%PORT%/m.gguf; } }
server { listen 127.0.0.1:%B% ssl; %CERT% root %DIR%/www;
  location = /back { return 302 https://127.0.0.1:%PORT%/m.gguf; } }";

#[test]
fn d12_a_token_goes_to_its_own_origin_and_nowhere_else() {
    let file = content(51, 30_000);
    // Below which base, and what each GET carried.
    let table = [
        ("", vec!["/o/ Bearer", "/m.gguf -"]),
        ("/back", vec!["/back/ Bearer", "/back -", "/m.gguf -"]),
        ("/same", vec!["/same/ Bearer", "/m.gguf Bearer"]),
        ("/name", vec!["/name/ Bearer", "/m.gguf -"]),
    ];
    for (base, expected) in table {
        let home = home_of(&file);
        let Some((ca, process, _)) = secure(&home, "IP:127.0.0.1,DNS:localhost", TWO) else { return };
        fs::write(home.path("nginx/www/m.gguf"), &**file).unwrap();
        let endpoint = format!("https://{}{base}", process.address);
        let mut command = fetch(&home, &endpoint, &["m"]);
        let output = run(command.env("HF_TOKEN", TOKEN).env("SSL_CERT_FILE", ca.pem()));
        assert_eq!(output.code, 0, "{base}: {output:?}");
        let gets: Vec<String> = nginx_log(&home.path("nginx"))
            .iter()
            .filter(|l| l.contains(" GET "))
            .map(|l| {
                let path = l.split(' ').nth(3).unwrap();
                let path = path.strip_suffix(&format!("o/n/resolve/{REVISION}/m.gguf")).unwrap_or(path);
                let path = if path == "/" { "/o/" } else { path };
                format!("{path} {}", if l.contains(&format!("[Bearer {TOKEN}]")) { "Bearer" } else { "-" })
            })
            .collect();
        assert_eq!(gets, expected, "{base}");
        assert!(!output.out().contains(TOKEN) && !output.err().contains(TOKEN), "{output:?}");
        assert_eq!(containing(&home.path(".selfheal"), TOKEN), [""; 0].map(PathBuf::from));
    }
}

#[test]
fn d12_a_token_never_goes_over_plain_http() {
    let file = content(52, 30_000);
    let second = serving(&file);
    let there = second.url();
    let first = redirecting(302, move |_| format!("{there}/f"));
    let output = run(fetch(&home_of(&file), &first.url(), &["m"]).env("HF_TOKEN", TOKEN));
    assert_eq!(output.code, 0, "{output:?}");
    for asked in first.asked().iter().chain(&second.asked()) {
        assert_eq!(asked.header("authorization"), None);
    }
    let output = run(fetch(&home_of(&file), &first.url(), &["m"]).env("HF_TOKEN", "hf_a\nSecret: b"));
    assert_eq!(output.code, 64, "{output:?}");
    assert!(!output.err().contains("Secret"), "{output:?}");
}

#[test]
fn d12_https_is_never_left_for_http() {
    let file = content(53, 30_000);
    let plain = serving(&file);
    let home = home_of(&file);
    let servers = "server { listen 127.0.0.1:%PORT% ssl; %CERT% return 302 http://PLAIN/m.gguf; }"
        .replace("PLAIN", &plain.address.to_string());
    let Some((ca, process, _)) = secure(&home, "IP:127.0.0.1", &servers) else { return };
    let endpoint = format!("https://{}", process.address);
    let output = run(fetch(&home, &endpoint, &["m"]).env("SSL_CERT_FILE", ca.pem()).env("HF_TOKEN", TOKEN));
    assert_eq!((output.code, output.field(1)), (3, "failed".into()), "{output:?}");
    assert!(output.field(4).starts_with("refused: ") && output.field(4).contains("plain http"), "{output:?}");
    assert_eq!(plain.asked().len(), 0);
}

const ONE: &str = "server { listen 127.0.0.1:%PORT% ssl; %CERT% root %DIR%/www; }";

#[test]
fn only_certificates_that_the_caller_trusts_are_trusted() {
    let file = content(54, 30_000);
    let home = home_with(&Model { repository: None, ..Model::of(&file) }, &[]);
    let Some((ca, process, _)) = secure(&home, "IP:127.0.0.1", ONE) else { return };
    fs::write(home.path("nginx/www/m.gguf"), &**file).unwrap();
    let endpoint = format!("https://{}", process.address);
    let pem = ca.pem();
    let dir = home.path("trusted");
    fs::create_dir_all(&dir).unwrap();
    fs::copy(&pem, dir.join("0a1b2c3d.0")).unwrap();
    std::os::unix::fs::symlink("gone", dir.join("dangling")).unwrap();
    let stranger = Authority::new(&home.path("stranger")).unwrap().pem();
    let named = format!("https://localhost:{}", process.address.port());
    let table: &[(&str, &str, &Path, i32)] = &[
        ("SSL_CERT_FILE", &endpoint, &pem, 0),
        ("CURL_CA_BUNDLE", &endpoint, &pem, 0),
        ("REQUESTS_CA_BUNDLE", &endpoint, &pem, 0),
        ("REQUESTS_CA_BUNDLE", &endpoint, &dir, 0),
        ("SSL_CERT_DIR", &endpoint, &dir, 0),
        // Nobody, somebody else, the wrong name, and a place that gives nothing.
        ("LC_ALL", &endpoint, Path::new("C"), 3),
        ("SSL_CERT_FILE", &endpoint, &stranger, 3),
        ("SSL_CERT_FILE", &named, &pem, 3),
        ("SSL_CERT_FILE", &endpoint, Path::new("/nonexistent"), 3),
    ];
    for (name, endpoint, value, code) in table {
        let _ = fs::remove_file(target(&home));
        let output = run(fetch(&home, endpoint, &["m"]).env(name, value));
        assert_eq!(output.code, *code, "{name}={}: {output:?}", value.display());
        let cause = if *code == 0 { "30000 of " } else { "tls: " };
        assert!(output.field(4).starts_with(cause), "{name}={}: {output:?}", value.display());
    }
}

#[test]
fn ranges_and_segments_work_with_a_real_server() {
    let file = content(55, 20_000_000);
    for segments in ["1", "4"] {
        let home = home_with(&Model { repository: None, ..Model::of(&file) }, &[]);
        let servers = "server { listen 127.0.0.1:%PORT%; root %DIR%/www; }";
        let Some(process) = nginx(&home.path("nginx"), servers) else { return };
        fs::write(home.path("nginx/www/m.gguf"), &**file).unwrap();
        let name = partial(&home, &file);
        home.file(name.strip_prefix(&home.dir).unwrap().to_str().unwrap(), &file[..1_000_001]);
        let endpoint = format!("http://{}", process.address);
        let output = run(&mut fetch(&home, &endpoint, &["m", "--segments", segments]));
        assert_eq!(output.code, 0, "{output:?}");
        assert!(output.field(4).starts_with("18999999 of 20000000 bytes"), "{output:?}");
        assert!(fs::read(target(&home)).unwrap() == **file);
        let parts = nginx_log(&home.path("nginx")).iter().filter(|l| l.contains(" 206 ")).count();
        assert_eq!(parts, if segments == "1" { 1 } else { 3 }, "pieces of 8 MiB");
    }
}

/// The proxy variables in all the spellings that mean the same, and the ones that mean something else.
#[test]
fn a_proxy_is_used_as_the_environment_says() {
    let file = content(56, 30_000);
    let home = home_with(&Model { repository: None, ..Model::of(&file) }, &[]);
    let Some((ca, process, _)) = secure(&home, "IP:127.0.0.1", ONE) else { return };
    fs::write(home.path("nginx/www/m.gguf"), &**file).unwrap();
    let Some(proxy) = tinyproxy(&home.path("proxy"), "user", "p4ss") else { return };
    let endpoint = format!("https://{}", process.address);
    let place = proxy.address;
    let good = format!("http://user:p4ss@{place}");
    let log = || fs::read_to_string(home.path("proxy/tinyproxy.log")).unwrap_or_default();
    let tunnels = || log().matches("Established connection").count();
    let run_with = |variables: &[(&str, &str)]| {
        let _ = fs::remove_file(target(&home));
        let mut command: Command = fetch(&home, &endpoint, &["m"]);
        command.env("SSL_CERT_FILE", ca.pem()).envs(variables.iter().copied());
        let before = tunnels();
        (run(&mut command), tunnels() - before)
    };
    for variables in [
        [("HTTPS_PROXY", good.as_str()), ("ALL_PROXY", "http://127.0.0.1:1")],
        [("https_proxy", &format!("{good}/")), ("HTTPS_PROXY", "http://127.0.0.1:1")],
        [("all_proxy", &good), ("NO_PROXY", "example.com,10.0.0.0/8")],
        [("ALL_PROXY", &good["http://".len()..]), ("no_proxy", "127.0.0.1:1")],
    ] {
        let (output, used) = run_with(&variables);
        assert_eq!(output.code, 0, "{variables:?}: {output:?}");
        assert!(used > 0, "{variables:?}: the proxy was used: {}", log());
    }
    for direct in ["127.0.0.0/8", "*", "example.com, 127.0.0.1"] {
        let (output, used) = run_with(&[("HTTPS_PROXY", "http://127.0.0.1:1"), ("NO_PROXY", direct)]);
        assert_eq!((output.code, used), (0, 0), "{direct}: {output:?}");
    }
    let asked = nginx_log(&home.path("nginx")).len();
    let wrong = format!("http://user:wr0ng@{place}");
    for unusable in
        [wrong.as_str(), "http://127.0.0.1:1", "socks5://127.0.0.1:1", "http://", "https://127.0.0.1"]
    {
        let (output, _) = run_with(&[("HTTPS_PROXY", unusable)]);
        assert_eq!((output.code, output.field(1)), (3, "failed".into()), "{unusable}: {output:?}");
        assert!(output.field(4).starts_with("proxy: "), "{unusable}: {output:?}");
        // What is wrong is the proxy, so it is named, and what was on the other side of it behind it.
        if let Some(named) = [place.to_string(), "127.0.0.1:1".into()].iter().find(|p| unusable.contains(*p))
            && unusable.starts_with("http://")
        {
            assert!(output.field(4).starts_with(&format!("proxy: {named}: ")), "{unusable}: {output:?}");
            assert!(output.field(4).contains(&process.address.to_string()), "{unusable}: {output:?}");
        }
        assert!(!format!("{}{}", output.out(), output.err()).contains("wr0ng"), "{output:?}");
    }
    assert_eq!(nginx_log(&home.path("nginx")).len(), asked, "an unusable proxy never means direct");
}

/// Without a request it is known what will be refused: that is not what would be done.
#[test]
fn what_fix_mode_refuses_without_asking_check_mode_refuses_too() {
    let home = home_of(b"x");
    for (endpoint, proxy, begins) in [
        ("http://10.0.0.5:8080", "", "refused: http://10.0.0.5:8080 is plain http"),
        ("http://huggingface.co", "", "refused: http://huggingface.co is plain http"),
        ("https://127.0.0.1:1", "socks5://127.0.0.1:1", "proxy: ALL_PROXY is not usable"),
    ] {
        let before = home.census();
        let said = ["check", "fix"].map(|mode| {
            let mut command = fetch(&home, endpoint, &["m"]);
            let output = run(command.env("SELFHEAL_MODE", mode).env("ALL_PROXY", proxy));
            assert_eq!((output.code, output.field(1)), (3, "failed".into()), "{mode} {endpoint}: {output:?}");
            assert!(output.field(4).starts_with(begins), "{mode} {endpoint}: {output:?}");
            assert!(output.err().contains("hint: ") && !output.err().contains("DRY"), "{output:?}");
            if mode == "check" {
                assert_eq!(home.census(), before, "check mode writes nothing");
            }
            output.out()
        });
        assert_eq!(said[0], said[1], "{endpoint}");
    }
}

#[test]
fn a_place_that_cannot_be_written_is_said_with_the_variable_that_names_another() {
    let server = Server::start(|_, wire| wire.head(200, &[]));
    let home = home_of(b"x");
    let output = run(fetch(&home, &server.url(), &["m"]).env("SELFHEAL_MODELS_DIR", "/proc/none/models"));
    assert_eq!((output.code, output.field(1)), (3, "failed".into()), "{output:?}");
    assert!(
        output.field(4).starts_with("disk: ") && output.err().contains("SELFHEAL_MODELS_DIR"),
        "{output:?}"
    );
}

#[test]
fn a_proxy_that_refuses_or_hangs_up_is_the_proxys_fault() {
    let server = Server::start(|_, wire| wire.head(200, &[]));
    let refusing = Tunnel::start(Err(502));
    let hanging = Server::start(|_, _| ());
    for (case, address) in [("refuses", refusing.address), ("hangs up", hanging.address)] {
        let home = home_of(b"x");
        let mut command = fetch(&home, &server.url(), &["m", "--limit", "5"]);
        let output = run(command.env("ALL_PROXY", address.to_string()));
        assert_eq!((output.code, output.field(1)), (3, "failed".into()), "{case}: {output:?}");
        assert!(output.field(4).starts_with("proxy: "), "{case}: {output:?}");
    }
    assert_eq!(refusing.asked()[0].method, "CONNECT");
    assert_eq!(server.asked().len(), 0);
}
