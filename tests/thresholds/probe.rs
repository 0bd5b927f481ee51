//! Finds the thresholds that decide answers of `explain`. tests/thresholds.py compiles this file with a copy of the
//! crates in which each threshold is a variable.
//!
//! Arguments: a folder, a file of questions (lines of tests/corpus/explained.txt that begin with `$ explain`), and a
//! file of settings (`NAME=VALUE` per line, or several separated by blanks). For each question, this prints the
//! settings that change its answer, and how: `text`, or `json` if only the JSON differs.
//! With `-` instead of settings, this prints the answers themselves.

use std::path::Path;

use pprofdiff_explain::thresholds;

#[path = "../explained.rs"]
#[allow(dead_code)]
mod explained;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, questions, settings] = &arguments[..] else { panic!("usage: probe FOLDER QUESTIONS SETTINGS") };
    let questions = std::fs::read_to_string(questions).unwrap();
    if settings == "-" {
        for line in questions.lines() {
            let [text, json] = explained::Question::read(Path::new(folder), line).answer();
            println!("{line}\n{text}{json}");
        }
        return;
    }
    let settings = std::fs::read_to_string(settings).unwrap();
    let settings: Vec<Vec<(usize, f64)>> = settings.lines().map(parse).collect();
    for line in questions.lines() {
        let question = explained::Question::read(Path::new(folder), line);
        thresholds::forget_reads();
        let unchanged = question.answer();
        let read = thresholds::reads();
        println!("{line}");
        for (number, setting) in settings.iter().enumerate() {
            // A threshold that no code read decides nothing.
            if !setting.iter().any(|(place, _)| read[*place]) {
                continue;
            }
            setting.iter().for_each(|(place, value)| thresholds::set(*place, Some(*value)));
            let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| question.answer()));
            setting.iter().for_each(|(place, _)| thresholds::set(*place, None));
            match answer {
                Err(_) => println!("\t{number}\tpanic"),
                Ok([text, _]) if text != unchanged[0] => println!("\t{number}\ttext"),
                Ok([_, json]) if json != unchanged[1] => println!("\t{number}\tjson"),
                Ok(_) => (),
            }
        }
        let places: Vec<String> = read.iter().enumerate().filter(|(_, r)| **r).map(|(i, _)| i.to_string()).collect();
        println!("\tread\t{}", places.join(" "));
    }
}

/// Returns the places and values of a setting.
fn parse(line: &str) -> Vec<(usize, f64)> {
    let place = |name: &str| thresholds::NAMES.iter().position(|n| *n == name).unwrap();
    line.split_whitespace()
        .filter_map(|word| word.split_once('='))
        .map(|(n, v)| (place(n), v.parse().unwrap()))
        .collect()
}
