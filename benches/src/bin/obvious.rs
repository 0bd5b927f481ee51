//! The simplest implementation as a process: `obvious BASE NEW` prints the ten functions that changed most, as JSON:
//! [[name, delta of flat, delta of cum], ...].

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(base), Some(new)) = (args.next(), args.next()) else { return Err("obvious BASE NEW".into()) };
    let rows = pprofdiff_benches::obvious::table(&[base, new])?;
    let mut rows: Vec<(String, i64, i64)> =
        rows.into_iter().map(|(name, v)| (name, v[1] - v[0], v[3] - v[2])).collect();
    rows.sort_by(|a, b| b.1.abs().cmp(&a.1.abs()).then_with(|| a.0.cmp(&b.0)));
    rows.truncate(10);
    println!("{}", serde_json::to_string(&rows)?);
    Ok(())
}
