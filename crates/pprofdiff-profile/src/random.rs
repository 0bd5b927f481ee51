//! Where hashers get their secret keys: the one place from which the library crates take hasher states and hash maps.
//!
//! Everywhere but in a browser these are the standard library's and foldhash's own. On wasm32-unknown-unknown both of
//! them make their keys of addresses, which are the same each time a module runs, so whoever writes a profile could
//! prepare collisions. There the keys are of the browser's random source.
//!
//! The maps are here since the standard library's take its own state unless told otherwise. They are made with
//! `default()`: `new()` is of its state alone.

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

    /// What all states are made of.
    struct Secret {
        keys: [u64; 2],
        seed: SharedSeed,
    }

    /// Asked of the browser once. It has an answer on every page and in every worker; without one there is no secret,
    /// and as in the standard library on any other system, nothing can go on.
    #[allow(clippy::expect_used)]
    fn secret() -> &'static Secret {
        static SECRET: OnceLock<Secret> = OnceLock::new();
        SECRET.get_or_init(|| {
            let number = || getrandom::u64().expect("the browser gives random numbers");
            Secret { keys: [number(), number()], seed: SharedSeed::from_u64(number()) }
        })
    }

    /// As the standard library's state: SipHash-1-3, with keys of its own for each state.
    #[derive(Clone, Debug)]
    pub struct RandomState {
        keys: [u64; 2],
    }

    impl RandomState {
        /// With new keys.
        pub fn new() -> RandomState {
            // A number more for each state, as in the standard library: what two states say of the same does not agree.
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

    /// A foldhash state with the secret seed, and one of its own.
    macro_rules! state {
        ($name:ident, $module:ident) => {
            /// As foldhash's state, with secret seeds.
            #[derive(Clone, Debug)]
            pub struct $name($module::SeedableRandomState);

            impl Default for $name {
                fn default() -> $name {
                    let own = RandomState::new().build_hasher().finish();
                    $name($module::SeedableRandomState::with_seed(own, &secret().seed))
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
