//! Hash maps and hasher states with secret keys. All library crates take them from this module.
//!
//! Outside of browsers, these are the standard library's and foldhash's own types. On wasm32-unknown-unknown, both
//! derive their keys from addresses, which are the same in each run of a module, so the author of a profile could
//! prepare collisions. There, the keys come from the browser's random source.
//!
//! The maps are defined here too, because the standard library's maps default to its own state. Create them with
//! `default()`: `new()` only exists for the standard state.

#[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
mod system {
    pub use std::collections::{HashMap, HashSet};
    pub use std::hash::RandomState;

    pub use foldhash::fast::RandomState as FastState;
    pub use foldhash::quality::RandomState as QualityState;
}

#[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
mod system {
    use std::hash::{BuildHasher, Hasher};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use foldhash::{SharedSeed, fast, quality};
    use siphasher::sip::SipHasher13;

    /// A hash map with secret keys.
    pub type HashMap<K, V, S = RandomState> = std::collections::HashMap<K, V, S>;
    /// A hash set with secret keys.
    pub type HashSet<T, S = RandomState> = std::collections::HashSet<T, S>;

    /// The secret keys and seed of all states.
    struct HashSecret {
        keys: [u64; 2],
        seed: SharedSeed,
    }

    /// Returns the secret, which is requested from the browser once. Every page and worker has a random source. If it
    /// fails, the call panics, as the standard library does on other systems.
    #[allow(clippy::expect_used)]
    fn secret() -> &'static HashSecret {
        static SECRET: OnceLock<HashSecret> = OnceLock::new();
        SECRET.get_or_init(|| {
            let number = || getrandom::u64().expect("the browser gives random numbers");
            HashSecret { keys: [number(), number()], seed: SharedSeed::from_u64(number()) }
        })
    }

    /// A state like the standard library's: SipHash-1-3, with different keys for each state.
    #[derive(Clone, Debug)]
    pub struct RandomState {
        keys: [u64; 2],
    }

    impl RandomState {
        /// Creates a state with new keys.
        pub fn new() -> RandomState {
            // A counter gives each state different keys, as in the standard library. Two states therefore hash the same
            // value differently.
            static COUNT: AtomicU64 = AtomicU64::new(0);
            let [k0, k1] = secret().keys;
            RandomState { keys: [k0.wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed)), k1] }
        }
    }

    impl Default for RandomState {
        fn default() -> RandomState {
            RandomState::new()
        }
    }

    impl BuildHasher for RandomState {
        type Hasher = SipHasher13;

        #[inline]
        fn build_hasher(&self) -> SipHasher13 {
            SipHasher13::new_with_keys(self.keys[0], self.keys[1])
        }
    }

    /// Defines a foldhash state with the secret seed and its own per-state seed.
    macro_rules! state {
        ($name:ident, $module:ident) => {
            /// A foldhash state with secret seeds.
            #[derive(Clone, Debug)]
            pub struct $name($module::SeedableRandomState);

            impl Default for $name {
                fn default() -> $name {
                    let state_seed = RandomState::new().build_hasher().finish();
                    $name($module::SeedableRandomState::with_seed(state_seed, &secret().seed))
                }
            }

            impl BuildHasher for $name {
                type Hasher = $module::FoldHasher<'static>;

                #[inline(always)]
                fn build_hasher(&self) -> Self::Hasher {
                    self.0.build_hasher()
                }
            }
        };
    }

    state!(FastState, fast);
    state!(QualityState, quality);
}

pub use system::{FastState, HashMap, HashSet, QualityState, RandomState};
