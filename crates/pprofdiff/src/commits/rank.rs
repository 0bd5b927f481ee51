//! How directly a commit reaches a cause. The weights are of this order: the function's own lines and calls that came or
//! went first, then what it needs, then what leads to it; a place counts as far as the cause's change goes through it. They
//! were tuned on one half of the repositories that tests/commits.rs makes up, and measured on the other.

use super::history::{CommitChanges, FunctionChange, History};
use super::paths::{Paths, folder, is_dependency, parts};
use super::source::{Outline, language};
use super::{RankedCommit, RankedCommits, Reach, Tree};
use crate::diff::stacks::Stacks;
use crate::explain::{Cause, CauseKind};
use pprofdiff_profile::random::{HashMap, HashSet};

/// The most commits that are named for a cause.
const MAX_RANKED: usize = 5;
/// What less of the cause's change goes through is no place of it.
const LEAST_PART: f64 = 0.15;
/// From here on a commit reaches the cause; below, it is near.
const DIRECT: f64 = 50.0;
/// Frames above the function that are looked at.
const MAX_ABOVE: usize = 8;
/// Where so much of a cause's change goes through one function below it, that one changed.
const NEARLY_ALL: f64 = 0.9;
/// Of what commits renamed or moved, old and new cost are a cause if they differ by more than this part of the one.
const RENAMED: f64 = 0.1;

/// A function of the profiles, as sources have it.
struct Place {
    parts: Vec<String>,
    /// Numbers of its files in the repository, and their folders.
    files: Vec<usize>,
    folders: HashSet<String>,
    /// Files and names that it had in the course of the commits.
    aliases: HashSet<(usize, String)>,
    /// What the profile says.
    name: String,
    path: String,
    is_dependency: bool,
}

/// What a frame is to a cause.
#[derive(Clone, Copy)]
struct Role {
    is_function: bool,
    /// How far above the function; 0 of what is below it.
    above: usize,
    /// How much of the cause's change goes through it.
    part: f64,
}

pub(super) struct Ranking<'a> {
    stacks: &'a Stacks,
    paths: &'a Paths,
    history: &'a History,
    tree: &'a Tree<'a>,
    scale: f64,
    places: Vec<Place>,
    /// What a frame is called now: of one that the base alone has under the name, the frame of the new side.
    now: Vec<u32>,
    /// The names of a frame on both sides.
    names: Vec<Vec<String>>,
}

/// A place that a commit changes, with how directly that reaches the cause.
struct Hit {
    score: f64,
    file: String,
    lines: (u32, u32),
    reach: Reach,
    why: String,
}

