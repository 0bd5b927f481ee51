//! Writes the page into a folder for any file server, and prints the size of its module, raw and gzipped. The script
//! `make` calls it.
//!
//! Arguments: the module that cargo built for wasm32-unknown-unknown, the folder, and the maximum size of the gzipped
//! module in bytes.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use pprofdiff_web::{ASSETS, PageEngine, WORKER, index, style};
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [module, dir, max_gzipped @ ..] = arguments.as_slice() else {
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
    let [worker, service_worker] = WORKER;
    let mut files: Vec<(&str, Vec<u8>)> = ASSETS.iter().map(|asset| (asset.name, asset.content.to_vec())).collect();
    files.push(("index.html", index(PageEngine::Worker).into_bytes()));
    files.push(("style.css", style().into_bytes()));
    files.push(("worker.js", worker.as_bytes().to_vec()));
    for (name, content) in &files {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap_or(dir))?;
        fs::write(path, content)?;
    }
    // The service worker keeps all files for offline use, under a version that changes with their content.
    let mut names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    names.extend(["pprofdiff_web.js", "pprofdiff_web_bg.wasm", "./"]);
    names.sort_unstable();
    let mut version = flate2::Crc::new();
    for name in names.iter().filter(|name| **name != "./") {
        version.update(&fs::read(dir.join(name))?);
    }
    let service_worker = service_worker.replace("{version}", &format!("{:08x}", version.sum()));
    fs::write(dir.join("sw.js"), service_worker.replace("{files}", &format!("{names:?}")))?;
    let module = fs::read(dir.join("pprofdiff_web_bg.wasm"))?;
    let mut gzipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut gzipped, &module)?;
    let gzipped = gzipped.finish()?.len();
    println!("{}: a module of {} bytes, {gzipped} with gzip", dir.display(), module.len());
    match max_gzipped.first() {
        Some(max) if gzipped > max.display().to_string().parse()? => {
            Err(format!("the gzipped module is larger than {} bytes, the limit for a page", max.display()).into())
        }
        _ => Ok(()),
    }
}
