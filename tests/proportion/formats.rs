//! Inputs of other formats that represent much more than their size, and decompression bombs.

use std::io::Write;

use super::{FLOOR, MB, child, floor, half, temporary};

/// Text is first converted to a profile, whose records are larger than short names and lines.
#[test]
fn folded_stacks_take_memory_in_proportion() {
    let usual = |i: u32| format!("main.main;net/http.(*Server).Serve;handler{};json.Marshal{} 10\n", i % 100, i % 1000);
    let texts: [(&str, String, u64); 4] = [
        ("real stacks", (0..half(200_000)).map(usual).collect(), 3),
        ("the shortest lines", "a 1\n".repeat(half(2_000_000)), 20),
        ("a stack of four million frames", "a;".repeat(half(4_000_000)) + "b 1\n", 20),
        ("names that occur once", (0..half(600_000)).map(|i| format!("{i:x};")).collect::<String>() + "b 1\n", 40),
    ];
    for (name, text, times) in texts {
        let path = temporary("stacks.folded");
        std::fs::write(&path, format!("# pprofdiff-folded samples/count value\n{text}")).unwrap();
        let steps = child(&path, None, true);
        std::fs::remove_file(&path).unwrap();
        let (step, peak, detail) = &steps[0];
        assert_eq!(step, "load", "{name}: {detail}");
        let size = text.len() as u64;
        println!("{name}: {:.1} MB, peak {} MB", size as f64 / MB as f64, peak / MB);
        assert!(*peak < times * size + floor(), "{name}: {} MB, of {times} times {} MB", peak / MB, size / MB);
    }
}

