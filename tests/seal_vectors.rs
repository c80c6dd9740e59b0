//! Wycheproof's vectors for the algorithms of a signature line, called as `signing.rs` calls them.

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::{Sha256, Sha512};

fn bytes(case: &Value, key: &str) -> Vec<u8> {
    let digits = case[key].as_str().unwrap().as_bytes();
    digits.chunks(2).map(|c| u8::from_str_radix(std::str::from_utf8(c).unwrap(), 16).unwrap()).collect()
}

/// Every test, with the group it is in.
fn tests(text: &str) -> Vec<(Value, Value)> {
    let all: Value = serde_json::from_str(text).unwrap();
    let groups = all["testGroups"].as_array().unwrap().iter();
    groups.flat_map(|g| g["tests"].as_array().unwrap().iter().map(move |t| (g.clone(), t.clone()))).collect()
}

#[test]
fn hmac_sha256_accepts_exactly_the_valid_tags() {
    let (mut valid, mut invalid) = (0, 0);
    for (group, test) in tests(include_str!("vectors/wycheproof/hmac_sha256_test.json")) {
        let mut mac = Hmac::<Sha256>::new_from_slice(&bytes(&test, "key")).unwrap();
        mac.update(&bytes(&test, "msg"));
        let tag = bytes(&test, "tag");
        let good = test["result"] == "valid";
        // A signature line carries whole tags; a short one is what the group says it is, and never a whole one.
        if group["tagSize"] == 256 {
            assert_eq!(mac.verify_slice(&tag).is_ok(), good, "{test}");
        } else {
            assert!(mac.clone().verify_slice(&tag).is_err(), "{test}");
            assert_eq!(mac.verify_truncated_left(&tag).is_ok(), good, "{test}");
        }
        if good { valid += 1 } else { invalid += 1 }
    }
    assert!(valid > 50 && invalid > 50, "{valid} {invalid}");
}

#[test]
fn hkdf_sha512_derives_the_same_keys() {
    let mut count = 0;
    for (_, test) in tests(include_str!("vectors/wycheproof/hkdf_sha512_test.json")) {
        let size = usize::try_from(test["size"].as_u64().unwrap()).unwrap();
        let mut okm = vec![0; size];
        let expanded = Hkdf::<Sha512>::new(Some(&bytes(&test, "salt")), &bytes(&test, "ikm"))
            .expand(&bytes(&test, "info"), &mut okm);
        assert_eq!(expanded.is_ok(), test["result"] == "valid", "{test}");
        if expanded.is_ok() {
            assert_eq!(okm, bytes(&test, "okm"), "{test}");
            count += 1;
        }
    }
    assert!(count > 50, "{count}");
}
