//! Scores how directly a commit reaches a cause. The order of the weights is: the function's own lines and added or
//! removed calls first, then its callees, then its callers. A place counts in proportion to the part of the cause's
//! change that goes through it.
//!
//! The weights were tuned on one half of the repositories that tests/commits.rs generates, and measured on the second
//! half.

use super::Tree;
use super::history::{CommitChanges, FunctionChange, History};
use super::paths::{RepositoryPaths, folder, is_dependency, parts};
use super::source::{Outline, language};
use pprofdiff::stacks::Stacks;
use pprofdiff_explain::{Cause, CauseKind, RankedCommit, RankedCommits, Reach};
use pprofdiff_profile::random::{HashMap, HashSet};
use pprofdiff_profile::short_lists::sort_by;

/// The maximum number of commits per cause.
const MAX_RANKED: usize = 5;
/// The minimum part of the cause's change that goes through a place.
const MIN_PART: f64 = 0.15;
/// The minimum score of a commit that reaches the cause directly. Commits below it change code nearby, distant callers,
/// or texts only.
const DIRECT: f64 = 50.0;
/// The score of a commit that adds or removes a call of the name of a library's function, where the stacks do not show
/// the caller. It is direct, but below calls on the stacks.
const CALL_OF_LIBRARY: f64 = 55.0;
/// The maximum number of frames to examine above the function.
const MAX_ABOVE: usize = 8;
/// The minimum part of a cause's change that goes through a single function below the cause's function, for that
/// function to take its place.
const NEARLY_ALL: f64 = 0.9;
/// The minimum change of a cause under the current names, relative to its change under the recorded names. A cause below
/// it is a mere renaming.
const RENAMED: f64 = 0.1;

/// A function of the profiles, with its location in the sources.
struct FunctionPlace {
    parts: Vec<String>,
    /// The numbers of its files in the repository.
    files: Vec<usize>,
    /// The folders of its files.
    folders: HashSet<String>,
    /// The files and names that the function had over the range of commits.
    aliases: HashSet<(usize, String)>,
    /// The function name in the profile.
    name: String,
    /// The file in the profile.
    path: String,
    is_dependency: bool,
}

/// The relation of a frame to a cause.
#[derive(Clone, Copy)]
struct FrameRole {
    is_function: bool,
    /// The distance above the function; 0 for frames below it.
    above: usize,
    /// The part of the cause's change that goes through the frame.
    part: f64,
}

pub(super) struct CommitRanking<'a> {
    stacks: &'a Stacks,
    paths: &'a RepositoryPaths,
    history: &'a History,
    tree: &'a Tree<'a>,
    scale: f64,
    places: Vec<FunctionPlace>,
    /// The current frame of each frame: for a frame that only the base has under its name, its counterpart on the new
    /// side.
    now: Vec<u32>,
    /// The names of a frame on both sides.
    names: Vec<Vec<String>>,
}

/// A place that a commit changes, with a score for how directly it reaches the cause.
struct Hit {
    score: f64,
    file: String,
    lines: (u32, u32),
    reach: Reach,
    why: String,
}

