//! Name resolution in a static program of glibc, which otherwise loads modules of the machine's own glibc and dies
//! where that is another version. musl has no such modules.
#![allow(unsafe_code, reason = "__nss_configure_lookup has no form in std")]

/// Resolves host names by `/etc/hosts` and DNS alone. To be called before the first thread.
pub fn by_files_and_dns() {
    #[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
    {
        unsafe extern "C" {
            fn __nss_configure_lookup(
                database: *const libc::c_char,
                services: *const libc::c_char,
            ) -> libc::c_int;
        }
        // SAFETY: both are NUL-terminated literals, which glibc copies; no other thread runs yet.
        unsafe { __nss_configure_lookup(c"hosts".as_ptr(), c"files dns".as_ptr()) };
    }
}
