//! Tests of estimated stacks.
