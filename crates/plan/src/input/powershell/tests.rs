//! One object in each notation.

use serde_json::json;

use super::super::lines::Lines;
use super::*;

const LIST: &str = "Name         : Data\r\nScope Name   : *\r\nCurrentUsers : 3\r\n\r\n";
const TABLE: &str = "Scope Name CurrentUsers\n----- ---- ------------\n*     Data 3\n";
const CSV: &str = "#TYPE X\n\"ScopeName\";\"Name\";\"CurrentUsers\"\n\"*\";\"Data\";\"3\"\n";
const JSON: &str = "[{\"ScopeName\": \"*\", \"Name\": \"Data\", \"CurrentUsers\": 3}]";
const CLIXML: &str = r#"<Objs Version="1.1.0.1" xmlns="http://schemas.microsoft.com/powershell/2004/04">
  <Obj RefId="0"><TN RefId="0"><T>X</T></TN><ToString>MSFT_SmbShare</ToString>
    <Props><S N="Name">Da_x0074_a</S><S N="ScopeName">*</S><U32 N="CurrentUsers">3</U32>
      <Obj N="State" RefId="1"><TNRef RefId="0" /><ToString>Online</ToString><I32>1</I32></Obj><Nil N="Path" />
    </Props></Obj></Objs>"#;

#[test]
fn each_notation_gives_the_same_object() {
    let list = read_list(&mut Lines::new(LIST), "").unwrap();
    let lines = Lines::new(TABLE);
    let (table, heading_lines) = Table::find(&lines).unwrap();
    let row = table.row(lines.ahead(heading_lines).unwrap(), 3);
    let mut of_csv = Object::default();
    let mut take = |line, object| {
        assert_eq!(line, 3);
        of_csv = object;
        Ok(())
    };
    read_csv(CSV, &mut take).unwrap();
    let json = read_json(&mut Lines::new(JSON)).unwrap();
    assert!(is_clixml(CLIXML));
    for object in [list, of_csv, first(&json[0]), first(&clixml(CLIXML).unwrap())] {
        assert_eq!(object.string("name"), Some("Data"), "{object:?}");
        assert_eq!(object.string("scopename"), Some("*"), "{object:?}");
        assert_eq!(object.number(&["currentusers"]), Some(3), "{object:?}");
    }
    assert_eq!(row.string("scope"), Some("*"));
    assert_eq!(first(&clixml(CLIXML).unwrap()).get("state"), Some(&json!("Online")));
}

#[test]
fn damaged_input_names_its_line() {
    let mut lines = Lines::new("[\n{\"a\": }\n]");
    assert_eq!(read_json(&mut lines).unwrap_err().line, 2);
    assert_eq!(clixml("<Objs>\n<Obj>").unwrap_err().line, 2);
    let wide = "a,b\n1\n";
    assert!(read_csv(wide, &mut |_, _| Ok(())).unwrap_err().message.contains("damaged CSV"));
}

#[test]
fn several_values_of_json_in_one_line_are_read() {
    let mut lines = Lines::new("{\"a\": 1} {\"b\": 2}\nPS C:\\>");
    assert_eq!(read_json(&mut lines).unwrap().len(), 2);
    assert_eq!(lines.peek(), Some("PS C:\\>"));
}

fn first(value: &Json) -> Object {
    let mut found = None;
    let take = &mut |_: &[&str], value: &Json| {
        found = found.take().or_else(|| Object::from_json(value));
        Ok::<_, ()>(true)
    };
    walk(value, take).unwrap();
    found.unwrap()
}
