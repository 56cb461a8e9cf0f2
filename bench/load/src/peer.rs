//! The `smb2` crate, request by request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use smb2::msg::close::CloseRequest;
use smb2::msg::echo::EchoRequest;
use smb2::msg::query_info::{InfoType, QueryInfoRequest};
use smb2::types::Command;
use smb2::{ClientConfig, SmbClient};

use crate::measure::{Figures, Gate, closed_loop};
use crate::{Case, Operation, ours};

/// Measures one case.
pub async fn run(case: Arc<Case>) -> Figures {
    let gate = Gate::new(case.logons());
    let opened = gate.clone();
    closed_loop(case.sessions, case.rounds(), case.round(), opened, move |number, counter| {
        tokio::spawn(live(case.clone(), number, gate.clone(), counter));
    })
    .await
}

async fn live(case: Arc<Case>, number: usize, gate: Arc<Gate>, counter: Arc<AtomicU64>) {
    let turn = gate.logon().await;
    let (address, share) = case.address_and_share();
    let config = ClientConfig {
        addr: address.to_owned(),
        username: format!("user{:05}", number % 100 + 1),
        password: case.password.clone(),
        compression: false,
        dfs_enabled: false,
        ..ClientConfig::default()
    };
    let mut client = SmbClient::connect(config).await.unwrap();
    let tree = client.connect_share(share).await.unwrap();
    drop(turn);
    gate.pass().await;
    let (file_id, _) = tree.open_file(client.connection_mut(), ours::FILE).await.unwrap();
    let id = Some(tree.tree_id);
    let query = QueryInfoRequest {
        info_type: InfoType::File,
        file_info_class: 34,
        output_buffer_length: 56,
        additional_information: 0,
        flags: 0,
        file_id,
        input_buffer: Vec::new(),
    };
    loop {
        match case.operation {
            Operation::Pair => {
                let connection = client.connection_mut();
                let (file_id, _) = tree.open_file(connection, ours::FILE).await.unwrap();
                counter.fetch_add(1, Ordering::Relaxed);
                let body = CloseRequest { flags: 0, file_id };
                client.connection().execute(Command::Close, &body, id).await.unwrap();
            }
            Operation::QueryInfo => {
                client.connection().execute(Command::QueryInfo, &query, id).await.unwrap();
            }
            Operation::Echo | Operation::Idle => {
                client.connection().execute(Command::Echo, &EchoRequest, None).await.unwrap();
            }
        }
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
