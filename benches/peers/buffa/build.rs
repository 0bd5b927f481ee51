//! Generates the messages of profile.proto from its descriptor set, because protoc is rarely installed. The set is from
//! `protoc --descriptor_set_out=profile.binpb profile.proto`, with google/pprof's file of November 2026.

fn main() {
    println!("cargo:rerun-if-changed=profile.binpb");
    buffa_build::Config::new()
        .descriptor_set("profile.binpb")
        .files(&["profile.proto"])
        .compile()
        .expect("the descriptor set is valid");
}