impl<'a> Ranking<'a> {
    pub(super) fn new(
        stacks: &'a Stacks,
        paths: &'a Paths,
        history: &'a History,
        tree: &'a Tree<'a>,
        scale: f64,
    ) -> Ranking<'a> {
        let moves: Vec<[(usize, &str); 2]> = history
            .commits
            .iter()
            .flat_map(|commit| &commit.moves)
            .filter_map(|[from, to]| {
                Some([(paths.number(&from.0)?, from.1.as_str()), (paths.number(&to.0)?, to.1.as_str())])
            })
            .collect();
        let place = |frame: u32| {
            let (name, path) = (stacks.frames.name(frame), stacks.frames.file(frame).unwrap_or_default());
            let resolved = if path.is_empty() { Vec::new() } else { paths.resolve(&path) };
            let (parts, files): (_, Vec<usize>) =
                (parts(&name), resolved.iter().filter_map(|path| paths.number(path)).collect());
            Place {
                aliases: aliases(&parts, &files, &moves),
                parts,
                files,
                folders: resolved.iter().map(|path| folder(path).to_owned()).collect(),
                is_dependency: is_dependency(&path),
                name,
                path,
            }
        };
        let places: Vec<Place> = (0..stacks.frames.len() as u32).map(place).collect();
        let now = twins(stacks, &places);
        let mut names: Vec<Vec<String>> = vec![Vec::new(); places.len()];
        for (place, now) in places.iter().zip(&now) {
            names[*now as usize].push(place.name.clone());
        }
        Ranking { stacks, paths, history, tree, scale, places, now, names }
    }

    /// The commits that reach a cause; `None` of one that has no function, or is only a function's other name.
    pub(super) fn of_cause(&self, cause: &Cause) -> Option<RankedCommits> {
        cause.function.as_ref()?;
        let (roles, calls) = self.roles(cause)?;
        let uses = self.uses(&roles);
        let mut ranked: Vec<(f64, usize, RankedCommit)> = Vec::new();
        for (age, commit) in self.history.commits.iter().enumerate() {
            let hits = self.hits(commit, cause, &roles, &calls, &uses);
            let Some(hit) = hits.into_iter().max_by(|a, b| a.score.total_cmp(&b.score)) else { continue };
            ranked.push((
                hit.score,
                age,
                RankedCommit {
                    commit: commit.id.clone(),
                    short: commit.short.clone(),
                    subject: commit.subject.clone(),
                    file: hit.file,
                    lines: hit.lines,
                    reach: hit.reach,
                    why: hit.why,
                    direct: hit.score >= DIRECT,
                },
            ));
        }
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        ranked.truncate(MAX_RANKED);
        Some(RankedCommits { of: self.history.len(), ranked: ranked.into_iter().map(|(.., commit)| commit).collect() })
    }

    /// What frames are to the cause, and which calls its stacks have, each with the part of the change that goes through.
    /// Frames are as they are called now. `None` if nothing remains of the change under these names.
    fn roles(&self, cause: &Cause) -> Option<(Roles, Calls)> {
        let evidence = &cause.evidence;
        let is_own = cause.kind == CauseKind::Own && cause.callee.is_none();
        let (mut of_cause, mut named) = (Vec::new(), 0.0);
        for row in &self.stacks.rows {
            let found = self.stacks.frames_of(row);
            let frames: Vec<u32> = found.iter().map(|&frame| self.now[frame as usize]).collect();
            let is_called = |is_of: &dyn Fn(&[String], usize) -> bool, at: usize| {
                is_of(&evidence.functions, at)
                    && (evidence.callers.is_empty() || at > 0 && is_of(&evidence.callers, at - 1))
            };
            let is_now =
                |names: &[String], at: usize| self.names[frames[at] as usize].iter().any(|n| names.contains(n));
            let is_named = |names: &[String], at: usize| names.contains(&self.places[found[at] as usize].name);
            let Some(at) = (0..frames.len()).rfind(|&at| is_called(&is_now, at)) else { continue };
            let delta = row.weight.new as f64 - self.scale * row.weight.base as f64;
            if (0..frames.len()).any(|at| is_called(&is_named, at)) {
                named += delta;
            }
            of_cause.push((frames, at, delta));
        }
        let total: f64 = of_cause.iter().map(|(.., delta)| delta).sum();
        if total * named < 0.0 || total.abs() < RENAMED * named.abs() {
            return None;
        }
        let (roles, calls, deepest) = roles_in(&of_cause, is_own);
        // A cause that is called by what lies far above it, since much below it has another name, say; or that itself has.
        let is_renamed = of_cause.iter().any(|(frames, at, _)| self.names[frames[*at] as usize].len() > 1);
        let Some(deepest) =
            deepest.filter(|_| (cause.kind == CauseKind::Calls || is_renamed) && cause.callee.is_none())
        else {
            return Some((roles, calls));
        };
        for (frames, at, _) in &mut of_cause {
            *at = frames.iter().rposition(|frame| *frame == deepest).unwrap_or(usize::MAX);
        }
        of_cause.retain(|(_, at, _)| *at != usize::MAX);
        let (roles, calls, _) = roles_in(&of_cause, is_own);
        Some((roles, calls))
    }

    /// What names the function, its caller and what it calls use, as they are now: by name, the part of the change.
    fn uses(&self, roles: &HashMap<u32, Role>) -> HashMap<String, f64> {
        let mut uses: HashMap<String, f64> = HashMap::default();
        let mut outlines: HashMap<&str, Outline> = HashMap::default();
        for (&frame, role) in roles.iter().filter(|(_, role)| role.above <= 1 && role.part >= LEAST_PART) {
            let place = &self.places[frame as usize];
            let now = self
                .tree
                .files
                .iter()
                .filter(|path| self.paths.number(path).is_some_and(|number| place.files.contains(&number)));
            for path in now {
                let outline = outlines.entry(path).or_insert_with(|| {
                    let text = language(path).and_then(|language| Some((language, (self.tree.read)(path)?)));
                    text.map_or_else(Outline::default, |(language, text)| Outline::new(&text, language))
                });
                let strength = role.part * if role.is_function { 1.0 } else { 0.9 };
                for function in outline.functions.iter().filter(|f| place.parts.last() == Some(&f.name)) {
                    for token in function.tokens.iter().filter(|t| t.is_name()) {
                        let known = uses.entry(token.text.clone()).or_default();
                        *known = known.max(strength);
                    }
                }
            }
        }
        uses
    }

    fn hits(
        &self,
        commit: &CommitChanges,
        cause: &Cause,
        roles: &Roles,
        calls: &Calls,
        uses: &HashMap<String, f64>,
    ) -> Vec<Hit> {
        let mut hits = Vec::new();
        for change in &commit.functions {
            let hit = |score: f64, reach: Reach, why: String| Hit {
                score: score + change.size.min(50) as f64 / 100.0,
                file: change.path.clone(),
                lines: change.lines,
                reach,
                why,
            };
            for (&frame, role) in roles.iter().filter(|(_, role)| role.part >= LEAST_PART) {
                let place = &self.places[frame as usize];
                if !self.is_changed(place, change) {
                    continue;
                }
                // A call that came or went counts as far as the cause goes through it.
                for (&(_, callee), &part) in calls.iter().filter(|((caller, _), _)| *caller == frame) {
                    let place = &self.places[callee as usize];
                    let Some(name) = place.parts.last() else { continue };
                    let is_in = |calls: &[String]| {
                        calls.contains(name) || place.aliases.iter().any(|(_, alias)| calls.contains(alias))
                    };
                    let is_cause = roles.get(&callee).is_some_and(|role| role.is_function);
                    let weight = if is_cause { 99.0 } else { 58.0 + 40.0 * part };
                    let (came, went) = (is_in(&change.added_calls), is_in(&change.removed_calls));
                    if (came || went) && part >= LEAST_PART {
                        let verb = if came { "adds" } else { "drops" };
                        hits.push(hit(weight, Reach::Call, format!("{verb} a call of {name}")));
                    }
                }
                let (score, reach) = score(role, change, cause);
                let why = match reach {
                    Reach::OwnLines => "its own lines".to_owned(),
                    Reach::Callee => format!("{}, which it calls", change.name),
                    _ if role.above > 1 => format!("{}, on the way to it", change.name),
                    _ => format!("{}, which calls it", change.name),
                };
                hits.push(hit(score, reach, why));
            }
        }
        for change in &commit.outside {
            let strongest = change.names.iter().filter_map(|name| Some((uses.get(name)?, name)));
            if let Some((part, name)) = strongest.max_by(|a, b| a.0.total_cmp(b.0)) {
                let is_near =
                    roles.keys().any(|frame| self.places[*frame as usize].folders.contains(folder(&change.path)));
                hits.push(Hit {
                    score: if is_near { 45.0 + 33.0 * part } else { 40.0 + 20.0 * part },
                    file: change.path.clone(),
                    lines: change.lines,
                    reach: Reach::Constant,
                    why: format!("{name}, which it uses"),
                });
            }
        }
        for change in &commit.dependencies {
            let of =
                |(frame, role): (&u32, &Role)| {
                    let place = &self.places[*frame as usize];
                    let is_inside = role.is_function || role.above == 0;
                    (is_inside && role.part >= LEAST_PART && lies_in(place, &change.name))
                        .then_some(if role.is_function { 95.0 } else { 50.0 + 45.0 * role.part })
                };
            if let Some(score) = roles.iter().filter_map(of).max_by(f64::total_cmp) {
                hits.push(Hit {
                    score,
                    file: change.path.clone(),
                    lines: (change.line, change.line),
                    reach: Reach::Dependency,
                    why: format!("another version of {}, which it lies in", change.name),
                });
            }
        }
        if hits.is_empty() {
            hits.extend(self.nearest(commit, roles));
        }
        hits
    }

    /// What a commit changes beside the function: in its file, or in its folder.
    fn nearest(&self, commit: &CommitChanges, roles: &HashMap<u32, Role>) -> Option<Hit> {
        let functions: Vec<&Place> =
            roles.iter().filter(|(_, role)| role.is_function).map(|(frame, _)| &self.places[*frame as usize]).collect();
        let changes = commit.functions.iter().map(|c| (&c.path, c.lines));
        let changes = changes.chain(commit.outside.iter().map(|c| (&c.path, c.lines)));
        let near = changes.filter_map(|(path, lines)| {
            let number = self.paths.number(path);
            let (score, reach, why) = match () {
                () if functions.iter().any(|p| number.is_some_and(|n| p.files.contains(&n))) => {
                    (20.0, Reach::File, "the same file")
                }
                () if functions.iter().any(|p| p.folders.contains(folder(path))) => {
                    (10.0, Reach::Folder, "the same folder")
                }
                () => return None,
            };
            Some(Hit { score, file: path.clone(), lines, reach, why: why.to_owned() })
        });
        near.max_by(|a, b| a.score.total_cmp(&b.score))
    }

    /// True if the change is of this function.
    fn is_changed(&self, place: &Place, change: &FunctionChange) -> bool {
        if place.is_dependency {
            return false;
        }
        let number = self.paths.number(&change.path);
        if place.parts.last() != Some(&change.name) {
            return number.is_some_and(|number| place.aliases.iter().any(|(n, a)| *n == number && *a == change.name));
        }
        if change.owner.as_ref().is_some_and(|owner| place.parts.len() > 2 && !place.parts.contains(owner)) {
            return false;
        }
        if !place.files.is_empty() {
            let is_alias = |n: usize| place.aliases.iter().any(|(file, name)| *file == n && *name == change.name);
            return number.is_some_and(|number| place.files.contains(&number) || is_alias(number));
        }
        // Without a file, its path must agree with the name.
        let is_named = |part: &str| place.parts.iter().any(|p| p == part) || place.name.contains(part);
        place.path.is_empty()
            && (place.parts.len() == 1
                || place.parts[0] == "main"
                || change.path.split('/').any(|part| is_named(part.split('.').next().unwrap_or(part))))
    }
}

