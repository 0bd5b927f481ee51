//! Reads pictures of a rain radar (PNG) again and again, and sums up how much it rains where. The library is `png`:
//! 0.16 with the feature a, 0.17 with b.

#[cfg(feature = "a")]
use png16 as png;
#[cfg(feature = "b")]
use png17 as png;

const SIZE: usize = 384;

fn main() {
    let pictures: Vec<Vec<u8>> = (0..6).map(|hour| save(&rain(hour))).collect();
    let mut total = 0;
    upgrades::run(700, |round| {
        for picture in &pictures {
            let pixels = load(picture);
            total += regions(&pixels).iter().map(|r| r * (round % 2 + 1)).sum::<u64>();
        }
    });
    println!("{total} mm of rain");
}

/// Returns the pixels of a picture, a byte for each color.
#[cfg(feature = "a")]
#[inline(never)]
fn load(file: &[u8]) -> Vec<u8> {
    let (info, mut reader) = png::Decoder::new(file).read_info().expect("a picture");
    let mut pixels = vec![0; info.buffer_size()];
    reader.next_frame(&mut pixels).expect("a frame");
    pixels
}

/// Returns the pixels of a picture, a byte for each color.
#[cfg(feature = "b")]
#[inline(never)]
fn load(file: &[u8]) -> Vec<u8> {
    let mut reader = png::Decoder::new(file).read_info().expect("a picture");
    let mut pixels = vec![0; reader.output_buffer_size()];
    reader.next_frame(&mut pixels).expect("a frame");
    pixels
}

/// The rain in each of 64 regions, by every fourth pixel.
#[inline(never)]
fn regions(pixels: &[u8]) -> [u64; 64] {
    let mut sums = [0; 64];
    for (i, pixel) in pixels.chunks_exact(3).enumerate().step_by(4) {
        let (row, column) = (i / SIZE, i % SIZE);
        sums[row / (SIZE / 8) * 8 + column / (SIZE / 8)] += amount(pixel);
    }
    sums
}

/// Returns the amount of rain for a color.
#[inline(never)]
fn amount(pixel: &[u8]) -> u64 {
    u64::from(pixel[0] / 31) + u64::from(pixel[1] < 100)
}

/// Clouds that drift, with noise.
fn rain(hour: u32) -> Vec<u8> {
    let mut random = 7 + hour;
    let mut pixels = Vec::with_capacity(SIZE * SIZE * 3);
    for i in 0..SIZE * SIZE {
        let (x, y) = ((i % SIZE) as f32 / 40.0 + hour as f32, (i / SIZE) as f32 / 30.0);
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let wet = ((x.sin() + y.cos()) * 2.0 + 4.0) as u32 + u32::from(random >> 29 == 0);
        pixels.extend([(wet * 31) as u8, (255 - wet * 17) as u8, (wet * 7) as u8]);
    }
    pixels
}

/// Writes a picture, always with the same settings.
fn save(pixels: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, SIZE as u32, SIZE as u32);
    set_color(&mut encoder);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Best);
    encoder.set_filter(png::FilterType::NoFilter);
    encoder.write_header().and_then(|mut w| w.write_image_data(pixels)).expect("a picture");
    file
}

#[cfg(feature = "a")]
fn set_color(encoder: &mut png::Encoder<&mut Vec<u8>>) {
    encoder.set_color(png::ColorType::RGB);
}

#[cfg(feature = "b")]
fn set_color(encoder: &mut png::Encoder<&mut Vec<u8>>) {
    encoder.set_color(png::ColorType::Rgb);
}
