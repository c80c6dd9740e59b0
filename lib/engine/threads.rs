//! How many threads may run at once: the least of cores, affinity and cgroup quota.

/// At least one. The quota counts in whole CPUs, rounded down, of cgroup v1 and v2 alike (std reads both).
pub fn available() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    #[test]
    fn at_least_one_and_no_more_than_the_machine_has() {
        let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let processors = processors.lines().filter(|l| l.starts_with("processor")).count();
        assert!((1..=processors.max(1)).contains(&super::available()));
    }
}