impl<'a> CommitRanking<'a> {
    pub(super) fn new(
        stacks: &'a Stacks,
        paths: &'a RepositoryPaths,
        history: &'a History,
        tree: &'a Tree<'a>,
        scale: f64,
    ) -> CommitRanking<'a> {
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
            FunctionPlace {
                aliases: aliases(&parts, &files, &moves),
                parts,
                files,
                folders: resolved.iter().map(|path| folder(path).to_owned()).collect(),
                is_dependency: is_dependency(&path),
                name,
                path,
            }
        };
        let places: Vec<FunctionPlace> = (0..stacks.frames.len() as u32).map(place).collect();
        let now = twins(stacks, &places);
        let mut names: Vec<Vec<String>> = vec![Vec::new(); places.len()];
        for (place, now) in places.iter().zip(&now) {
            names[*now as usize].push(place.name.clone());
        }
        CommitRanking { stacks, paths, history, tree, scale, places, now, names }
    }

    /// Returns the commits that reach a cause, at most [`MAX_RANKED`]; `None` for a cause without a function, or for a
    /// mere renaming.
    pub(super) fn of_cause(&self, cause: &Cause) -> Option<RankedCommits> {
        cause.function.as_ref()?;
        let (roles, calls) = self.roles(cause)?;
        let (uses, is_located) = self.uses(&roles);
        let mut ranked: Vec<(f64, usize, RankedCommit)> = Vec::new();
        for (age, commit) in self.history.commits.iter().enumerate() {
            let hits = self.hits(commit, cause, &roles, &calls, &uses);
            let Some(score) = hits.iter().map(|hit| hit.score).max_by(f64::total_cmp) else { continue };
            let Some(hit) = shown_hit(hits, cause.callee.is_some() || cause.caller.is_some()) else { continue };
            ranked.push((
                score,
                age,
                RankedCommit::new(
                    [&commit.id, &commit.short, &commit.subject].map(String::clone),
                    hit.file,
                    hit.lines,
                    hit.reach,
                    hit.why,
                    score >= DIRECT,
                ),
            ));
        }
        sort_by(&mut ranked, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        ranked.truncate(MAX_RANKED);
        let commits = ranked.into_iter().map(|(.., commit)| commit).collect();
        Some(RankedCommits::new(self.history.len(), commits).with_unlocated(!is_located))
    }

    /// Returns the relation of each frame to the cause, and the calls on its stacks with the part of the change that
    /// goes through each. Frames have their current names. Returns `None` if the change vanishes under these names.
    fn roles(&self, cause: &Cause) -> Option<(FrameRoles, CallShares)> {
        let evidence = &cause.evidence;
        let is_own_cost = cause.kind == CauseKind::Own && cause.callee.is_none();
        let (mut stacks, mut named) = (Vec::new(), 0.0);
        for row in &self.stacks.rows {
            let recorded = self.stacks.frames_of(row);
            let frames: Vec<u32> = recorded.iter().map(|&frame| self.now[frame as usize]).collect();
            let is_called = |is_of: &dyn Fn(&[String], usize) -> bool, index: usize| {
                is_of(&evidence.functions, index)
                    && (evidence.callers.is_empty() || index > 0 && is_of(&evidence.callers, index - 1))
            };
            let is_now =
                |names: &[String], index: usize| self.names[frames[index] as usize].iter().any(|n| names.contains(n));
            let is_named = |names: &[String], index: usize| names.contains(&self.places[recorded[index] as usize].name);
            let Some(index) = (0..frames.len()).rfind(|&index| is_called(&is_now, index)) else { continue };
            let delta = row.weight.new as f64 - self.scale * row.weight.base as f64;
            if (0..frames.len()).any(|index| is_called(&is_named, index)) {
                named += delta;
            }
            stacks.push((frames, index, delta));
        }
        let total: f64 = stacks.iter().map(|(.., delta)| delta).sum();
        if total * named < 0.0 || total.abs() < RENAMED * named.abs() {
            return None;
        }
        let is_generated = |frame: u32| is_generated(&self.places[frame as usize].name);
        let (roles, calls, deepest) = roles_in(&stacks, is_own_cost, &is_generated);
        // A `CauseKind::Calls` may name a caller far above the change, for example because many functions below were
        // renamed. The cause itself may also be renamed. The deepest function with nearly all of the change then takes
        // its place.
        let is_renamed = stacks.iter().any(|(frames, index, _)| self.names[frames[*index] as usize].len() > 1);
        let Some(deepest) =
            deepest.filter(|_| (cause.kind == CauseKind::Calls || is_renamed) && cause.callee.is_none())
        else {
            return Some((roles, calls));
        };
        for (frames, index, _) in &mut stacks {
            *index = frames.iter().rposition(|frame| *frame == deepest).unwrap_or(usize::MAX);
        }
        stacks.retain(|(_, index, _)| *index != usize::MAX);
        let (roles, calls, _) = roles_in(&stacks, is_own_cost, &is_generated);
        Some((roles, calls))
    }

    /// Returns the names that the function, its caller and its callees use in the current sources, with the part of the
    /// change. The flag is true if the definition of the function itself was found there.
    fn uses(&self, roles: &HashMap<u32, FrameRole>) -> (HashMap<String, f64>, bool) {
        let mut is_located = false;
        let mut uses: HashMap<String, f64> = HashMap::default();
        let mut outlines: HashMap<&str, Outline> = HashMap::default();
        for (&frame, role) in roles.iter().filter(|(_, role)| role.above <= 1 && role.part >= MIN_PART) {
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
                    is_located |= role.is_function;
                    for token in function.tokens.iter().filter(|t| t.is_name()) {
                        let strength_of_name = uses.entry(token.text.clone()).or_default();
                        *strength_of_name = strength_of_name.max(strength);
                    }
                }
            }
        }
        (uses, is_located)
    }

    fn hits(
        &self,
        commit: &CommitChanges,
        cause: &Cause,
        roles: &FrameRoles,
        calls: &CallShares,
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
            for (&frame, role) in roles.iter().filter(|(_, role)| role.part >= MIN_PART) {
                let place = &self.places[frame as usize];
                if !self.is_changed(place, change) {
                    continue;
                }
                // An added or removed call counts in proportion to the change that goes through it.
                for (&(_, callee), &part) in calls.iter().filter(|((caller, _), _)| *caller == frame) {
                    let place = &self.places[callee as usize];
                    let Some(name) = place.parts.last() else { continue };
                    let is_in = |calls: &[String]| {
                        calls.contains(name) || place.aliases.iter().any(|(_, alias)| calls.contains(alias))
                    };
                    let is_cause = roles.get(&callee).is_some_and(|role| role.is_function);
                    let weight = if is_cause { 99.0 } else { 58.0 + 40.0 * part };
                    let (came, went) = (is_in(&change.added_calls), is_in(&change.removed_calls));
                    if (came || went) && part >= MIN_PART {
                        let verb = if came { "adds" } else { "removes" };
                        let mut hit = hit(weight, Reach::Call, format!("{verb} a call of {name}"));
                        let added = change.added_calls.iter().zip(&change.added_lines);
                        let is_callee =
                            |call: &String| call == name || place.aliases.iter().any(|(_, alias)| alias == call);
                        if let Some(line) = added.filter(|(call, _)| is_callee(call)).find_map(|(_, line)| *line) {
                            hit.lines = (line, line);
                        }
                        hits.push(hit);
                    }
                }
                let (score, reach) = score(role, change, cause);
                let why = match reach {
                    Reach::OwnLines => "changes the function itself".to_owned(),
                    Reach::Callee => format!("changes {}, which it calls", change.name),
                    _ if role.above > 1 => format!("changes {}, an indirect caller", change.name),
                    _ => format!("changes {}, which calls it", change.name),
                };
                hits.push(hit(score, reach, why));
            }
        }
        if hits.is_empty() && cause.caller.is_none() {
            hits.extend(self.call_of_library(commit, cause, roles));
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
                    why: format!("changes {name}, which it uses"),
                });
            }
        }
        for change in &commit.dependencies {
            let score_of =
                |(frame, role): (&u32, &FrameRole)| {
                    let place = &self.places[*frame as usize];
                    let is_inside = role.is_function || role.above == 0;
                    (is_inside && role.part >= MIN_PART && lies_in(place, &change.name))
                        .then_some(if role.is_function { 95.0 } else { 50.0 + 45.0 * role.part })
                };
            if let Some(score) = roles.iter().filter_map(score_of).max_by(f64::total_cmp) {
                hits.push(Hit {
                    score,
                    file: change.path.clone(),
                    lines: (change.line, change.line),
                    reach: Reach::Dependency,
                    why: format!("requires another version of {}", change.name),
                });
            }
        }
        if hits.is_empty() {
            hits.extend(self.nearest(commit, roles));
        }
        hits
    }

    /// Returns the change that adds the first or removes the last call of a function outside of the repository. Counts
    /// without stacks, such as cachegrind's, do not show its callers.
    fn call_of_library(&self, commit: &CommitChanges, cause: &Cause, roles: &FrameRoles) -> Option<Hit> {
        let verb = match cause.factor {
            None if cause.delta > 0.0 => "adds",
            Some(factor) if factor <= 0.0 => "removes",
            _ => return None,
        };
        let functions =
            roles.iter().filter(|(_, role)| role.is_function).map(|(frame, _)| &self.places[*frame as usize]);
        let outside: Vec<&String> =
            functions.filter(|place| place.files.is_empty()).filter_map(|p| p.parts.last()).collect();
        commit.functions.iter().find_map(|change| {
            let calls = if verb == "adds" { &change.added_calls } else { &change.removed_calls };
            let index = calls.iter().position(|call| outside.contains(&call))?;
            let line = if verb == "adds" { change.added_lines.get(index).copied().flatten() } else { None };
            Some(Hit {
                score: CALL_OF_LIBRARY,
                file: change.path.clone(),
                lines: line.map_or(change.lines, |line| (line, line)),
                reach: Reach::Call,
                why: format!("{verb} a call of {}", calls[index]),
            })
        })
    }

    /// Returns the nearest change of a commit: in the function's file, or in its folder.
    fn nearest(&self, commit: &CommitChanges, roles: &HashMap<u32, FrameRole>) -> Option<Hit> {
        let functions: Vec<&FunctionPlace> =
            roles.iter().filter(|(_, role)| role.is_function).map(|(frame, _)| &self.places[*frame as usize]).collect();
        let changes = commit.functions.iter().map(|c| (&c.path, c.lines));
        let changes = changes.chain(commit.outside.iter().map(|c| (&c.path, c.lines)));
        let near = changes.filter_map(|(path, lines)| {
            let number = self.paths.number(path);
            let (score, reach, why) = match () {
                () if functions.iter().any(|p| number.is_some_and(|n| p.files.contains(&n))) => {
                    (20.0, Reach::File, "changes the same file")
                }
                () if functions.iter().any(|p| p.folders.contains(folder(path))) => {
                    (10.0, Reach::Folder, "changes the same folder")
                }
                () => return None,
            };
            Some(Hit { score, file: path.clone(), lines, reach, why: why.to_owned() })
        });
        near.max_by(|a, b| a.score.total_cmp(&b.score))
    }

    /// Returns true if the change concerns this function.
    fn is_changed(&self, place: &FunctionPlace, change: &FunctionChange) -> bool {
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
        // Without a file, the path of the change must agree with the function's name.
        let is_named = |part: &str| place.parts.iter().any(|p| p == part) || place.name.contains(part);
        place.path.is_empty()
            && (place.parts.len() == 1
                || place.parts[0] == "main"
                || change.path.split('/').any(|part| is_named(part.split('.').next().unwrap_or(part))))
    }
}

