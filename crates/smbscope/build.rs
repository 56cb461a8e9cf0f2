//! On Windows: paths longer than 260 characters, and UTF-8 as the code page.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_CFG_WINDOWS").is_some()
        && let Err(error) = embed_manifest::embed_manifest(embed_manifest::new_manifest("smbscope"))
    {
        println!("cargo::warning=the program has no manifest: {error}");
    }
}