type Roles = HashMap<u32, Role>;
/// By caller and callee, the part of the change that goes through.
type Calls = HashMap<(u32, u32), f64>;

/// What frames are to stacks that go through a function, each with the function's place and its change; and the deepest
/// function below that one through which nearly all of the change goes.
fn roles_in(stacks: &[(Vec<u32>, usize, f64)], is_own: bool) -> (Roles, Calls, Option<u32>) {
    let mut total = 0.0;
    // The change, how far above the function, whether it is that, and how far below.
    let mut through: HashMap<u32, (f64, usize, bool, usize)> = HashMap::default();
    let mut calls: Calls = HashMap::default();
    for (frames, at, delta) in stacks {
        let (at, delta) = (*at, *delta);
        total += delta;
        let below = if is_own { at + 1 } else { frames.len() };
        let from = at.saturating_sub(MAX_ABOVE);
        let mut seen: HashSet<u32> = HashSet::default();
        for (i, &frame) in frames.iter().enumerate().take(below).skip(from) {
            if seen.insert(frame) {
                let known = through.entry(frame).or_insert((0.0, at.saturating_sub(i), i == at, 0));
                known.0 += delta;
                known.1 = known.1.min(at.saturating_sub(i));
                known.3 = known.3.max(i.saturating_sub(at));
            }
            if i > from {
                *calls.entry((frames[i - 1], frame)).or_default() += delta;
            }
        }
    }
    let part = |delta: f64| if total == 0.0 { 0.0 } else { (delta / total).clamp(0.0, 1.0) };
    let deepest = through
        .iter()
        .filter(|(_, (delta, _, is_function, below))| !is_function && *below > 0 && part(*delta) >= NEARLY_ALL)
        .max_by_key(|(frame, (.., below))| (*below, **frame));
    let deepest = deepest.map(|(frame, _)| *frame);
    let role = |(frame, (delta, above, is_function, _)): (u32, (f64, usize, bool, usize))| {
        (frame, Role { is_function, above, part: part(delta) })
    };
    let roles = through.into_iter().map(role).collect();
    (roles, calls.into_iter().map(|(call, delta)| (call, part(delta))).collect(), deepest)
}

