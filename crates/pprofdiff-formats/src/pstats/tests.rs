//! Tests of the reader of cProfile.
