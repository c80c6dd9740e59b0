//! musl's `pthread_setname_np`, which std calls in each thread that has a name, of that very thread: one system call.
//! musl's own can name other threads, through a path that it makes with `printf`: the only use of it in a program.
#![allow(unsafe_code, reason = "this name must be exported")]

use std::ffi::{c_char, c_int};

/// Names the calling thread, whatever `_thread` is; the kernel keeps 15 bytes.
// SAFETY: it is called with a name that ends in NUL, as the one that it replaces.
#[unsafe(no_mangle)]
extern "C" fn pthread_setname_np(_thread: libc::pthread_t, name: *const c_char) -> c_int {
    // SAFETY: PR_SET_NAME reads at most 16 bytes of a string that ends in NUL, and keeps no pointer to it.
    unsafe { libc::prctl(libc::PR_SET_NAME, name) }
}
