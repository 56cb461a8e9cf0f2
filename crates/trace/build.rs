//! Compiles the recorder's BPF part and makes its loader, with the feature `record` on Linux.

fn main() {
    println!("cargo::rerun-if-changed=src/record/bpf");
    #[cfg(all(feature = "record", target_os = "linux"))]
    bpf::build();
}

#[cfg(all(feature = "record", target_os = "linux"))]
mod bpf {
    use std::path::PathBuf;

    pub fn build() {
        let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
        let architecture = match std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
            Ok("aarch64") => "arm64",
            _ => "x86",
        };
        let built = libbpf_cargo::SkeletonBuilder::new()
            .source("src/record/bpf/cpu.bpf.c")
            .clang_args([
                &format!("-D__TARGET_ARCH_{architecture}"),
                "-mcpu=v3",
                "-Wall",
                "-Werror",
            ])
            .build_and_generate(out.join("cpu.skel.rs"));
        if let Err(error) = built {
            panic!("the BPF part does not build (feature `record` needs clang): {error:?}");
        }
    }
}
