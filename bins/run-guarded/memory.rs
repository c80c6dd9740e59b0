//! Whether the kernel killed something for want of memory.

use std::fs;

/// How many processes the kernel has killed so far, as far as this process may know: of its cgroup (version 2 and
/// 1) and of the machine. Two readings that differ are the evidence.
pub(crate) fn kills() -> u64 {
    let mut count = counter(&read("/proc/vmstat"));
    for line in read("/proc/self/cgroup").lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        if controllers.is_empty() {
            count += group("/sys/fs/cgroup", path, "memory.events");
        } else if controllers.split(',').any(|c| c == "memory") {
            count += group("/sys/fs/cgroup/memory", path, "memory.oom_control");
        }
    }
    count
}

/// The counter of one group; in a container the path is the host's and the mount itself is the group.
fn group(mount: &str, path: &str, file: &str) -> u64 {
    let own = read(&format!("{mount}{path}/{file}"));
    counter(&if own.is_empty() { read(&format!("{mount}/{file}")) } else { own })
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The value behind the word `oom_kill`.
fn counter(text: &str) -> u64 {
    let value = text.lines().find_map(|l| l.strip_prefix("oom_kill ")).and_then(|v| v.trim().parse().ok());
    value.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        assert_eq!(counter("low 0\noom 3\noom_kill 2\noom_group_kill 1\n"), 2);
        assert_eq!(counter("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n"), 7);
        assert_eq!(counter("pgfault 1\n"), 0);
        assert_eq!(counter(""), 0);
    }
}