type FrameRoles = HashMap<u32, FrameRole>;
/// The part of the change that goes through each call, by caller and callee.
type CallShares = HashMap<(u32, u32), f64>;

/// Returns the hit of a commit to show: its best one, except that the line of a changed call is more exact than the
/// lines of its whole function if the cause is a call, and more exact than a constant that the function uses.
fn shown_hit(hits: Vec<Hit>, is_call: bool) -> Option<Hit> {
    let best = |hits: &mut dyn Iterator<Item = Hit>| hits.max_by(|a, b| a.score.total_cmp(&b.score));
    let (calls, others): (Vec<Hit>, Vec<Hit>) = hits.into_iter().partition(|hit| matches!(hit.reach, Reach::Call));
    let (call, other) = (best(&mut calls.into_iter()), best(&mut others.into_iter()));
    match (call, other) {
        (Some(call), Some(other)) => {
            let is_vaguer = match other.reach {
                Reach::OwnLines => is_call && other.file == call.file,
                Reach::Constant => true,
                _ => false,
            };
            Some(if is_vaguer && call.score >= DIRECT || call.score >= other.score { call } else { other })
        }
        (call, other) => call.or(other),
    }
}

/// Returns true for a frame of Python that is not a function of the source: `<listcomp>`, `<genexpr>` or `<built-in
/// method builtins.sorted>`.
fn is_generated(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    [name, last].iter().any(|name| name.starts_with('<') && name.ends_with('>') && !name.contains("::"))
}

