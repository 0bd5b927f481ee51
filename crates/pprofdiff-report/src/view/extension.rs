//! Views of crates above this one. A [`Request`](crate::Request) holds such a view with its options, without knowing its
//! type.

use std::any::Any;
use std::fmt::Debug;
use std::sync::LazyLock;

use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::report::Report;
use crate::view::{View, ViewContext, ViewInput, ViewSpec};
use pprofdiff::{Error, LoadOptions, Result};
use pprofdiff_series::Series;

/// A view of a crate above this one, with its options. [`View::extension`] wraps it.
pub trait ExtensionView: Debug + Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Returns the descriptor, see [`ViewSpec::extension`].
    fn spec() -> &'static ViewSpec;

    /// Returns the maximum number of rows for modification, or `None` if the view has no limit.
    fn limit_mut(&mut self) -> Option<&mut Option<usize>> {
        None
    }

    /// Computes the answer for a diff or a profile.
    ///
    /// # Errors
    /// Fails if the view is a view of many builds, and where the view fails.
    fn answer(&self, _: &ViewContext<'_>) -> Result<Report> {
        Err(Self::spec().needs_builds())
    }

    /// Computes the answer for many builds.
    ///
    /// # Errors
    /// Fails if the view is a view of a diff, and where the view fails.
    fn answer_series(&self, _: &Series, _: &LoadOptions) -> Result<Report> {
        Err(Self::spec().needs_diff())
    }
}

/// An [`ExtensionView`] of any type.
///
/// It is serialized as its name and its options. After deserialization, only a registry knows the view's type; until
/// [`Registry::resolve`](crate::Registry::resolve) restores it, the view has no answer.
#[derive(Debug)]
pub struct AnyView(Box<dyn ErasedView>);

/// The methods of an [`ExtensionView`] without its type.
trait ErasedView: Any + Debug + Send + Sync {
    fn spec(&self) -> &'static ViewSpec;
    fn limit_mut(&mut self) -> Option<&mut Option<usize>>;
    fn answer(&self, context: &ViewContext<'_>) -> Result<Report>;
    fn answer_series(&self, series: &Series, load: &LoadOptions) -> Result<Report>;
    fn boxed_clone(&self) -> Box<dyn ErasedView>;
    fn equals(&self, other: &dyn Any) -> bool;
    fn stored(&self) -> serde_json::Result<StoredView>;
}

impl<T: ExtensionView> ErasedView for T {
    fn spec(&self) -> &'static ViewSpec {
        T::spec()
    }

    fn limit_mut(&mut self) -> Option<&mut Option<usize>> {
        ExtensionView::limit_mut(self)
    }

    fn answer(&self, context: &ViewContext<'_>) -> Result<Report> {
        ExtensionView::answer(self, context)
    }

    fn answer_series(&self, series: &Series, load: &LoadOptions) -> Result<Report> {
        ExtensionView::answer_series(self, series, load)
    }

    fn boxed_clone(&self) -> Box<dyn ErasedView> {
        Box::new(self.clone())
    }

    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>().is_some_and(|other| self == other)
    }

    fn stored(&self) -> serde_json::Result<StoredView> {
        match (self as &dyn Any).downcast_ref::<StoredView>() {
            Some(stored) => Ok(stored.clone()),
            None => Ok(StoredView { name: T::spec().name.to_owned(), options: serde_json::to_string(self)? }),
        }
    }
}

/// A deserialized view whose type is not known yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredView {
    name: String,
    /// The options as JSON, because not every format can be read without knowing the type.
    options: String,
}

impl StoredView {
    fn unresolved(&self) -> Error {
        Error::query(format!("the view {:?} is not resolved; see Registry::resolve", self.name))
    }
}

impl ExtensionView for StoredView {
    fn spec() -> &'static ViewSpec {
        static SPEC: LazyLock<ViewSpec> =
            LazyLock::new(|| ViewSpec { name: "stored", input: ViewInput::SeveralTypes, ..ViewSpec::BASE });
        &SPEC
    }

    fn answer(&self, _: &ViewContext<'_>) -> Result<Report> {
        Err(self.unresolved())
    }

    fn answer_series(&self, _: &Series, _: &LoadOptions) -> Result<Report> {
        Err(self.unresolved())
    }
}

impl AnyView {
    /// Returns the view as type `T` from its options as JSON, for [`ViewSpec::extension`].
    fn restore<T: ExtensionView>(options: &str) -> serde_json::Result<AnyView> {
        serde_json::from_str(options).map(|view: T| AnyView(Box::new(view)))
    }

