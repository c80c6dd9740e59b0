//! How long one inference may take: a base, a share per token, scaled by measured speed, under a cap.

use std::time::Duration;

use crate::manifest::Model;

/// The bound of one run: `base_s + tokens * ms_per_token / 1000 * default_tps / measured`, at most `cap_s`.
/// Without a measurement the default speed stands, and the factor is one.
pub fn of(model: &Model, tokens: u32, measured_tps: Option<f64>) -> Duration {
    let tps = measured_tps.unwrap_or(model.default_tps);
    let seconds = model.base_s + f64::from(tokens) * model.ms_per_token / 1000.0 * model.default_tps / tps;
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
            ("scout", 80, None, 34.0),
            ("sage", 80, None, 53.0),
            // Half as fast as the default: twice the share of the tokens; twice as fast: half of it.
            ("scout", 80, Some(17.0), 38.0),
            ("scout", 80, Some(68.0), 32.0),
            ("scout", 16_384, None, 150.0),
            ("sage", 16_384, None, 300.0),
            ("scout", 1, Some(0.01), 150.0),
        ];
        for (role, tokens, tps, seconds) in cases {
            let budget = of(manifest.role(role).unwrap(), tokens, tps);
            assert_eq!(budget, Duration::from_secs_f64(seconds), "{role} {tokens} {tps:?}");
        }
    }
}
