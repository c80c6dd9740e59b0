//! Tensor types: how many elements a block holds and how many bytes it takes.
//!
//! Source: `enum ggml_type` and the type traits of ggml 0.25.3 (github.com/ggml-org/llama.cpp, `ggml/include/ggml.h`).

/// A type whose size is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The format's name of it.
    pub name: &'static str,
    /// Elements in a block; the first dimension is a multiple of it.
    pub block: u64,
    /// Bytes of a block.
    pub bytes: u64,
}

/// What a type id stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// In use.
    Known(Layout),
    /// Was in use; engines refuse it.
    Removed(&'static str),
    /// Beyond this table.
    Unknown,
}

/// `(name, block, bytes)` by id; a block of 0 marks a removed type.
const TABLE: [(&str, u64, u64); 43] = [
    ("f32", 1, 4),
    ("f16", 1, 2),
    ("q4_0", 32, 18),
    ("q4_1", 32, 20),
    ("q4_2", 0, 0),
    ("q4_3", 0, 0),
    ("q5_0", 32, 22),
    ("q5_1", 32, 24),
    ("q8_0", 32, 34),
    ("q8_1", 32, 36),
    ("q2_K", 256, 84),
    ("q3_K", 256, 110),
    ("q4_K", 256, 144),
    ("q5_K", 256, 176),
    ("q6_K", 256, 210),
    ("q8_K", 256, 292),
    ("iq2_xxs", 256, 66),
    ("iq2_xs", 256, 74),
    ("iq3_xxs", 256, 98),
    ("iq1_s", 256, 50),
    ("iq4_nl", 32, 18),
    ("iq3_s", 256, 110),
    ("iq2_s", 256, 82),
    ("iq4_xs", 256, 136),
    ("i8", 1, 1),
    ("i16", 1, 2),
    ("i32", 1, 4),
    ("i64", 1, 8),
    ("f64", 1, 8),
    ("iq1_m", 256, 56),
    ("bf16", 1, 2),
    ("q4_0_4_4", 0, 0),
    ("q4_0_4_8", 0, 0),
    ("q4_0_8_8", 0, 0),
    ("tq1_0", 256, 54),
    ("tq2_0", 256, 66),
    ("iq4_nl_4_4", 0, 0),
    ("iq4_nl_4_8", 0, 0),
    ("iq4_nl_8_8", 0, 0),
    ("mxfp4", 32, 17),
    ("nvfp4", 64, 36),
    ("q1_0", 128, 18),
    ("q2_0", 64, 18),
];

/// What `id` stands for.
pub fn of(id: u32) -> Type {
    match usize::try_from(id).ok().and_then(|id| TABLE.get(id)) {
        None => Type::Unknown,
        Some(&(name, 0, _)) => Type::Removed(name),
        Some(&(name, block, bytes)) => Type::Known(Layout { name, block, bytes }),
    }
}

impl Layout {
    /// Bytes of a tensor of `elements`, whose first dimension was found to be a multiple of the block.
    pub fn size(&self, elements: u64) -> Option<u64> {
        (elements / self.block).checked_mul(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_types_are_removed_and_the_rest_have_bits_per_weight_in_bounds() {
        let removed: Vec<u32> = (0..43).filter(|id| matches!(of(*id), Type::Removed(_))).collect();
        assert_eq!(removed, [4, 5, 31, 32, 33, 36, 37, 38]);
        for id in 0..43 {
            if let Type::Known(layout) = of(id) {
                let bits = layout.bytes * 8;
                assert!(bits >= layout.block && bits <= layout.block * 64, "{layout:?}");
            }
        }
        assert_eq!(of(43), Type::Unknown);
        assert_eq!(of(u32::MAX), Type::Unknown);
    }

    #[test]
    fn a_size_that_does_not_fit_is_none() {
        let Type::Known(f64_layout) = of(28) else { panic!("f64 is known") };
        assert_eq!(f64_layout.size(3), Some(24));
        assert_eq!(f64_layout.size(u64::MAX / 4), None);
    }
}
