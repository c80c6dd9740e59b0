//! The box's own signature on its manifest: HMAC-SHA-256 (RFC 2104) with a key that never leaves the box.
//!
//! Message: `SWR1`, then length (u64, big-endian) and bytes of a type string, then length and bytes of the body.
//! Key: HKDF-SHA-512 (RFC 5869) of `signing.key`, salt `swr/signing/v1`, info `manifest`.

use std::fs::Metadata;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use contract::{Error, Fix, exit, message};
use files::digest::Sha;
use files::open::Refusal as NotOpened;
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Sha256, Sha512};
use workspace::{Signature, Signed};
use zeroize::Zeroizing;

/// The algorithm's name in a signature line.
pub const ALGORITHM: &str = "hmac-sha256";
const TYPE: &[u8] = b"swr/manifest/v1";
const SECRET: usize = 32;

/// The secret of this box.
pub struct SigningKey(Zeroizing<[u8; SECRET]>);

/// Who beside us may read the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Nobody.
    Closed,
    /// Its mode lets others, and a directory above it, ours or root's, lets none through.
    OutOfReach(u32),
    /// Others may have.
    Open(u32),
}

impl Access {
    fn of(path: &Path, meta: &Metadata) -> Self {
        let mode = meta.mode() & 0o7777;
        if mode.trailing_zeros() >= 6 {
            return Self::Closed;
        }
        let me = rustix::process::geteuid().as_raw();
        // An access list that lets somebody through shows in the group's bits, which are its mask.
        let lets_none_through = |dir: &Path| {
            dir.metadata().is_ok_and(|m| m.mode() & 0o011 == 0 && (m.uid() == me || m.uid() == 0))
        };
        let real = path.canonicalize().unwrap_or_default();
        let out_of_reach = meta.nlink() == 1 && real.ancestors().skip(1).any(lets_none_through);
        if out_of_reach { Self::OutOfReach(mode) } else { Self::Open(mode) }
    }
}

/// Why a manifest is not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It has no signature line at all.
    Unsigned,
    /// This box has no key to check with.
    NoKey,
    /// It is signed, but not by this box's key.
    OtherKey,
    /// A line names this box's key and does not fit the bytes.
    Altered,
}

impl Refusal {
    /// In words, for a verdict's detail.
    pub fn words(self) -> &'static str {
        match self {
            Self::Unsigned => "the manifest is not signed",
            Self::NoKey => "this box has no signing key to check it with",
            Self::OtherKey => "the manifest is signed by another box's key",
            Self::Altered => "the manifest was altered after it was signed",
        }
    }
}

impl SigningKey {
    /// Reads the key file and says who else may; `None` when there is none. A key that another could have put there is none
    /// either, but an error of its own, 4: it must be a regular file of 32 bytes, no link, ours, and where others get to
    /// it not theirs to write.
    pub fn read(path: &Path) -> Result<Option<(Self, Access)>, Error> {
        let name = message::quoted(path.as_os_str());
        let failed = |cause: &io::Error| Error::io("read", path.as_os_str(), cause);
        let refuse = |what: &str, hint: &str| {
            Error::new(exit::swr::MANIFEST, format!("the signing key {name} {what}")).hint(hint)
        };
        let anew = "move it aside; swr sign makes a new key and signs again";
        let (mut file, meta) = match files::open::no_link(path) {
            Ok(opened) => opened,
            Err(NotOpened::NotAFile(what)) => return Err(refuse(&format!("is {}", what.words()), anew)),
            Err(NotOpened::Io(cause)) => match cause.raw_os_error() {
                Some(libc::ENOENT) => return Ok(None),
                Some(libc::ELOOP) => return Err(refuse("is a link", anew)),
                _ => return Err(Error { hint: workspace::read::way_in(path, &cause), ..failed(&cause) }),
            },
        };
        if meta.size() != SECRET as u64 {
            return Err(refuse(&format!("has {} bytes instead of {SECRET}", meta.size()), anew));
        }
        if meta.uid() != rustix::process::geteuid().as_raw() {
            let theirs =
                "run this as that user; if that is a stranger, move it aside and swr sign makes a new key";
            return Err(refuse(&format!("belongs to user {}", meta.uid()), theirs));
        }
        let access = Access::of(path, &meta);
        if let Access::Open(mode) = access
            && mode & 0o022 != 0
        {
            return Err(refuse(
                &format!("is open to others, mode {mode:04o}: they may have replaced it"),
                anew,
            ));
        }
        let mut secret = Zeroizing::new([0; SECRET]);
        file.read_exact(&mut *secret).map_err(|cause| failed(&cause))?;
        Ok(Some((Self(secret), access)))
    }