/// For formats that are converted to other records, each record has its minimum size.
#[test]
fn other_formats_take_memory_in_proportion() {
    let word = |w: u64| w.to_le_bytes();
    let cpu = |samples: u64| -> Vec<u8> {
        let head = [0, 3, 0, 1, 0].into_iter();
        head.chain((0..samples).flat_map(|i| [1, 1, i + 1])).flat_map(word).collect()
    };
    let deep = |frames: u64| -> Vec<u8> {
        let head = [0, 3, 0, 1, 0, 1, frames].into_iter();
        head.chain((0..frames).map(|i| i * 64 + 1)).flat_map(word).collect()
    };
    // A recording of CPython with two frames. `record` returns the bytes after the thread of a record.
    let cpython = |n: usize, record: &dyn Fn(usize) -> Vec<u8>| -> Vec<u8> {
        let records: Vec<u8> =
            (0..n).flat_map(|i| [[7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].to_vec(), record(i)].concat()).collect();
        let (strings, frames) = (b"\x01f\x01g", [[0, 0, 2, 0, 2, 0, 0xff], [0, 1, 4, 0, 2, 0, 0xff]].concat());
        let at = 64 + records.len() as u64;
        let numbers = [5u64, 1000, n as u64].map(u64::to_le_bytes).concat();
        let tables = [at, at + 4].map(u64::to_le_bytes).concat();
        let header =
            [b"HCAT\x01\0\0\0\x03\x0f\0\0".to_vec(), numbers, vec![1, 0, 0, 0], tables, vec![0, 0, 0, 0, 1, 0, 0, 0]]
                .concat();
        let size = at + 4 + frames.len() as u64 + 32;
        let footer = [vec![2, 0, 0, 0, 2, 0, 0, 0], size.to_le_bytes().to_vec(), vec![0; 16]].concat();
        [header, records, strings.to_vec(), frames, footer].concat()
    };
    let heap = "heap profile: 1: 1 [1: 1] @ heap_v2/1\n";
    let lines = |head: &str, line: fn(u64) -> String, n: u64| -> Vec<u8> {
        head.bytes().chain((0..n).flat_map(|i| line(i).into_bytes())).collect()
    };
    let stack = |i: usize| (0..20).map(|bit| (i >> bit & 1) as u8).collect::<Vec<u8>>();
    // Each function has a name, three lines and calls of five others.
    let calls = |i: u64| {
        let head = format!("fl=modules.c\nfn=module{i}_function\n{} 400\n+3 25\n+1 7\n", 16 * i);
        let call = |j: u64| format!("cfn=module{}_function\ncalls={j} 16\n+2 {}\n", i / 2 + j % 2, 400 + j);
        head + &(1..6).map(call).collect::<String>()
    };
    // Each function has a name and two callers.
    let pstats = |n: u64| -> Vec<u8> {
        let int = |i: u64| [&b"i"[..], &(i as u32).to_le_bytes()].concat();
        let name = |i: u64| [&b")\x03z\x06mod.pyi"[..], &(i as u32).to_le_bytes(), b"z\x08function"].concat();
        let time = [&b"g"[..], &0.25f64.to_le_bytes()].concat();
        let caller = |i: u64| [name(i), b")\x04".to_vec(), int(3), int(3), time.clone(), time.clone()].concat();
        let record = |i: u64| {
            let head = [name(i), b")\x05".to_vec(), int(6), int(6), time.clone(), time.clone()].concat();
            [head, b"{".to_vec(), caller(i / 2), caller(i / 3), b"0".to_vec()].concat()
        };
        [b"{".to_vec(), (0..n).flat_map(record).collect(), b"0".to_vec()].concat()
    };
    // A ring of functions that count no calls. Each of many callers reaches the last function by all others.
    let ring = |functions: usize, callers: usize| -> Vec<u8> {
        let caller = |i: usize| format!("fn=a{i}\ncfn=r0\ncalls=1 0\n1 100\n");
        let next = |i: usize| format!("fn=r{i}\ncfn=r{}\ncalls=0 0\n1 0\n", (i + 1) % functions);
        let leaf = format!("cfn=leaf\ncalls=0 0\n1 {}\nfn=leaf\n1 {0}\n", 100 * callers);
        let text: String = (0..callers).map(caller).chain((0..functions).map(next)).collect();
        format!("events: Ir\n{text}{leaf}").into_bytes()
    };
    let inputs: [(&str, Vec<u8>, u64); 16] = [
        ("CPython, the shortest records", cpython(half(400_000), &|i| vec![3, 1, 0, 1, 1, (i % 2) as u8]), 4),
        ("CPython, stacks that occur once", cpython(half(100_000), &|i| [vec![1, 1, 0, 20], stack(i)].concat()), 16),
        (
            "CPython, stacks that grow",
            cpython(half(4000), &|i| vec![2, 1, 0, (i & 0x7f) as u8, 1, 0].into_iter().collect()),
            4,
        ),
        (
            "callgrind, real lines",
            [b"events: Ir\n".to_vec(), (0..half(20_000)).flat_map(|i| calls(i).into_bytes()).collect()].concat(),
            8,
        ),
        ("callgrind, the shortest lines", lines("events: Ir\nfn=f\n", |_| "+1 1\n".to_owned(), half(500_000)), 40),
        // Without a limit on the callers in a ring, it takes 333 MB.
        ("callgrind, many callers of a ring", ring(1100, 9000), 40),
        ("cProfile", pstats(half(40_000)), 8),
        ("gperftools CPU, stacks of a frame each", cpu(half(500_000)), 4),
        ("gperftools CPU, a stack of a million frames", deep(half(1_000_000)), 8),
        (
            "heap, real lines",
            lines(
                heap,
                |i| {
                    format!(
                        "1: {} [1: 64] @ 0x{:x} 0x4012{:02x} 0x403344 0x408a19 0x40a100\n",
                        i % 50 + 1,
                        0x40_0000 + i % 5000,
                        i % 100
                    )
                },
                half(100_000),
            ),
            4,
        ),
        ("heap, the shortest lines", lines(heap, |i| format!("1: 1[1: 1] @0x{i:x}\n"), half(500_000)), 4),
        ("counts, the shortest lines", lines("a profile: total 1\n", |i| format!("1 @ 0x{i:x}\n"), half(500_000)), 4),
        (
            "mappings",
            lines(
                "a profile: total 1\n1 @ 0x5\n--- Memory map: ---\n",
                |i| format!("{:x}-{:x} /bin/program{i}\n", 2 * i, 2 * i + 1),
                half(300_000),
            ),
            4,
        ),
        (
            "py-spy, real lines",
            lines(
                "",
                |i| format!("<module> (app.py:10);main (app.py:99);parse (parse.py:{});read (io.py:7) 3\n", i % 300),
                half(100_000),
            ),
            4,
        ),
        ("py-spy, the shortest lines", lines("", |i| format!("a (b:{})\u{20}1\n", i % 1000 + 1), half(500_000)), 4),
        (
            "Austin, real lines",
            lines(
                "# austin: 3.7.0\n# mode: wall\n",
                |i| {
                    format!(
                        "P21;T0:22;/srv/app.py:<module>:10;/srv/app.py:main:{};/srv/io.py:read:7 1000{}\n",
                        i % 300,
                        i % 10
                    )
                },
                half(100_000),
            ),
            4,
        ),
    ];
    for (name, bytes, times) in inputs {
        let path = temporary("other.txt");
        std::fs::write(&path, &bytes).unwrap();
        let steps = child(&path, None, true);
        std::fs::remove_file(&path).unwrap();
        let (step, peak, detail) = &steps[0];
        assert_eq!(step, "load", "{name}: {detail}");
        let size = bytes.len() as u64;
        println!("{name}: {:.1} MB, peak {} MB", size as f64 / MB as f64, peak / MB);
        assert!(*peak < times * size + floor(), "{name}: {} MB, of {times} times {} MB", peak / MB, size / MB);
    }
}

