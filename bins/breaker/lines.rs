//! Lines out of a stream of bytes, in bounded memory: of a line that never ends only the beginning is held.

/// The longest line that is held whole; a verdict's first three fields are far shorter.
pub(crate) const LONGEST: usize = 64 << 10;

/// What a stream is made of.
#[derive(PartialEq, Debug)]
pub(crate) enum Piece<'a> {
    /// A whole line with its newline; the last of a stream may have none.
    Line(&'a [u8]),
    /// The first [`LONGEST`] bytes of a longer line.
    Head(&'a [u8]),
    /// What follows a head, to its newline or not yet.
    Rest(&'a [u8]),
}

/// Cuts a stream into pieces; put together they are the stream.
#[derive(Default)]
pub(crate) struct Lines {
    held: Vec<u8>,
    /// The head of the current line is out.
    long: bool,
}

impl Lines {
    /// Takes the next bytes and gives what is complete with them.
    pub(crate) fn feed<E>(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while !bytes.is_empty() {
            let end = bytes.iter().position(|b| *b == b'\n').map(|at| at + 1);
            if self.long {
                let (rest, after) = bytes.split_at(end.unwrap_or(bytes.len()));
                self.long = end.is_none();
                bytes = after;
                each(Piece::Rest(rest))?;
                continue;
            }
            let room = LONGEST - self.held.len();
            let (part, after) = bytes.split_at(end.unwrap_or(bytes.len()).min(room));
            bytes = after;
            self.held.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.held);
                each(Piece::Line(&line))?;
            } else if self.held.len() == LONGEST {
                self.long = true;
                let head = std::mem::take(&mut self.held);
                each(Piece::Head(&head))?;
            }
        }
        Ok(())
    }

    /// Gives the last line if the stream ended without a newline.
    pub(crate) fn end<E>(&mut self, mut each: impl FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        let line = std::mem::take(&mut self.held);
        if line.is_empty() { Ok(()) } else { each(Piece::Line(&line)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_are_the_stream_however_it_arrives() {
        let long = [vec![b'x'; 3 * LONGEST], b"y\n".to_vec()].concat();
        let exact = [vec![b'z'; LONGEST - 1], b"\n".to_vec()].concat();
        let stream = [b"a\n\nb\n".as_slice(), &long, &exact, b"end"].concat();
        for size in [1, 7, LONGEST - 1, LONGEST, LONGEST + 1, stream.len()] {
            let (mut lines, mut whole, mut heads, mut all) = (Lines::default(), Vec::new(), 0, Vec::new());
            let mut each = |piece: Piece<'_>| {
                match piece {
                    Piece::Line(line) => {
                        whole.push(line.len());
                        all.extend_from_slice(line);
                    }
                    Piece::Head(head) => {
                        heads += 1;
                        all.extend_from_slice(head);
                    }
                    Piece::Rest(rest) => all.extend_from_slice(rest),
                }
                Ok::<(), ()>(())
            };
            for bytes in stream.chunks(size) {
                lines.feed(bytes, &mut each).unwrap();
                assert!(lines.held.len() < LONGEST);
            }
            lines.end(&mut each).unwrap();
            assert_eq!((whole, heads), (vec![2, 1, 2, LONGEST, 3], 1), "{size}");
            assert!(all == stream, "{size}");
        }
    }
}
