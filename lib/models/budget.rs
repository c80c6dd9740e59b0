//! How long one inference may take: a base, a share per token, scaled by measured speed, under a cap.

use std::time::Duration;

use crate::manifest::Model;

/// A prompt up to this many bytes is part of the base.
const SHORT_PROMPT: usize = 2 << 10;
/// So many bytes of a longer prompt cost what one token of the answer costs: four bytes to a token, and reading
/// is eight times as fast as writing (45 against 390 to 460 ms per token, a 135M model on two crowded cores).
const BYTES_AS_TOKEN: usize = 32;

/// The bound of one run: `base_s + n * ms_per_token / 1000 * default_tps / measured`, at most `cap_s`. `n` is the
/// tokens asked for, and one more for every 32 bytes of the prompt beyond 2 KiB. Without a measurement the default
/// speed stands, and the factor is one.
pub fn of(model: &Model, tokens: u32, prompt_bytes: usize, measured_tps: Option<f64>) -> Duration {
    let reading =
        u32::try_from(prompt_bytes.saturating_sub(SHORT_PROMPT) / BYTES_AS_TOKEN).unwrap_or(u32::MAX);
    let n = f64::from(tokens) + f64::from(reading);
    let tps = measured_tps.unwrap_or(model.default_tps);
    let seconds = model.base_s + n * model.ms_per_token / 1000.0 * model.default_tps / tps;
    Duration::try_from_secs_f64(seconds.min(model.cap_s)).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Manifest;

    #[test]
    fn budgets_follow_tokens_speed_and_cap() {
        let manifest =
            Manifest::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifest.json").as_ref()).unwrap();
        let cases = [
            // The specification's 30 s + n/20 and 45 s + n/10.
            ("scout", 80, 0, None, 34.0),
            ("sage", 80, 2048, None, 53.0),
            // Half as fast as the default: twice the share of the tokens; twice as fast: half of it.
            ("scout", 80, 0, Some(17.0), 38.0),
            ("scout", 80, 0, Some(68.0), 32.0),
            // 16 KiB of prompt: 448 tokens more.
            ("scout", 80, 16 << 10, None, 56.4),
            ("scout", 16_384, 0, None, 150.0),
            ("sage", 1, 1 << 20, None, 300.0),
            ("scout", 1, 0, Some(0.01), 150.0),
        ];
        for (role, tokens, bytes, tps, seconds) in cases {
            let budget = of(manifest.role(role).unwrap(), tokens, bytes, tps);
            assert_eq!(budget, Duration::from_secs_f64(seconds), "{role} {tokens} {tps:?}");
        }
    }
}
