//! The columns of an operation that a trace shows.

use arrow::array::RecordBatch;
use arrow::datatypes::{Int64Type, UInt64Type};
use arrow::error::ArrowError;
use smbscope_tables::named_columns::{Flags, Numbers, Text};

use super::packets::Value;

macro_rules! rows {
    ($($name:ident: $kind:ident $(, $shown:ident)?;)*) => {
        /// The columns of operations that a trace needs.
        pub const COLUMNS: &[&str] = &[$(stringify!($name),)*];

        /// The columns of one batch.
        pub struct Rows {
            /// How many rows there are.
            pub count: usize,
            $(#[doc = concat!("`", stringify!($name), "`.")] pub $name: rows!(@type $kind),)*
        }

        impl Rows {
            /// Finds the columns by name.
            pub fn from_batch(batch: &RecordBatch) -> Result<Rows, ArrowError> {
                Ok(Rows {
                    count: batch.num_rows(),
                    $($name: <rows!(@type $kind)>::from_batch(batch, stringify!($name))?,)*
                })
            }

            /// What Perfetto shows when the operation is selected.
            pub fn values(&self, row: usize) -> Vec<(&'static str, Value<'_>)> {
                let mut values = Vec::new();
                $($(rows!(@$shown values, self.$name.get(row), stringify!($name));)?)*
                values
            }
        }
    };
    (@type text) => { Text };
    (@type flag) => { Flags };
    (@type unsigned) => { Numbers<UInt64Type> };
    (@type signed) => { Numbers<Int64Type> };
    (@as_text $values:ident, $value:expr, $name:expr) => {
        $values.extend($value.map(|value| ($name, Value::Text(value))));
    };
    (@as_unsigned $values:ident, $value:expr, $name:expr) => {
        $values.extend($value.map(|value| ($name, Value::Unsigned(value))));
    };
    (@as_signed $values:ident, $value:expr, $name:expr) => {
        $values.extend($value.map(|value| ($name, Value::Signed(value))));
    };
}

rows! {
    recording: text;
    connection: unsigned;
    client: text;
    client_port: unsigned;
    server: text;
    server_port: unsigned;
    command: text;
    encrypted: flag;
    request_start: signed;
    response_end: signed;
    share: text, as_text;
    path: text, as_text;
    detail: text, as_text;
    status_name: text, as_text;
    user: text, as_text;
    offset_bytes: unsigned, as_unsigned;
    requested_bytes: unsigned, as_unsigned;
    transferred_bytes: unsigned, as_unsigned;
    outstanding: unsigned, as_unsigned;
    turnaround_ns: signed, as_signed;
    server_ns: signed, as_signed;
    operation: unsigned, as_unsigned;
    message_id: unsigned, as_unsigned;
    scenario_run: unsigned, as_unsigned;
    compound: unsigned, as_unsigned;
}

impl Rows {
    /// The name of an operation's slice.
    pub fn name(&self, row: usize) -> &str {
        match self.command.get(row) {
            Some(command) => command,
            None if self.encrypted.get(row) => "(encrypted)",
            None => "(unknown)",
        }
    }

    /// The name of a connection's track.
    pub fn connection_name(&self, row: usize) -> String {
        let address = |name: &Text, port: &Numbers<UInt64Type>| {
            let port = port.get(row).map(|port| format!(":{port}")).unwrap_or_default();
            name.get(row).map(|name| format!("{name}{port}"))
        };
        let number = match self.connection.get(row) {
            Some(number) => format!("connection {number}"),
            None => "no connection".to_owned(),
        };
        let ends =
            [address(&self.client, &self.client_port), address(&self.server, &self.server_port)];
        match ends {
            [Some(client), Some(server)] => format!("{number}: {client} to {server}"),
            [client, server] => match client.or(server) {
                Some(end) => format!("{number}: {end}"),
                None => number,
            },
        }
    }
}