    pub(crate) fn spec(&self) -> &'static ViewSpec {
        self.0.spec()
    }

    pub(crate) fn limit_mut(&mut self) -> Option<&mut Option<usize>> {
        self.0.limit_mut()
    }

    pub(crate) fn answer(&self, context: &ViewContext<'_>) -> Result<Report> {
        self.0.answer(context)
    }

    pub(crate) fn answer_series(&self, series: &Series, load: &LoadOptions) -> Result<Report> {
        self.0.answer_series(series, load)
    }

    /// Returns the view with its type, if it was deserialized and is one of `views`.
    ///
    /// # Errors
    /// Fails if none of `views` has the name of the view, and if the view does not have these options.
    pub(crate) fn resolved(&self, views: &[&'static ViewSpec]) -> Result<AnyView> {
        let view: &dyn Any = &*self.0;
        let Some(StoredView { name, options }) = view.downcast_ref() else { return Ok(self.clone()) };
        let spec = views.iter().find(|spec| spec.name == *name);
        let Some(restore) = spec.and_then(|spec| spec.restore) else {
            return Err(Error::query(format!("there is no view {name:?} to resolve")));
        };
        restore(options).map_err(|e| Error::query(format!("the options of the view {name:?}: {e}")))
    }
}

impl Clone for AnyView {
    fn clone(&self) -> AnyView {
        AnyView(self.0.boxed_clone())
    }
}

impl PartialEq for AnyView {
    fn eq(&self, other: &AnyView) -> bool {
        self.0.equals(&*other.0)
    }
}

impl Serialize for AnyView {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        self.0.stored().map_err(S::Error::custom)?.serialize(to)
    }
}

impl<'de> Deserialize<'de> for AnyView {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<AnyView, D::Error> {
        StoredView::deserialize(from).map(|stored| AnyView(Box::new(stored))).map_err(D::Error::custom)
    }
}

impl ViewSpec {
    /// Returns the descriptor of a view of a crate above this one.
    pub const fn extension<T: ExtensionView>(name: &'static str, about: &'static str, input: ViewInput) -> ViewSpec {
        ViewSpec { name, about, input, restore: Some(AnyView::restore::<T>), ..ViewSpec::BASE }
    }
}

impl View {
    /// Wraps a view of a crate above this one.
    pub fn extension(view: impl ExtensionView) -> View {
        View::Extension(AnyView(Box::new(view)))
    }

    /// Returns a view of a crate above this one as its own type, or `None` if this is another view.
    pub fn downcast_ref<T: ExtensionView>(&self) -> Option<&T> {
        let View::Extension(AnyView(view)) = self else { return None };
        let view: &dyn Any = &**view;
        view.downcast_ref()
    }

    /// Returns a view of a crate above this one as its own type for modification, or `None` if this is another view.
    pub fn downcast_mut<T: ExtensionView>(&mut self) -> Option<&mut T> {
        let View::Extension(AnyView(view)) = self else { return None };
        let view: &mut dyn Any = &mut **view;
        view.downcast_mut()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Arc;

    use serde::{Deserialize, Serialize};

    use super::ExtensionView;
    use crate::registry::{Extension, Registry};
    use crate::request::Request;
    use crate::view::{View, ViewInput, ViewSpec};
    use pprofdiff::Diff;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Poem {
        lines: Option<usize>,
    }

    static POEM: ViewSpec = ViewSpec::extension::<Poem>("poem", "Write a poem", ViewInput::Builds);
    static POEMS: Extension = Extension { formats: &[], views: &[(&POEM, "tree")] };

    impl ExtensionView for Poem {
        fn spec() -> &'static ViewSpec {
            &POEM
        }

        fn limit_mut(&mut self) -> Option<&mut Option<usize>> {
            Some(&mut self.lines)
        }
    }

    #[test]
    fn a_view_from_above_survives_serialization_with_its_options() {
        let request = Request::default().asking(View::extension(Poem { lines: None }));
        let request = request.asking(request.view.clone().ordered(Default::default(), Some(3)));
        let stored: Request = serde_json::from_str(&serde_json::to_string(&request).unwrap()).unwrap();
        assert!(stored != request && Registry::standard().resolve(stored.clone()).is_err());
        // A stored view can be serialized again.
        let again: Request = serde_json::from_str(&serde_json::to_string(&stored).unwrap()).unwrap();
        let resolved = Registry::standard().with(&POEMS).resolve(again).unwrap();
        assert_eq!(resolved, request);
        assert_eq!(resolved.view.downcast_ref(), Some(&Poem { lines: Some(3) }));
        let profile = pprofdiff::from_bytes("a", b"main 1\n", &Default::default()).unwrap();
        let diff = Diff::of_profile(&Arc::new(profile)).unwrap();
        let error = |request: &Request| request.answer(&diff).unwrap_err().to_string();
        assert_eq!(error(&request), "poem is a view of many builds, not of a diff");
        assert!(error(&stored).contains("Registry::resolve"));
    }
}
