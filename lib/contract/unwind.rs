//! The unwinder's entry points, for programs that abort on a panic: there is nothing to unwind and, since they are
//! stripped, no name to print for a frame. Defining them here keeps libunwind and std's reader of debug
//! information out of every program, which is half of a small one.
//!
//! The names and signatures are those of "Itanium C++ ABI: Exception Handling", level I, and of GCC's extensions to it.
#![allow(unsafe_code, reason = "these names must be exported")]
#![allow(non_snake_case, reason = "these names are the ABI's")]

use std::ffi::{c_int, c_void};

/// `_URC_END_OF_STACK`.
const END_OF_STACK: c_int = 5;

/// A walk over no frame: the callback is never called.
// SAFETY: a walk that ends at once is a valid answer, and nothing is dereferenced.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Backtrace(_trace: *const c_void, _argument: *mut c_void) -> c_int {
    END_OF_STACK
}

/// Entry points that only an unwinder calls, and none runs in a program that aborts on a panic.
macro_rules! never_called {
    ($($name:ident)*) => {$(
        // SAFETY: it takes no argument from where the caller put them and does not return.
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> ! {
            // SAFETY: abort takes nothing and may be called at any time.
            unsafe { libc::abort() }
        }
    )*};
}

never_called! {
    _Unwind_DeleteException
    _Unwind_FindEnclosingFunction
    _Unwind_GetCFA
    _Unwind_GetDataRelBase
    _Unwind_GetIP
    _Unwind_GetIPInfo
    _Unwind_GetLanguageSpecificData
    _Unwind_GetRegionStart
    _Unwind_GetTextRelBase
    _Unwind_RaiseException
    _Unwind_Resume
    _Unwind_SetGR
    _Unwind_SetIP
}
