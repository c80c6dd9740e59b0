//! The CPU's fingerprint: which instructions native code built here may use.

use files::digest::Hasher;

/// This machine's CPU as far as compiled code depends on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cpu {
    /// First 12 hexadecimal digits of the SHA-256 over the architecture and the sorted flags.
    pub id: String,
    /// The flags that name instructions, sorted, each once.
    pub flags: Vec<String>,
    /// The architecture as Rust and the kernel name it, `x86_64`.
    pub arch: &'static str,
}

impl Cpu {
    /// Whether the kernel reports a flag.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|f| f == flag)
    }

    /// The name under which an engine for any CPU of this architecture is kept.
    pub fn portable_id(&self) -> String {
        format!("portable-{}", self.arch)
    }
}

/// The CPU this process runs on, from `/proc/cpuinfo`.
pub fn cpu() -> Cpu {
    of(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default(), std::env::consts::ARCH)
}

/// Reads the text of `/proc/cpuinfo`. Only what every processor has counts, so that a thread may move.
fn of(cpuinfo: &str, arch: &'static str) -> Cpu {
    let mut common: Option<Vec<&str>> = None;
    for line in cpuinfo.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        // x86 says flags, ARM Features, RISC-V isa.
        if !matches!(key.trim(), "flags" | "Features" | "isa") {
            continue;
        }
        let mut here: Vec<_> = value.split_ascii_whitespace().collect();
        here.sort_unstable();
        common = Some(match common {
            None => here,
            Some(mut all) => {
                all.retain(|f| here.binary_search(f).is_ok());
                all
            }
        });
    }
    let x86 = matches!(arch, "x86_64" | "x86");
    let mut flags: Vec<String> = common
        .unwrap_or_default()
        .into_iter()
        .filter(|f| !x86 || instruction(f))
        .map(str::to_owned)
        .collect();
    flags.sort_unstable();
    flags.dedup();
    let mut hasher = Hasher::default();
    hasher.update(arch.as_bytes());
    for flag in &flags {
        hasher.update(b" ");
        hasher.update(flag.as_bytes());
    }
    let id = hasher.finish().hex()[..12].to_owned();
    Cpu { id, flags, arch }
}

/// Whether a flag of x86 names instructions that a compiler may emit. The others (mitigations, power
/// management, what the hypervisor offers) change with the kernel alone and would make a good engine look
/// foreign.
fn instruction(flag: &str) -> bool {
    const FAMILIES: &[&str] = &["sse", "ssse", "avx", "amx", "fma", "bmi", "xsave", "cmpccxadd", "sha", "sm"];
    const SINGLE: &[&str] = &[
        "3dnow",
        "3dnowprefetch",
        "abm",
        "adx",
        "aes",
        "apx",
        "clwb",
        "clzero",
        "cx16",
        "cx8",
        "cmov",
        "f16c",
        "fsgsbase",
        "gfni",
        "lahf_lm",
        "lzcnt",
        "mmx",
        "movbe",
        "movdir64b",
        "movdiri",
        "pclmulqdq",
        "pni",
        "popcnt",
        "prefetchi",
        "ptwrite",
        "rdpid",
        "rdrand",
        "rdseed",
        "serialize",
        "tbm",
        "vaes",
        "vpclmulqdq",
        "waitpkg",
        "wbnoinvd",
        "widekl",
        "xop",
    ];
    const NOT: &[&str] = &["smap", "smep", "smx", "smca", "sme", "sm_range"];
    !NOT.contains(&flag) && (SINGLE.contains(&flag) || FAMILIES.iter().any(|f| flag.starts_with(f)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const XEON: &str = "processor\t: 0\nflags\t\t: fpu sse2 avx2 amx_tile smep md_clear avx512f\n\n\
                        processor\t: 1\nflags\t\t: fpu sse2 avx2 amx_tile smep md_clear avx512f\n";

    #[test]
    fn a_kernel_update_does_not_make_the_engine_foreign() {
        let here = of(XEON, "x86_64");
        assert_eq!(here.flags, ["amx_tile", "avx2", "avx512f", "sse2"]);
        assert_eq!(here.id.len(), 12);
        let patched =
            XEON.replace("md_clear", "flush_l1d arch_capabilities bhi_ctrl").replace("smep", "smap");
        assert_eq!(of(&patched, "x86_64"), here);
        assert_eq!(of(&XEON.replace("fpu sse2 avx2", "avx2 sse2 fpu"), "x86_64"), here);
    }

    #[test]
    fn a_missing_instruction_makes_another_cpu() {
        let here = of(XEON, "x86_64");
        assert_ne!(of(&XEON.replace(" avx512f", ""), "x86_64").id, here.id);
        assert_ne!(of(XEON, "x86").id, here.id);
        let one_core_less = XEON.replacen(" avx512f", "", 1);
        assert!(!of(&one_core_less, "x86_64").has("avx512f"));
    }

    #[test]
    fn a_machine_that_tells_nothing_still_has_an_id() {
        assert_eq!(of("", "x86_64").id.len(), 12);
        assert_eq!(of("Features : fp asimd sve\n", "aarch64").flags, ["asimd", "fp", "sve"]);
    }
}