/// What each frame is called now: itself, or of one that only the base has, the one of the new side alone that commits made
/// of it by another name or file. Where several could be it, none is.
fn twins(stacks: &Stacks, places: &[Place]) -> Vec<u32> {
    let mut is_on = vec![[false; 2]; places.len()];
    for row in &stacks.rows {
        for &frame in stacks.frames_of(row) {
            is_on[frame as usize][0] |= row.weight.base != 0;
            is_on[frame as usize][1] |= row.weight.new != 0;
        }
    }
    let mut by_alias: HashMap<&(usize, String), [Vec<u32>; 2]> = HashMap::default();
    for (frame, place) in places.iter().enumerate() {
        let side = match is_on[frame] {
            [true, false] => 0,
            [false, true] => 1,
            _ => continue,
        };
        for alias in &place.aliases {
            by_alias.entry(alias).or_default()[side].push(frame as u32);
        }
    }
    let mut found: HashMap<u32, HashSet<u32>> = HashMap::default();
    for sides in by_alias.values() {
        if let ([old], [new]) = (sides[0].as_slice(), sides[1].as_slice()) {
            found.entry(*old).or_default().insert(*new);
        }
    }
    let twin = |frame: u32| found.get(&frame).filter(|all| all.len() == 1).and_then(|all| all.iter().next().copied());
    (0..places.len() as u32).map(|frame| twin(frame).unwrap_or(frame)).collect()
}

