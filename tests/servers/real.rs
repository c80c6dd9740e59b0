//! Real servers: nginx, tinyproxy, and a certificate authority made by openssl for one test.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The path of a program that may be missing; then the test says so and is over.
pub fn program(name: &str) -> Option<PathBuf> {
    let dirs = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];
    let found = dirs.iter().map(|d| Path::new(d).join(name)).find(|p| p.exists());
    if found.is_none() {
        not_run(&format!("{name} missing"));
    }
    found
}

/// Says that a test ends here, past the harness, which shows nothing of a test that passes.
pub fn not_run(why: &str) {
    if let Ok(mut err) = fs::OpenOptions::new().append(true).open("/proc/self/fd/2") {
        let _ = writeln!(err, "not run: {why}");
    }
}

/// A port that nobody uses now.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A server process, killed at the end.
pub struct Process {
    child: Child,
    pub address: SocketAddr,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a program that will listen on `port`, and waits until it does.
fn start(program: &Path, args: &[&str], dir: &Path, port: u16) -> Process {
    let log = fs::File::create(dir.join("output")).unwrap();
    let child = Command::new(program)
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let process = Process { child, address };
    let end = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(address).is_err() {
        let output = fs::read_to_string(dir.join("output")).unwrap_or_default();
        assert!(Instant::now() < end, "{} does not listen: {output}", program.display());
        std::thread::sleep(Duration::from_millis(5));
    }
    process
}

/// nginx with these server blocks, in one process; `%DIR%` and `%PORT%` are filled in.
pub fn nginx(dir: &Path, servers: &str) -> Option<Process> {
    let program = program("nginx")?;
    let port = free_port();
    fs::create_dir_all(dir.join("www")).unwrap();
    let config = format!(
        "daemon off; master_process off; pid %DIR%/pid; error_log stderr;\n\
         events {{ worker_connections 64; }}\n\
         http {{ log_format seen '$scheme $host $request_method $uri [$http_authorization] $status $body_bytes_sent';\n\
         access_log %DIR%/access seen; sendfile on; default_type application/octet-stream;\n\
         client_body_temp_path %DIR%/a; proxy_temp_path %DIR%/b; fastcgi_temp_path %DIR%/c;\n\
         uwsgi_temp_path %DIR%/d; scgi_temp_path %DIR%/e;\n{servers}\n}}\n"
    );
    let config = config.replace("%DIR%", dir.to_str().unwrap()).replace("%PORT%", &port.to_string());
    fs::write(dir.join("nginx.conf"), config).unwrap();
    let conf = dir.join("nginx.conf");
    fs::write(dir.join("access"), "").unwrap();
    Some(start(&program, &["-p", dir.to_str().unwrap(), "-c", conf.to_str().unwrap()], dir, port))
}

/// What nginx logged: `SCHEME HOST METHOD PATH [AUTHORIZATION] STATUS BYTES` a line.
pub fn nginx_log(dir: &Path) -> Vec<String> {
    let text = fs::read_to_string(dir.join("access")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// tinyproxy that lets only `user` with `password` through.
pub fn tinyproxy(dir: &Path, user: &str, password: &str) -> Option<Process> {
    let program = program("tinyproxy")?;
    let port = free_port();
    fs::create_dir_all(dir).unwrap();
    let config = format!(
        "Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 20\nLogLevel Connect\n\
         LogFile \"{0}/tinyproxy.log\"\nBasicAuth {user} {password}\n",
        dir.display()
    );
    fs::write(dir.join("tinyproxy.conf"), config).unwrap();
    let conf = dir.join("tinyproxy.conf");
    Some(start(&program, &["-d", "-c", conf.to_str().unwrap()], dir, port))
}

/// A certificate authority in `dir`, and certificates it signs.
pub struct Authority {
    dir: PathBuf,
}

impl Authority {
    pub fn new(dir: &Path) -> Option<Self> {
        program("openssl")?;
        fs::create_dir_all(dir).unwrap();
        let ca = Self { dir: dir.to_owned() };
        ca.openssl("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test-ca -keyout ca.key -out ca.pem -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign");
        Some(ca)
    }

    /// The certificate that signs.
    pub fn pem(&self) -> PathBuf {
        self.dir.join("ca.pem")
    }

    /// Signs `NAME.pem` with `NAME.key` for these alternative names (`DNS:x,IP:y`).
    pub fn sign(&self, name: &str, names: &str) {
        fs::write(
            self.dir.join(format!("{name}.ext")),
            format!("subjectAltName={names}\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n"),
        )
        .unwrap();
        self.openssl(&format!("req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr"));
        self.openssl(&format!("x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 1 -extfile {name}.ext -out {name}.pem"));
    }

    fn openssl(&self, args: &str) {
        let output = Command::new("openssl").args(args.split(' ')).current_dir(&self.dir).output().unwrap();
        assert!(output.status.success(), "openssl {args}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
