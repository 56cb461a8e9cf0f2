//! Closed lists of kinds of findings, and the macro that declares them.

use std::fmt::Debug;
use std::hash::Hash;

use crate::finding::{Actor, Severity};

/// What is always true of a kind: defined once, in the file of the rule that finds it.
#[derive(Clone, Copy, Debug)]
pub struct KindInfo {
    /// Its name in JSON and SQL, in kebab case.
    pub id: &'static str,
    /// The term for it, one line without numbers.
    pub title: &'static str,
    /// How much it usually matters, for kinds that are ranked by severity.
    pub severity: Option<Severity>,
    /// The side that can usually change it.
    pub actor: Option<Actor>,
    /// What to do, the most useful first: where, and what.
    pub remedies: &'static [(&'static str, &'static str)],
}

impl KindInfo {
    /// A kind without severity, actor and remedies.
    pub const fn new(id: &'static str, title: &'static str) -> KindInfo {
        KindInfo { id, title, severity: None, actor: None, remedies: &[] }
    }

    /// Sets how much it usually matters.
    pub const fn with_severity(mut self, severity: Severity) -> KindInfo {
        self.severity = Some(severity);
        self
    }

    /// Sets the side that can usually change it.
    pub const fn with_actor(mut self, actor: Actor) -> KindInfo {
        self.actor = Some(actor);
        self
    }

    /// Sets what to do, the most useful first: where, and what.
    pub const fn with_remedies(
        mut self,
        remedies: &'static [(&'static str, &'static str)],
    ) -> KindInfo {
        self.remedies = remedies;
        self
    }
}

/// A closed list of kinds of findings; [`kinds!`](crate::kinds) implements it.
pub trait Kind: Copy + Debug + Eq + Hash + Ord + 'static {
    /// All kinds, in the order of the declaration.
    const ALL: &'static [Self];

    /// What is always true of it.
    fn info(self) -> &'static KindInfo;

    /// Its name in JSON and SQL.
    fn id(self) -> &'static str {
        self.info().id
    }

    /// The term for it.
    fn title(self) -> &'static str {
        self.info().title
    }

    /// The kind of a name.
    fn from_id(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.id() == id)
    }
}

/// Declares a closed list of kinds: each is `Variant = INFO`, where `INFO` is a [`KindInfo`]. The enum
/// implements [`Kind`] and is its id in JSON.
#[macro_export]
macro_rules! kinds {
    (
        $(#[$about:meta])*
        $visibility:vis enum $name:ident {
            $($(#[$doc:meta])* $variant:ident = $info:expr,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visibility enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $crate::Kind for $name {
            const ALL: &'static [$name] = &[$($name::$variant,)*];

            fn info(self) -> &'static $crate::KindInfo {
                match self {
                    $($name::$variant => const { &$info },)*
                }
            }
        }

        impl $crate::serde::Serialize for $name {
            fn serialize<S: $crate::serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str($crate::Kind::id(*self))
            }
        }

        impl<'de> $crate::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::serde::Deserializer<'de>>(from: D) -> Result<$name, D::Error> {
                let id = <std::borrow::Cow<'_, str> as $crate::serde::Deserialize>::deserialize(from)?;
                let unknown = || $crate::serde::de::Error::custom(format_args!("unknown kind `{id}`"));
                <$name as $crate::Kind>::from_id(&id).ok_or_else(unknown)
            }
        }
    };
}
