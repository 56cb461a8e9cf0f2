//! The answers, one module for each: its fields, verdict, words, drawings and document.

#[cfg(feature = "plan")]
pub mod baseline;
pub mod comparison;
#[cfg(feature = "plan")]
pub mod cores;
pub mod cpu;
pub mod diagnosis;
pub mod durability;
pub mod load;
#[cfg(feature = "plan")]
pub mod namespace;
pub mod prediction;
pub mod recording;
#[cfg(feature = "plan")]
pub mod replication;
pub mod why;

use crate::value::Fields;

/// The fields of all answers that have JSON.
pub const ALL_FIELDS: &[&Fields] = &[
    &recording::fields::FIELDS,
    &diagnosis::fields::FIELDS,
    &why::fields::FIELDS,
    &cpu::fields::FIELDS,
    &cpu::fields::EXPLAIN_FIELDS,
    #[cfg(feature = "plan")]
    &cores::fields::FIELDS,
    #[cfg(feature = "plan")]
    &replication::fields::FIELDS,
    #[cfg(feature = "plan")]
    &baseline::fields::FIELDS,
    #[cfg(feature = "plan")]
    &namespace::fields::FIELDS,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Format;

    #[test]
    fn every_field_has_a_title_and_a_sentence_and_every_object_is_there() {
        for fields in ALL_FIELDS {
            let names: Vec<_> = fields.objects().iter().map(|object| object.name).collect();
            for object in fields.objects() {
                assert!(object.help.ends_with('.'), "{}", object.name);
                assert!(object.includes.iter().all(|name| names.contains(name)));
                for field in &object.fields {
                    let place = format!("{}.{}", object.name, field.name);
                    assert!(!field.title.is_empty() && field.help.ends_with('.'), "{place}");
                    if let Format::Object(of) | Format::List(of) = field.format {
                        assert!(names.contains(&of), "{place}");
                    }
                }
            }
        }
    }

    #[test]
    fn fields_are_found_through_what_an_object_includes() {
        let field = |object, name| recording::fields::FIELDS.field(object, name).title;
        assert_eq!(field("command", "operations"), "Operations");
        assert_eq!(field("connection", "server_rtt_ns"), "Server round trip");
    }
}
