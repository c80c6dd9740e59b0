//! Writes small GGUF files for tests: any key, any tensor, laid out as the format says.
#![allow(dead_code, reason = "each test program uses its part")]

pub(crate) const U16: u32 = 2;
pub(crate) const U32: u32 = 4;
pub(crate) const I32: u32 = 5;
pub(crate) const F32: u32 = 6;
pub(crate) const STRING: u32 = 8;
pub(crate) const ARRAY: u32 = 9;

/// A file to be.
#[derive(Clone)]
pub(crate) struct GgufFile {
    version: u32,
    alignment: u64,
    keys: Vec<(Vec<u8>, u32, Vec<u8>)>,
    tensors: Vec<(Vec<u8>, Vec<u64>, u32, u64)>,
}

/// A file as bytes, and where its numbers are.
pub(crate) struct Written {
    pub(crate) bytes: Vec<u8>,
    /// Offset and width of every length, count, type, dimension and offset.
    pub(crate) numbers: Vec<(usize, usize)>,
    /// Where the tensor data begins.
    pub(crate) data: usize,
}

/// A string as the format has it.
pub(crate) fn string(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text].concat()
}

/// An array as the format has it.
pub(crate) fn array(kind: u32, items: &[Vec<u8>]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &(items.len() as u64).to_le_bytes(), &items.concat()].concat()
}

impl GgufFile {
    /// No keys, no tensors.
    pub(crate) fn bare() -> Self {
        Self { version: 3, alignment: 32, keys: Vec::new(), tensors: Vec::new() }
    }

    /// With an architecture and one tensor of 64 floats.
    pub(crate) fn small() -> Self {
        Self::bare().text("general.architecture", "llama").tensor("a.weight", &[8, 8], 0, 256)
    }

    pub(crate) fn key(mut self, name: &str, kind: u32, value: Vec<u8>) -> Self {
        self.keys.push((name.into(), kind, value));
        self
    }

    pub(crate) fn text(self, name: &str, value: &str) -> Self {
        self.key(name, STRING, string(value.as_bytes()))
    }

    pub(crate) fn alignment(mut self, alignment: u32) -> Self {
        self.alignment = alignment.into();
        self.key("general.alignment", U32, alignment.to_le_bytes().to_vec())
    }

    pub(crate) fn version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    /// The three keys of a part of a split model.
    pub(crate) fn split(self, number: u16, count: u16, tensors: i32) -> Self {
        self.key("split.no", U16, number.to_le_bytes().to_vec())
            .key("split.count", U16, count.to_le_bytes().to_vec())
            .key("split.tensors.count", I32, tensors.to_le_bytes().to_vec())
    }

    /// A tensor of `bytes` bytes, which the caller works out.
    pub(crate) fn tensor(mut self, name: &str, dimensions: &[u64], kind: u32, bytes: u64) -> Self {
        self.tensors.push((name.into(), dimensions.to_vec(), kind, bytes));
        self
    }

    /// Header and data; the data is a pattern without zeros.
    pub(crate) fn write(&self) -> Written {
        let mut out = Written { bytes: b"GGUF".to_vec(), numbers: Vec::new(), data: 0 };
        out.u32(self.version);
        out.u64(self.tensors.len() as u64);
        out.u64(self.keys.len() as u64);
        for (name, kind, value) in &self.keys {
            out.u64(name.len() as u64);
            out.bytes.extend_from_slice(name);
            out.u32(*kind);
            let at = out.bytes.len();
            match *kind {
                STRING => out.numbers.push((at, 8)),
                ARRAY => out.numbers.extend([(at, 4), (at + 4, 8)]),
                _ => out.numbers.push((at, value.len().min(8))),
            }
            out.bytes.extend_from_slice(value);
        }
        let mut offset = 0;
        for (name, dimensions, kind, bytes) in &self.tensors {
            out.u64(name.len() as u64);
            out.bytes.extend_from_slice(name);
            out.u32(u32::try_from(dimensions.len()).unwrap());
            for n in dimensions {
                out.u64(*n);
            }
            out.u32(*kind);
            out.u64(offset);
            offset += bytes.next_multiple_of(self.alignment);
        }
        let alignment = usize::try_from(self.alignment).unwrap();
        out.bytes.resize(out.bytes.len().next_multiple_of(alignment), 0);
        out.data = out.bytes.len();
        for (_, _, _, bytes) in &self.tensors {
            out.bytes.extend((0..*bytes).map(|n| u8::try_from(n % 251 + 1).unwrap()));
            out.bytes.resize(out.bytes.len().next_multiple_of(alignment), 0);
        }
        out
    }
}

impl Written {
    fn u32(&mut self, n: u32) {
        self.numbers.push((self.bytes.len(), 4));
        self.bytes.extend_from_slice(&n.to_le_bytes());
    }

    fn u64(&mut self, n: u64) {
        self.numbers.push((self.bytes.len(), 8));
        self.bytes.extend_from_slice(&n.to_le_bytes());
    }
}
