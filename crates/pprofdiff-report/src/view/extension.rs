//! Views that are a type of their own: those of crates above this one, and new views of this crate. A
//! [`Request`](crate::Request) holds such a view with its options, without knowing its type.

use std::any::Any;
use std::fmt::Debug;
use std::sync::LazyLock;

use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::report::Report;
use crate::view::{View, ViewContext, ViewInput, ViewSpec};
use pprofdiff::{Error, LoadOptions, Result, Sort};
use pprofdiff_series::Series;

/// A view with its options. [`View::extension`] wraps it. A new view is one file with such a type and its descriptor, and
/// one row in the table of views.
pub trait ExtensionView: Debug + Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Returns the descriptor, see [`ViewSpec::extension`].
    fn spec() -> &'static ViewSpec;

    /// Returns the maximum number of rows for modification, or `None` if the view has no limit.
    fn limit_mut(&mut self) -> Option<&mut Option<usize>> {
        None
    }

    /// Returns the order of rows for modification, or `None` if the view does not take one.
    fn sort_mut(&mut self) -> Option<&mut Sort> {
        None
    }

    /// Returns the regular expression, or `None` if the view has none.
    fn regex(&self) -> Option<&str> {
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
    fn sort_mut(&mut self) -> Option<&mut Sort>;
    fn regex(&self) -> Option<&str>;
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

    fn sort_mut(&mut self) -> Option<&mut Sort> {
        ExtensionView::sort_mut(self)
    }

    fn regex(&self) -> Option<&str> {
        ExtensionView::regex(self)
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

    pub(crate) fn sort_mut(&mut self) -> Option<&mut Sort> {
        self.0.sort_mut()
    }

    pub(crate) fn regex(&self) -> Option<&str> {
        self.0.regex()
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
    use crate::refusals::GivenOptions;
    use crate::registry::{Extension, Registry};
    use crate::request::Request;
    use crate::view::{Form, RowLimit, Takes, View, ViewInput, ViewSpec};
    use pprofdiff::Diff;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Poem {
        lines: Option<usize>,
    }

    static POEM: ViewSpec = ViewSpec::extension::<Poem>("poem", "Write a poem", ViewInput::Builds).shown_as(
        &[Form::Text, Form::Stacks],
        &[Takes::Sources],
        RowLimit::Rows,
    );
    static POEMS: Extension = Extension { formats: &[], views: &[(&POEM, "tree")] };

    impl ExtensionView for Poem {
        fn spec() -> &'static ViewSpec {
            &POEM
        }

        fn limit_mut(&mut self) -> Option<&mut Option<usize>> {
            Some(&mut self.lines)
        }
    }

    /// A view for which no code but its row and its type exists is refused and limited like all others.
    #[test]
    fn the_row_of_a_new_view_decides_what_is_refused() {
        let registry = Registry::standard().with(&POEMS);
        let request = Request::default().asking(View::extension(Poem { lines: None }));
        let output = |format: &str, rows: Option<usize>, options: &[(Takes, bool)]| {
            let given = GivenOptions::new(rows, options);
            request.for_output(registry.format(format).unwrap(), &registry, &given).map_err(|e| e.to_string())
        };
        let lines = |rows: Option<usize>| output("text", rows, &[]).unwrap().view.downcast_ref::<Poem>().unwrap().lines;
        let usual = registry.format("text").unwrap().limit;
        assert_eq!((lines(None), lines(Some(2)), lines(Some(0))), (usual, Some(2), None));
        assert_eq!(
            output("svg", None, &[]).unwrap_err(),
            "poem can't be written as svg; supported formats: text, folded, speedscope, flamegraph"
        );
        assert_eq!(output("folded", Some(2), &[]).unwrap_err(), "n limits rows, but folded is always written whole");
        assert!(output("text", None, &[(Takes::Sources, true), (Takes::CallTree, false)]).is_ok());
        assert!(
            output("text", None, &[(Takes::CallTree, true)]).unwrap_err().starts_with("call_tree is for call graphs")
        );
        let several =
            Request { query: serde_json::from_str("{\"extra_sample_types\": [\"b\"]}").unwrap(), ..request.clone() };
        assert!(several.for_format(registry.format("text").unwrap(), &registry).is_ok());
        let error = several.for_format(registry.format("folded").unwrap(), &registry).unwrap_err().to_string();
        assert_eq!(error, "poem of several sample types can't be written as folded; supported formats: text");
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
