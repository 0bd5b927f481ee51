//! The page as a folder for any file server, and its size; see `make`.
//!
//! Arguments: the module that cargo made for wasm32-unknown-unknown, DIR, and the bytes that the module may have with gzip.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use pprofdiff_web::{ASSETS, Engine, WORKER, index, style};
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [module, dir, max_packed @ ..] = arguments.as_slice() else {
        return Err("arguments: MODULE DIR [BYTES]".into());
    };
    fs::create_dir_all(dir)?;
    Bindgen::new()
        .input_path(module)
        .web(true)?
        .typescript(false)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate(dir)?;
    let [worker, keeper] = WORKER;
    let mut files: Vec<(&str, Vec<u8>)> = ASSETS.iter().map(|asset| (asset.name, asset.content.to_vec())).collect();
    files.push(("index.html", index(Engine::Worker).into_bytes()));
    files.push(("style.css", style().into_bytes()));
    files.push(("worker.js", worker.as_bytes().to_vec()));
    for (name, content) in &files {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap_or(dir))?;
        fs::write(path, content)?;
    }
    // What the page keeps for days without a network: all, under a name that changes with it.
    let mut names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    names.extend(["pprofdiff_web.js", "pprofdiff_web_bg.wasm", "./"]);
    names.sort_unstable();
    let mut version = flate2::Crc::new();
    for name in names.iter().filter(|name| **name != "./") {
        version.update(&fs::read(dir.join(name))?);
    }
    let keeper = keeper.replace("{version}", &format!("{:08x}", version.sum()));
    fs::write(dir.join("sw.js"), keeper.replace("{files}", &format!("{names:?}")))?;
    let module = fs::read(dir.join("pprofdiff_web_bg.wasm"))?;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut packed, &module)?;
    let packed = packed.finish()?.len();
    println!("{}: a module of {} bytes, {packed} with gzip", dir.display(), module.len());
    match max_packed.first() {
        Some(max) if packed > max.display().to_string().parse()? => {
            Err(format!("that is more than {} with gzip, which a page may ask of a visitor", max.display()).into())
        }
        _ => Ok(()),
    }
}