/// Files of other tools, in a usual form and as dense as possible: name, text, maximum memory as a multiple of the size
/// above the floor, and expected error (empty if it loads). Most exceed four times the size only if two bytes of text
/// describe a separate call.
#[test]
fn files_of_other_tools_take_memory_in_proportion() {
    let node = |i: u32, size: u32| {
        let place = format!("\"url\":\"file:///srv/app/{}.js\",\"lineNumber\":{},\"columnNumber\":9", i % 50, i % 997);
        format!(
            "{{\"id\":{i},\"callFrame\":{{\"functionName\":\"f{}\",\"scriptId\":\"7\",{place}}},\"selfSize\":{size}",
            i % 999
        )
    };
    let short = |i: u32| format!("{{\"id\":{i},\"callFrame\":{{\"functionName\":\"\"}}");
    let cpu = |nodes: String, samples: String, deltas: String| {
        format!("{{\"nodes\":[{nodes}],\"samples\":[{samples}],\"timeDeltas\":[{deltas}]}}")
    };
    let list = |n: u32, one: &dyn Fn(u32) -> String| (1..=n).map(one).collect::<Vec<_>>().join(",");
    // Each node has the previous one as its parent.
    let chain = |n: u32| {
        cpu(
            list(n, &|i| short(i) + &format!(",\"parent\":{}}}", i - 1)).replacen(",\"parent\":0", "", 1),
            list(n, &|i| i.to_string()),
            list(n, &|_| "1".into()),
        )
    };
    let ones = |n: usize| "1,".repeat(n) + "1";
    let heap = |n: usize, open: &str| {
        format!("{{\"head\":{{{}{}{}}}", open.repeat(n), short(1).split_at(1).1.to_owned() + "}", "]}".repeat(n))
    };
    let scope = |profile: String| {
        let frames = "{\"name\":\"a\"},{\"name\":\"b\"}";
        format!("{{\"shared\":{{\"frames\":[{frames}]}},\"profiles\":[{profile}]}}")
    };
    let sampled = |samples: String, weights: String| {
        scope(format!("{{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[{samples}],\"weights\":[{weights}]}}"))
    };
    let perf = |i: u32| {
        format!(
            "web {}/{} 9.1: 250000 cycles:u: \n\t 7f0000{:06x} f{}+0x1 (/usr/lib/a.so)\n\t 12a7 main+0x8 (/srv/web)\n\n",
            i % 9,
            i % 99,
            i,
            i % 999
        )
    };
    // A trace with a profile in pieces, each with its nodes, samples and times.
    let piece = |time: u32, nodes: &str, samples: &str, deltas: &str| {
        format!(
            "{{\"name\":\"ProfileChunk\",\"ph\":\"P\",\"id\":1,\"pid\":1,\"tid\":2,\"ts\":{time},\"args\":{{\"data\":{{\"cpuProfile\":{{\"nodes\":[{nodes}],\
             \"samples\":[{samples}]}},\"timeDeltas\":[{deltas}]}}}}}}"
        )
    };
    let python = |i: u32| {
        let call = format!("\"name\":\"a.py({}): f{}\",\"ts\":{},\"dur\":9", i % 50, i % 999, i / 4 * 10);
        format!("{{\"ph\":\"X\",\"cat\":\"python_function\",\"pid\":1,\"tid\":{},{call}}}", i % 4)
    };
    let ruby = |raw: String, deltas: String| {
        let frames =
            "\"5\":{\"name\":\"f\",\"file\":\"a.rb\",\"line\":3},\"6\":{\"name\":\"g\",\"file\":\"a.rb\",\"line\":9}";
        format!(
            "{{\"mode\":\"wall\",\"interval\":1000,\"gc_samples\":0,\"missed_samples\":0,\"frames\":{{{frames}}},\"raw\":[{raw}],\
             \"raw_timestamp_deltas\":[{deltas}]}}"
        )
    };
    let bits = |i: u32| (0..20).map(|bit| if i >> bit & 1 == 1 { "1," } else { "0," }).collect::<String>();
    let texts: Vec<(&str, String, u64, &str)> = vec![
        (
            "cpuprofile: usual",
            cpu(
                list(half(20_000), &|i| node(i, 0) + "}"),
                list(half(200_000), &|i| (1 + i % half(20_000)).to_string()),
                list(half(200_000), &|i| (100 + i % 9).to_string()),
            ),
            3,
            "",
        ),
        ("cpuprofile: the shortest samples", cpu(short(1) + "}", ones(half(4_000_000)), ones(half(4_000_000))), 2, ""),
        (
            "cpuprofile: samples out of order",
            cpu(short(1) + "}", ones(half(4_000_000)), ones(half(3_999_999)) + ",-1"),
            4,
            "",
        ),
        (
            "cpuprofile: the shortest nodes",
            cpu(list(half(300_000), &|i| short(i) + "}"), list(half(300_000), &|i| i.to_string()), ones(half(299_999))),
            6,
            "",
        ),
        ("cpuprofile: a chain of calls, at the bound", chain(2_800), 4, ""),
        ("cpuprofile: a chain of calls, beyond it", chain(100_000), 4, "altogether"),
        (
            "heapprofile: usual",
            format!(
                "{{\"head\":{},\"children\":[{}]}}}}",
                node(1, 0),
                list(half(60_000), &|i| node(i, i) + ",\"children\":[]}")
            ),
            3,
            "",
        ),
        (
            "heapprofile: a million levels",
            heap(half(1_000_000), "\"selfSize\":0,\"callFrame\":{\"functionName\":\"\"},\"children\":[{"),
            4,
            "",
        ),
        (
            "speedscope: the shortest samples",
            sampled("[0],".repeat(half(2_000_000)) + "[]", ones(half(2_000_000))),
            3,
            "",
        ),
        (
            "speedscope: a stack of four million frames",
            sampled("[".to_owned() + &"0,1,".repeat(half(2_000_000)) + "0]", "1".into()),
            40,
            "",
        ),
        (
            "speedscope: stacks that occur once",
            sampled(list(half(200_000), &|i| format!("[{}0]", bits(i))), ones(half(199_999))),
            8,
            "",
        ),
        (
            "speedscope: events",
            scope(format!(
                "{{\"type\":\"evented\",\"unit\":\"none\",\"events\":[{}]}}",
                list(half(400_000), &|i| {
                    let (kind, frame) = if i % 2 == 1 { ("O", i / 2 % 2) } else { ("C", (i - 1) / 2 % 2) };
                    format!("{{\"type\":\"{kind}\",\"frame\":{frame},\"at\":{i}}}")
                })
            )),
            3,
            "",
        ),
        (
            "trace: usual",
            format!(
                "[{}]",
                list(half(8000), &|i| piece(
                    i,
                    &(node(i, 0) + "}"),
                    &list(100, &|n| (1 + n % i).to_string()),
                    &list(100, &|n| (100 + n % 9).to_string())
                ))
            ),
            3,
            "",
        ),
        (
            "trace: the shortest pieces",
            format!("[{},{}]", piece(0, &(short(1) + "}"), "1", "1"), list(half(100_000), &|i| piece(i, "", "1", "1"))),
            4,
            "",
        ),
        (
            "trace: the shortest events",
            format!("[{},{}]", piece(0, &(short(1) + "}"), "1", "1"), list(half(3_000_000), &|_| "{}".into())),
            2,
            "",
        ),
        ("trace: calls of Python", format!("{{\"traceEvents\":[{}]}}", list(half(200_000), &python)), 4, ""),
        ("stackprof: the shortest stacks", ruby("0,1,".repeat(half(2_000_000)) + "0,1", ones(half(2_000_000))), 3, ""),
        (
            "stackprof: stacks that occur once",
            ruby(
                list(half(200_000), &|i| format!("20,{}1", bits(i).replace('1', "6").replace('0', "5"))),
                ones(half(199_999)),
            ),
            8,
            "",
        ),
        ("perf script: usual", (0..half(100_000)).map(perf).collect(), 3, ""),
        ("perf script: the shortest samples", "a 1 c:\n\t1 a\n".repeat(half(800_000)), 3, ""),
        (
            "perf script: symbols that occur once",
            (0..half(300_000)).map(|i| format!("a 1 c:\n\t1 {i:x}\n")).collect(),
            30,
            "",
        ),
        (
            "perf script: threads that occur once",
            (0..half(300_000)).map(|i| format!("a {i} c:\n\t1 a\n")).collect(),
            20,
            "",
        ),
        (
            "perf script: events that occur once",
            (0..20_000).map(|i| format!("a 1 e{i:x}:\n\t1 a\n")).collect(),
            4,
            "altogether",
        ),
        (
            "jemalloc: the shortest stacks",
            "heap_v2/1\n".to_owned() + &"@ 0x1\nt*: 1: 1 [0: 0]\n".repeat(half(300_000)),
            6,
            "",
        ),
        (
            "jemalloc: addresses that occur once",
            "heap_v2/1\n@".to_owned()
                + &(1..half(600_000)).map(|i| format!(" 0x{i:x}")).collect::<String>()
                + "\nt*: 1: 1 [0: 0]\n",
            40,
            "",
        ),
    ];
    let mut beyond = Vec::new();
    for (name, text, times, error) in texts {
        let path = temporary("other-tool");
        std::fs::write(&path, &text).unwrap();
        let steps = child(&path, None, true);
        std::fs::remove_file(&path).unwrap();
        let (step, peak, detail) = &steps[0];
        let expected = if error.is_empty() { "load" } else { "error" };
        assert!(step == expected && detail.contains(error), "{name}: {step} {detail}");
        let size = text.len() as u64;
        // A refused input cannot be halved, because it must reach the limit.
        let floor = if error.is_empty() { floor() } else { FLOOR };
        let taken = (*peak as f64 - floor as f64).max(0.0) / size as f64;
        println!("{name}: {:.1} MB, peak {} MB, {taken:.1} times beside the floor", size as f64 / MB as f64, peak / MB);
        if *peak >= times * size + floor {
            beyond.push(format!("{name}: {} MB, of {times} times {} MB", peak / MB, size / MB));
        }
    }
    assert!(beyond.is_empty(), "{beyond:#?}");
}