/// Returns the relations of frames to a function, given the stacks with the function's position and their change. Also
/// returns the deepest function below it through which nearly all of the change goes.
fn roles_in(
    stacks: &[(Vec<u32>, usize, f64)],
    is_own_cost: bool,
    is_generated: &dyn Fn(u32) -> bool,
) -> (FrameRoles, CallShares, Option<u32>) {
    let mut total = 0.0;
    // The change, the distance above the function, whether the frame is the function, and the distance below it.
    let mut through: HashMap<u32, (f64, usize, bool, usize)> = HashMap::default();
    let mut calls: CallShares = HashMap::default();
    for (frames, position, delta) in stacks {
        let (position, delta) = (*position, *delta);
        total += delta;
        let below = if is_own_cost { position + 1 } else { frames.len() };
        let from = position.saturating_sub(MAX_ABOVE);
        // A comprehension between two functions is a part of the upper one, so the upper one calls the lower one directly.
        let generated_below = |i: usize| (i + 1..position).filter(|&i| is_generated(frames[i])).count();
        let mut seen: HashSet<u32> = HashSet::default();
        for (i, &frame) in frames.iter().enumerate().take(below).skip(from) {
            if seen.insert(frame) {
                let above = position.saturating_sub(i).saturating_sub(generated_below(i));
                let entry = through.entry(frame).or_insert((0.0, above, i == position, 0));
                entry.0 += delta;
                entry.1 = entry.1.min(above);
                entry.3 = entry.3.max(i.saturating_sub(position));
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
        (frame, FrameRole { is_function, above, part: part(delta) })
    };
    let roles = through.into_iter().map(role).collect();
    (roles, calls.into_iter().map(|(call, delta)| (call, part(delta))).collect(), deepest)
}

/// Returns the current frame of each frame. A frame of the base alone maps to the frame of the new side alone that a
/// commit made of it by a new name or file. Ambiguous frames map to themselves.
fn twins(stacks: &Stacks, places: &[FunctionPlace]) -> Vec<u32> {
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
    let mut twins: HashMap<u32, HashSet<u32>> = HashMap::default();
    for sides in by_alias.values() {
        if let ([old], [new]) = (sides[0].as_slice(), sides[1].as_slice()) {
            twins.entry(*old).or_default().insert(*new);
        }
    }
    let twin = |frame: u32| twins.get(&frame).filter(|all| all.len() == 1).and_then(|all| all.iter().next().copied());
    (0..places.len() as u32).map(|frame| twin(frame).unwrap_or(frame)).collect()
}

/// Returns the files and names of a function under which commits moved or renamed it, starting from the profile's own.
fn aliases(parts: &[String], files: &[usize], moves: &[[(usize, &str); 2]]) -> HashSet<(usize, String)> {
    let mut aliases: HashSet<(usize, String)> = HashSet::default();
    let Some(name) = parts.last() else { return aliases };
    aliases.extend(files.iter().map(|file| (*file, name.clone())));
    // Each round follows at least one move. The last round follows none.
    let mut is_more = !aliases.is_empty();
    while is_more {
        is_more = false;
        for [from, to] in moves {
            let [from, to] = [from, to].map(|(file, name)| (*file, (*name).to_owned()));
            is_more |= aliases.contains(&from) && aliases.insert(to.clone());
            is_more |= aliases.contains(&to) && aliases.insert(from);
        }
    }
    aliases
}

/// Returns the score and the kind of reach for a change of a function with this role.
fn score(role: &FrameRole, change: &FunctionChange, cause: &Cause) -> (f64, Reach) {
    let weak = |score: f64| if change.is_text { score.min(25.0) } else { score };
    match role {
        FrameRole { is_function: true, .. } => {
            let is_itself = cause.kind == CauseKind::Own || cause.callee.is_some();
            (weak(if is_itself { 100.0 } else { 90.0 }), Reach::OwnLines)
        }
        FrameRole { above: 0, part, .. } => (weak(40.0 + 52.0 * part), Reach::Callee),
        // The cause is a call by this function, and the function may now pass on more work.
        FrameRole { above: 1, part, .. } if cause.caller.is_some() => {
            (weak(if change.has_loop { 85.0 } else { 48.0 } * part.max(0.5)), Reach::Caller)
        }
        FrameRole { above, part, .. } => {
            let base = if change.has_loop { 62.0 } else { 42.0 };
            (weak(base * part.sqrt() - *above as f64), Reach::Caller)
        }
    }
}

/// Returns true if a function of the profiles lies in a dependency of this name.
fn lies_in(place: &FunctionPlace, dependency: &str) -> bool {
    let path = place.path.replace('\\', "/");
    let spelled = [dependency.to_owned(), dependency.replace('-', "_")];
    spelled.iter().any(|name| {
        let in_path = place.is_dependency
            && path.match_indices(name.as_str()).any(|(start, _)| {
                let (before, after) = (&path[..start], &path[start + name.len()..]);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_changed_call_is_shown_instead_of_a_variable_or_the_whole_function() {
        let hit = |score: f64, reach: Reach| {
            let lines = if matches!(reach, Reach::Call) { (7, 7) } else { (1, 30) };
            Hit { score, file: "a.go".to_owned(), lines, reach, why: String::new() }
        };
        let lines = |is_call: bool, hits: [(f64, Reach); 2]| {
            shown_hit(hits.map(|(score, reach)| hit(score, reach)).into(), is_call).map(|hit| hit.lines)
        };
        assert_eq!(lines(false, [(78.0, Reach::Constant), (70.0, Reach::Call)]), Some((7, 7)));
        assert_eq!(lines(true, [(100.0, Reach::OwnLines), (99.0, Reach::Call)]), Some((7, 7)));
        // A function that costs more by itself did not change by its calls, and a weak call explains nothing.
        assert_eq!(lines(false, [(100.0, Reach::OwnLines), (99.0, Reach::Call)]), Some((1, 30)));
        assert_eq!(lines(true, [(78.0, Reach::Constant), (40.0, Reach::Call)]), Some((1, 30)));
    }
}
