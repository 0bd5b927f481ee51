//! The texts of frames with their classes, such as system or program, and the frames whose presence in a profile is
//! random. `runs` excludes these frames from tests of single frames.

use std::sync::Arc;

use crate::diff::Frames;
use crate::diff::matching::canonical_of;
use crate::diff::top::LeftOut;
use crate::runtimes::{Asked, Class, Runtime, UserRules, classify, is_library};
use pprofdiff_profile::cancellation::checkpointed;
use pprofdiff_profile::random::HashMap;

/// The distinct texts of frames, with their classes.
pub struct FrameClasses {
    /// The runtime of the program.
    pub runtime: &'static Runtime,
    /// The distinct texts.
    pub texts: Vec<Arc<str>>,
    /// By text.
    pub classes: Vec<Class>,
    /// By frame: the number of its text.
    pub frame_texts: Vec<u32>,
}

impl std::fmt::Debug for FrameClasses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameClasses").finish_non_exhaustive()
    }
}

impl FrameClasses {
    /// Classifies the texts of all frames. With [`Asked::LeftOut`], skips everything that
    /// [`by_chance`] does not need.
    pub fn classify(frames: &Frames, user_rules: &UserRules, scope: Asked) -> FrameClasses {
        let mut numbers: HashMap<u32, u32> = HashMap::default();
        let mut texts: Vec<Arc<str>> = Vec::with_capacity(frames.len());
        let mut frame_texts = Vec::with_capacity(frames.len());
        // By file: true if it belongs to a library. By text: true if a function with this name is outside libraries.
        let mut libraries: HashMap<u32, bool> = HashMap::default();
        let mut is_outside: Vec<bool> = Vec::new();
        for frame in checkpointed(0..frames.len() as u32) {
            let (name, file) = frames.texts_of(frame);
            let number = match numbers.get(&name) {
                Some(&number) => number,
                None => {
                    let text = frames.short(name);
                    let nameless = text.is_empty();
                    texts.push(if nameless { frames.label(frame) } else { text }.into());
                    is_outside.push(false);
                    let number = texts.len() as u32 - 1;
                    if !nameless {
                        numbers.insert(name, number);
                    }
                    number
                }
            };
            is_outside[number as usize] |=
                scope == Asked::All && !*libraries.entry(file).or_insert_with(|| is_library(&frames.short(file)));
            frame_texts.push(number);
        }
        let (runtime, mut classes) = classify(&texts, user_rules, scope);
        classes.iter_mut().zip(is_outside).for_each(|(class, is_outside)| class.program &= is_outside);
        // Function names in Python lack the module, so only the file shows that a function belongs to a library.
        if scope == Asked::All && runtime.name == "python" {
            let library_functions = frames.library_functions(is_library);
            let is_library_function = |text: &Arc<str>| library_functions.contains(text.as_bytes());
            classes.iter_mut().zip(&texts).for_each(|(class, text)| class.program &= !is_library_function(text));
        }
        texts.shrink_to_fit();
        FrameClasses { runtime, texts, classes, frame_texts }
    }
}

/// Returns, by frame, why its presence in a profile is random, if it is. Profiling itself adds some frames. In some
/// languages, it is random which of several inlined library functions a profile shows: the second result is true for
/// these languages.
pub fn by_chance(frames: &Frames) -> crate::Result<(Vec<Option<LeftOut>>, bool)> {
    let FrameClasses { runtime, texts, classes, frame_texts } =
        FrameClasses::classify(frames, &UserRules::default(), Asked::LeftOut);
    // Texts with the same canonical name are one function, so they share their classes.
    let names: Vec<_> = checkpointed(&texts).map(|text| canonical_of(text).name).collect();
    let mut class_of: HashMap<&str, Class> = HashMap::default();
    for (name, class) in names.iter().zip(classes) {
        let shared = class_of.entry(name).or_default();
        shared.system |= class.system;
        shared.artefact |= class.artefact;
    }
    let why = |class: Class| match class {
        Class { artefact: true, .. } => Some(LeftOut::Profiling),
        Class { system: true, .. } if runtime.unstable_inlining => Some(LeftOut::Inlining),
        _ => None,
    };
    let flickers = runtime.unstable_inlining || runtime.jit_inlining;
    let why_of: Vec<Option<LeftOut>> = names.iter().map(|name| why(class_of[&**name])).collect();
    Ok((frame_texts.iter().map(|&text| why_of[text as usize]).collect(), flickers))
}