/// An OTLP message has a table of stacks, but `profile.proto` has none. The converted profile contains the stack of
/// each sample, so its size is not proportional to the message. A limit covers that
/// (`the_size_of_the_converted_profile_is_limited`, in the tests of the reader).
#[test]
fn otlp_messages_take_memory_in_proportion() {
    let field = |field: u8, content: &[u8]| {
        let mut out = Vec::new();
        prost::encoding::encode_key(field.into(), prost::encoding::WireType::LengthDelimited, &mut out);
        prost::encoding::encode_varint(content.len() as u64, &mut out);
        out.extend_from_slice(content);
        out
    };
    let numbers = |numbers: &[u64]| {
        let mut out = Vec::new();
        numbers.iter().for_each(|&v| prost::encoding::encode_varint(v, &mut out));
        out
    };
    // A CPU profile with type strings 1 and 2, its samples, and the other records of the dictionary.
    let message = |samples: Vec<u8>, dictionary: Vec<u8>| {
        let profile = [field(1, &[0x08, 1, 0x10, 2]), samples].concat();
        let strings = [field(5, b""), field(5, b"cpu"), field(5, b"count")].concat();
        let dictionary = field(2, &[strings, dictionary].concat());
        [field(1, &field(2, &field(2, &profile))), dictionary].concat()
    };
    let sample = |stack: u64, attributes: &[u64]| {
        let stack = if stack == 0 { vec![] } else { [vec![0x08], numbers(&[stack])].concat() };
        let attributes = if attributes.is_empty() { vec![] } else { field(2, &numbers(attributes)) };
        field(2, &[stack, attributes, field(4, &[1])].concat())
    };
    // Stacks of ten of 2,000 frames, each shared by three samples. An attribute names the thread.
    let usual = || {
        let names = (0..2000).flat_map(|i| field(5, format!("net/http.(*Server).handler{i}").as_bytes()));
        let functions = (0..2000).flat_map(|i| field(3, &[vec![0x08], numbers(&[i + 3])].concat()));
        let line = |i: u64| field(3, &[vec![0x08], numbers(&[i]), vec![0x10], numbers(&[i])].concat());
        let locations = (0..2000).flat_map(|i| field(2, &[vec![0x10], numbers(&[4096 + i]), line(i)].concat()));
        let stack = |i: u64| (0..10).map(|d| (i * 7 + d * d * i) % 2000).collect::<Vec<_>>();
        let stacks = (0..half(600_000)).flat_map(|i| field(7, &field(1, &numbers(&stack(i)))));
        let named = |i: u8| field(2, &field(1, format!("thread {i}").as_bytes()));
        let attributes = (0..100).flat_map(|i| field(6, &[vec![0x08, 1], named(i)].concat()));
        let samples = (0..half(1_800_000)).flat_map(|i| sample(i % half(600_000), &[i % 100]));
        let tables = names.chain(functions).chain(locations).chain(stacks).chain(attributes).collect();
        message(samples.collect(), tables)
    };
    let many_profiles = || {
        let of_one = field(2, &field(1, &[0x08, 1, 0x10, 2]));
        [message(vec![], vec![]), field(1, &field(2, &of_one.repeat(half(4_000_000))))].concat()
    };
    let cases: [(&str, Vec<u8>, u64); 7] = [
        ("real stacks", usual(), 4),
        ("the shortest samples", message(sample(0, &[]).repeat(half(8_000_000)), vec![]), 4),
        (
            "a stack of its own for each",
            message((0..half(4_000_000)).flat_map(|i| sample(i, &[])).collect(), field(7, b"").repeat(half(4_000_000))),
            5,
        ),
        ("the shortest attributes", message(sample(0, &[]), field(6, b"").repeat(half(20_000_000))), 4),
        ("the shortest strings", message(sample(0, &[]), field(5, b"").repeat(half(20_000_000))), 4),
        (
            "the shortest locations, all in a stack",
            message(
                sample(1, &[]),
                [
                    field(2, b"").repeat(half(6_000_000)),
                    field(7, b""),
                    field(7, &field(1, &numbers(&(0..half(6_000_000)).collect::<Vec<_>>()))),
                ]
                .concat(),
            ),
            6,
        ),
        ("profiles without samples", many_profiles(), 5),
    ];
    let mut beyond = Vec::new();
    for (name, data, times) in cases {
        let path = temporary("message.otlp");
        std::fs::write(&path, &data).unwrap();
        let steps = child(&path, None, true);
        std::fs::remove_file(&path).unwrap();
        let (step, peak, detail) = &steps[0];
        let size = data.len() as u64;
        println!(
            "{name}: {step} {detail} {:.1} MB, peak {} MB, {:.1} times",
            size as f64 / MB as f64,
            peak / MB,
            *peak as f64 / size as f64
        );
        if step != "load" || *peak >= times * size + floor() {
            beyond.push(format!("{name}: {step} {detail} {} MB, of {times} times {} MB", peak / MB, size / MB));
        }
    }
    assert!(beyond.is_empty(), "{beyond:#?}");
}

#[test]
fn bombs_end_at_the_limit() {
    let zeros = vec![0; 64 * MB as usize];
    let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    member.write_all(&zeros).unwrap();
    // 10 GB when inflated, 10 MB compressed.
    let gzip = member.finish().unwrap().repeat(160);
    let zstd = zstd::encode_all(&zeros[..], 3).unwrap().repeat(160);
    for (name, bytes) in [("bomb.gz", gzip), ("bomb.zst", zstd)] {
        let path = temporary(name);
        std::fs::write(&path, &bytes).unwrap();
        let limit = 100 * MB;
        let steps = child(&path, Some(limit), false);
        std::fs::remove_file(&path).unwrap();
        let (step, peak, detail) = steps.last().unwrap();
        assert!(step == "error" && detail.contains("more than the limit"), "{name}: {step} {detail}");
        println!("{name}: {} kB, limit 100 MB, peak {} MB", bytes.len() / 1024, peak / MB);
        assert!(*peak < 2 * limit + FLOOR, "{name}: {} MB", peak / MB);
    }
}