/// All files and names of a function that commits moved or renamed, by those that the profiles know.
fn aliases(parts: &[String], files: &[usize], moves: &[[(usize, &str); 2]]) -> HashSet<(usize, String)> {
    let mut known: HashSet<(usize, String)> = HashSet::default();
    let Some(name) = parts.last() else { return known };
    known.extend(files.iter().map(|file| (*file, name.clone())));
    // Each round follows at least one move, or is the last.
    let mut is_more = !known.is_empty();
    while is_more {
        is_more = false;
        for [from, to] in moves {
            let [from, to] = [from, to].map(|(file, name)| (*file, (*name).to_owned()));
            is_more |= known.contains(&from) && known.insert(to.clone());
            is_more |= known.contains(&to) && known.insert(from);
        }
    }
    known
}

/// How directly a change of this function reaches the cause.
fn score(role: &Role, change: &FunctionChange, cause: &Cause) -> (f64, Reach) {
    let weak = |score: f64| if change.is_text { score.min(25.0) } else { score };
    match role {
        Role { is_function: true, .. } => {
            let is_itself = cause.kind == CauseKind::Own || cause.callee.is_some();
            (weak(if is_itself { 100.0 } else { 90.0 }), Reach::OwnLines)
        }
        Role { above: 0, part, .. } => (weak(40.0 + 52.0 * part), Reach::Callee),
        // Its cause is a call by this function: what it passes on may be more.
        Role { above: 1, part, .. } if cause.caller.is_some() => {
            (weak(if change.has_loop { 85.0 } else { 48.0 } * part.max(0.5)), Reach::Caller)
        }
        Role { above, part, .. } => {
            let base = if change.has_loop { 62.0 } else { 42.0 };
            (weak(base * part.sqrt() - *above as f64), Reach::Caller)
        }
    }
}

/// True if a function of the profiles lies in a dependency of this name.
fn lies_in(place: &Place, dependency: &str) -> bool {
    let path = place.path.replace('\\', "/");
    let spelled = [dependency.to_owned(), dependency.replace('-', "_")];
    spelled.iter().any(|name| {
        let in_path = place.is_dependency
            && path.match_indices(name.as_str()).any(|(at, _)| {
                let (before, after) = (&path[..at], &path[at + name.len()..]);
                let is_version = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
                (before.is_empty() || before.ends_with('/'))
                    && (after.starts_with(['/', '@']) || after.strip_prefix('-').is_some_and(is_version))
            });
        let in_name = place
            .name
            .strip_prefix(name.as_str())
            .is_some_and(|rest| rest.starts_with("::") || name.contains('/') && rest.starts_with(['.', '/']));
        in_path || in_name
    })
}
