//! Servers for tests, on the loopback interface alone: one whose every byte the test decides, and real ones.
#![allow(dead_code, unreachable_pub, reason = "each test file is a crate and uses its part")]
#![allow(clippy::disallowed_methods, reason = "tests open sockets and wait themselves")]

pub mod behaviour;
pub mod real;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// One request as it came.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
}

impl Asked {
    /// A header's value; names in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// First and last byte of a `Range` header.
    pub fn range(&self) -> Option<(usize, Option<usize>)> {
        let (first, last) = self.header("range")?.strip_prefix("bytes=")?.split_once('-')?;
        Some((first.parse().ok()?, last.parse().ok()))
    }
}

/// The connection that a handler answers on.
pub struct Wire {
    stream: TcpStream,
    sent: Arc<AtomicU64>,
}

impl Wire {
    /// Bytes as they are. A client that went away is no failure of the server.
    pub fn raw(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Status line and headers; the connection ends with the answer.
    pub fn head(&mut self, status: u16, headers: &[(&str, &str)]) {
        let mut text = format!("HTTP/1.1 {status} x\r\nconnection: close\r\n");
        for (name, value) in headers {
            text.extend([name, ": ", value, "\r\n"]);
        }
        text.push_str("\r\n");
        self.raw(text);
    }

    /// Bytes of a body, counted.
    pub fn body(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        let fine = self.raw(bytes.as_ref());
        self.sent.fetch_add(bytes.as_ref().len() as u64, Ordering::SeqCst);
        fine
    }

    /// Whether the client hung up, waiting for that at most `bound`.
    pub fn gone(&mut self, bound: Duration) -> bool {
        let _ = self.stream.set_read_timeout(Some(bound));
        matches!(self.stream.read(&mut [0; 1]), Ok(0))
    }
}

/// Lets time pass in a server that takes its time.
pub fn rest(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

/// A server that answers each connection once, by a handler, and remembers what it was asked.
pub struct Server {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    sent: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Server {
    pub fn start(handler: impl Fn(&Asked, &mut Wire) + Send + Sync + 'static) -> Self {
        Self::start_on("127.0.0.1:0", handler)
    }

    pub fn start_on(place: &str, handler: impl Fn(&Asked, &mut Wire) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(place).unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            asked: Arc::default(),
            sent: Arc::default(),
            stop: Arc::default(),
        };
        let (asked, sent, stop) = (server.asked.clone(), server.sent.clone(), server.stop.clone());
        let handler = Arc::new(handler);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let (asked, sent, handler) = (asked.clone(), sent.clone(), handler.clone());
                std::thread::spawn(move || {
                    let Ok(request) = read_request(&stream) else { return };
                    asked.lock().unwrap().push(request.clone());
                    let mut wire = Wire { stream, sent };
                    handler(&request, &mut wire);
                    // A close with unread bytes would be a reset and could eat what was just sent.
                    let _ = wire.stream.shutdown(std::net::Shutdown::Write);
                });
            }
        });
        server
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The GET requests so far.
    pub fn gets(&self) -> Vec<Asked> {
        self.asked().into_iter().filter(|a| a.method == "GET").collect()
    }

    /// Bytes of bodies that were sent.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }

    /// Waits until the server was asked `count` times.
    pub fn wait_for(&self, count: usize) {
        let end = Instant::now() + Duration::from_secs(20);
        while self.asked().len() < count {
            assert!(Instant::now() < end, "never asked {count} times: {:?}", self.asked());
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

/// Reads one request's line and headers.
pub fn read_request(stream: &TcpStream) -> io::Result<Asked> {
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut lines = BufReader::new(stream).take(64 << 10);
    let mut next = || {
        let mut line = String::new();
        lines.read_line(&mut line)?;
        if line.is_empty() {
            Err(io::Error::from(io::ErrorKind::UnexpectedEof))
        } else {
            Ok(line.trim_end().to_owned())
        }
    };
    let first = next()?;
    let mut words = first.split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = Vec::new();
    loop {
        let line = next()?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    Ok(Asked { method, path, headers })
}

/// A CONNECT proxy that leads every host to one place, and remembers what it was asked.
pub struct Tunnel {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Tunnel {
    /// Leads to `place`, or refuses with `Err(status)`.
    pub fn start(place: Result<SocketAddr, u16>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let seen = asked.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let seen = seen.clone();
                std::thread::spawn(move || {
                    let Ok(request) = read_request(&client) else { return };
                    seen.lock().unwrap().push(request);
                    let status = place.err().unwrap_or(200);
                    let _ = (&client).write_all(format!("HTTP/1.1 {status} x\r\n\r\n").as_bytes());
                    let Ok(place) = place else { return };
                    let server = TcpStream::connect(place).unwrap();
                    let (a, b) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                    std::thread::spawn(move || relay(a, b));
                    relay(server, client);
                });
            }
        });
        Self { address, asked }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn relay(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(std::net::Shutdown::Write);
}