    /// Makes a new key at `path`, 0600 from creation, appearing whole. An existing file is never replaced: a key that
    /// another made meanwhile is then the box's key.
    pub fn create(fix: &Fix, path: &Path) -> Result<Self, Error> {
        let mut secret = Zeroizing::new([0; SECRET]);
        getrandom::fill(&mut *secret)
            .map_err(|cause| Error::new(exit::IO, format!("cannot get random bytes: {cause}")))?;
        let write = || {
            let mut file = files::atomic::begin(fix, path)?;
            file.write_all(&*secret)?;
            file.commit_new(0o600)
        };
        let failed = |cause: &io::Error| workspace::read::unwritable(path, cause);
        match write() {
            Ok(()) => Ok(Self(secret)),
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
                Self::read(path)?.map(|(key, _)| key).ok_or_else(|| failed(&cause))
            }
            Err(cause) => Err(failed(&cause)),
        }
    }

    /// Closes the key file to others, through a descriptor.
    pub fn close(_fix: &Fix, path: &Path) -> io::Result<()> {
        match files::open::no_link(path) {
            Ok((file, _)) => file.set_permissions(std::fs::Permissions::from_mode(0o600)),
            Err(NotOpened::Io(cause)) => Err(cause),
            Err(NotOpened::NotAFile(what)) => Err(io::Error::other(what.words())),
        }
    }

    /// Which key this is, without telling it: 16 hexadecimal digits.
    pub fn id(&self) -> String {
        Sha(*self.derive(b"key-id")).hex()[..16].to_owned()
    }

    /// The signature line for these exact bytes.
    pub fn sign(&self, body: &[u8]) -> Signature {
        let tag = self.mac(body).finalize().into_bytes();
        Signature { algorithm: ALGORITHM.into(), key: self.id(), value: Sha(tag.into()).hex() }
    }

    /// Whether one signature line is this key's over exactly these bytes.
    pub fn check(&self, signed: Signed) -> Result<(), Refusal> {
        if signed.signatures.is_empty() {
            return Err(Refusal::Unsigned);
        }
        let id = self.id();
        let mut refusal = Refusal::OtherKey;
        for line in signed.signatures.iter().filter(|l| l.algorithm == ALGORITHM && l.key == id) {
            let tag = Sha::from_hex(&line.value).ok_or(Refusal::Altered)?;
            if self.mac(signed.body).verify_slice(&tag.0).is_ok() {
                return Ok(());
            }
            refusal = Refusal::Altered;
        }
        Err(refusal)
    }

    fn mac(&self, body: &[u8]) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&*self.derive(b"manifest")).expect("HMAC takes any key length");
        mac.update(b"SWR1");
        for part in [TYPE, body] {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac
    }

    fn derive(&self, info: &[u8]) -> Zeroizing<[u8; 32]> {
        let mut key = Zeroizing::new([0; 32]);
        Hkdf::<Sha512>::new(Some(b"swr/signing/v1"), &*self.0)
            .expand(info, &mut *key)
            .expect("32 bytes are within HKDF's bound");
        key
    }
}

#[cfg(test)]
mod tests {
    use workspace::Manifest;

    use super::*;

    const BODY: &str = "{\"swr\":1,\"seq\":1,\"created\":\"\",\"signer\":\"\",\"root\":\"~\"}\n";

    fn key(byte: u8) -> SigningKey {
        SigningKey(Zeroizing::new([byte; SECRET]))
    }

    fn signed(by: &SigningKey, body: &str) -> Vec<u8> {
        format!("{body}{}\n", by.sign(body.as_bytes()).to_json()).into_bytes()
    }

    #[test]
    fn only_the_signed_bytes_are_accepted() {
        let mine = key(1);
        let good = signed(&mine, BODY);
        assert_eq!(mine.check(Manifest::parse(&good).unwrap().signed()), Ok(()));
        assert_eq!(key(2).check(Manifest::parse(&good).unwrap().signed()), Err(Refusal::OtherKey));
        assert_eq!(mine.check(Manifest::parse(BODY.as_bytes()).unwrap().signed()), Err(Refusal::Unsigned));
        let mut accepted = 0;
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                if Manifest::parse(&bad).is_ok_and(|m| mine.check(m.signed()).is_ok()) {
                    // A hexadecimal digit in the other case is the same tag.
                    assert!(bad.eq_ignore_ascii_case(&good), "byte {at}");
                    accepted += 1;
                }
            }
        }
        assert!(accepted < 64, "{accepted}");
    }

    #[test]
    fn a_signature_moved_to_another_body_does_not_fit() {
        let mine = key(1);
        let other = BODY.replace("\"seq\":1", "\"seq\":2");
        let forged = format!("{other}{}\n", mine.sign(BODY.as_bytes()).to_json());
        assert_eq!(mine.check(Manifest::parse(forged.as_bytes()).unwrap().signed()), Err(Refusal::Altered));
    }
}
