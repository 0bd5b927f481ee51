//! Inflates one gzip member with libdeflate. This module contains the engine's only unsafe code.
//!
//! libdeflate takes two thirds of the time of zlib-rs, but needs all of the input and a buffer for all of the output at
//! once. benches/README.md lists the times of two operations with zlib-rs. libdeflate's safe binding, `libdeflater`,
//! does not return where in the input a member ends. Without that position, the engine would not notice further members
//! or trailing garbage, so this module calls the C function itself.
//!
//! The unsafe calls are sound for two reasons. Each decompressor has a single owner that creates, uses and frees it.
//! The buffers are slices, and libdeflate receives their lengths and never writes past them.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr::NonNull;

use libdeflate_sys::{
    libdeflate_alloc_decompressor, libdeflate_decompressor, libdeflate_free_decompressor,
    libdeflate_gzip_decompress_ex, libdeflate_result_LIBDEFLATE_SUCCESS,
};

/// The owner of a libdeflate decompressor, which consists of tables of about 11 kB.
struct Decompressor(NonNull<libdeflate_decompressor>);

impl Decompressor {
    /// Allocates a decompressor. Returns `None` if memory is insufficient.
    fn new() -> Option<Decompressor> {
        // SAFETY: The call is always allowed. It returns null or a pointer for `drop` to free.
        NonNull::new(unsafe { libdeflate_alloc_decompressor() }).map(Decompressor)
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: The pointer came from `libdeflate_alloc_decompressor`, and nothing else holds it.
        unsafe { libdeflate_free_decompressor(self.0.as_ptr()) }
    }
}

/// Inflates the gzip member at the start of `input` into the start of `out`. Returns the number of bytes read and
/// written, or `None` if the member is damaged or does not fit. libdeflate checks the member's checksum and length.
pub(super) fn gunzip_member(input: &[u8], out: &mut [u8]) -> Option<(usize, usize)> {
    let decompressor = Decompressor::new()?;
    let (mut read, mut written) = (0, 0);
    // SAFETY: `decompressor` is alive, and only this call uses it. `input` is valid for reads and `out` for writes of
    // the given lengths. They do not overlap, because `out` is an exclusive slice. `read` and `written` are local
    // variables.
    let result = unsafe {
        libdeflate_gzip_decompress_ex(
            decompressor.0.as_ptr(),
            input.as_ptr().cast::<c_void>(),
            input.len(),
            out.as_mut_ptr().cast::<c_void>(),
            out.len(),
            &mut read,
            &mut written,
        )
    };
    (result == libdeflate_result_LIBDEFLATE_SUCCESS).then_some((read, written))
}
