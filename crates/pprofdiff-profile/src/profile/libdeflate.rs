//! One gzip member inflated by libdeflate: the engine's only unsafe code.
//!
//! libdeflate takes two thirds of zlib-rs's time (benches/README.md), but wants all of the input and a buffer for all
//! of the output at once. Its safe binding, `libdeflater`, does not tell where in the input a member ended, without
//! which further members, or bytes that belong to nothing, would go unseen; hence this call of our own.
//!
//! What is unsafe here: a decompressor is made, used and freed by its one owner; the buffers are slices, which
//! libdeflate is told the lengths of, and it writes to no more than that.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr::NonNull;

use libdeflate_sys::{
    libdeflate_alloc_decompressor, libdeflate_decompressor, libdeflate_free_decompressor,
    libdeflate_gzip_decompress_ex, libdeflate_result_LIBDEFLATE_SUCCESS,
};

/// Owns what libdeflate keeps while it inflates: tables, about 11 kB.
struct Decompressor(NonNull<libdeflate_decompressor>);

impl Decompressor {
    /// `None` if there is no memory.
    fn new() -> Option<Decompressor> {
        // SAFETY: no obligations; it returns null or what `drop` frees.
        NonNull::new(unsafe { libdeflate_alloc_decompressor() }).map(Decompressor)
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: it came from `libdeflate_alloc_decompressor`, and is not shared.
        unsafe { libdeflate_free_decompressor(self.0.as_ptr()) }
    }
}

/// Inflates the gzip member that `input` begins with into the front of `out`: how many bytes of each it took, or `None`
/// if the member is damaged or does not fit. Its checksum and length are checked.
pub(super) fn gunzip_member(input: &[u8], out: &mut [u8]) -> Option<(usize, usize)> {
    let decompressor = Decompressor::new()?;
    let (mut read, mut written) = (0, 0);
    // SAFETY: `decompressor` is alive and used by this call alone; `input` is valid for reads and `out` for writes of
    // the lengths that are given; being slices one of which is exclusive, they do not overlap. `read` and `written` are
    // ours.
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
