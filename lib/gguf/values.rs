//! The two keys of a sound header that a run needs: how long a context the model has, how it is talked to.

use std::path::Path;

use files::open;

use crate::keys::{self, STRING};
use crate::source::{Cursor, Opened, PIECE, Source, Trouble};

/// What a header says about how to run the model; nothing where it says nothing that can be read.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Values {
    /// Tokens the model was made for: `<architecture>.context_length`.
    pub context_length: Option<u64>,
    /// The template of a conversation, in Jinja: `tokenizer.chat_template`, at most 64 KiB.
    pub chat_template: Option<String>,
}

/// Reads the values of a file that [`crate::verify`] found sound.
pub fn values(path: &Path) -> Values {
    let mut values = Values::default();
    if let Ok((file, meta)) = open::regular(path) {
        // A header that changed since it was proven ends the walk; what was read until then stands.
        let _ = walk(&Opened { file: &file, size: meta.len() }, &mut values);
    }
    values
}

fn walk(source: &dyn Source, values: &mut Values) -> Result<(), Trouble> {
    let mut cursor = Cursor::new(source);
    // magic, version and the count of tensors
    cursor.skip(16)?;
    for _ in 0..cursor.u64()? {
        let length = cursor.u64()?;
        let name = keys::name("key", &mut cursor, length)?;
        let kind = cursor.u32()?;
        if kind == STRING && name == "tokenizer.chat_template" {
            let length = usize::try_from(cursor.u64()?).unwrap_or(usize::MAX);
            if length > PIECE {
                cursor.skip(length as u64)?;
                continue;
            }
            let text = std::str::from_utf8(cursor.take(length)?).ok();
            values.chat_template = text.filter(|t| !t.is_empty()).map(str::to_owned);
        } else if kind == keys::UINT32 && name.ends_with(".context_length") {
            values.context_length = Some(u64::from(cursor.u32()?)).filter(|n| *n > 0);
        } else {
            keys::value(&mut cursor, kind, &name)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &[u8]) -> Vec<u8> {
        [&(text.len() as u64).to_le_bytes()[..], text].concat()
    }

    fn header(keys: &[(&str, u32, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(3_u32.to_le_bytes());
        bytes.extend(0_u64.to_le_bytes());
        bytes.extend((keys.len() as u64).to_le_bytes());
        for (name, kind, value) in keys {
            bytes.extend(string(name.as_bytes()));
            bytes.extend(kind.to_le_bytes());
            bytes.extend(value);
        }
        bytes
    }

    fn read(bytes: &[u8]) -> Values {
        let mut values = Values::default();
        let _ = walk(&bytes, &mut values);
        values
    }

    #[test]
    fn template_and_context_are_found_among_other_keys() {
        let array = [&8_u32.to_le_bytes()[..], &2_u64.to_le_bytes(), &string(b"a"), &string(b"bc")].concat();
        let template = (("tokenizer.chat_template", STRING, string(b"{{ x }}")), Some("{{ x }}".to_owned()));
        let context = ("llama.context_length", 4, 8192_u32.to_le_bytes().to_vec());
        let all = [("tokenizer.ggml.tokens", 9, array), context.clone(), template.0.clone()];
        assert_eq!(read(&header(&all)), Values { context_length: Some(8192), chat_template: template.1 });
        assert_eq!(read(&header(&[context])), Values { context_length: Some(8192), chat_template: None });
        let long = ("tokenizer.chat_template", STRING, string(&vec![b'x'; PIECE + 1]));
        assert_eq!(read(&header(&[long])), Values::default());
    }

    #[test]
    fn a_header_that_ends_too_soon_gives_what_was_read() {
        let bytes = header(&[
            ("llama.context_length", 4, 8192_u32.to_le_bytes().to_vec()),
            ("tokenizer.chat_template", STRING, string(b"{{ x }}")),
        ]);
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end]).chat_template, None, "{end}");
        }
        assert_eq!(read(&bytes[..bytes.len() - 1]).context_length, Some(8192));
    }
}
