//! The submodules of a worktree. `git worktree add` leaves their folders empty, so a benchmark would not measure the
//! code of the commit. Each submodule becomes a worktree of the user's own clone of it. This does not use the network,
//! unless a clone is partial, and leaves the user's configuration unchanged.

use std::path::{Component, Path, PathBuf};

use pprofdiff_shell::git::git;
use pprofdiff_shell::{Failure, Result, say};

use super::process::Runner;
use super::sides::Worktrees;

/// A submodule as a commit records it.
#[derive(Debug, PartialEq)]
struct Submodule {
    path: String,
    commit: String,
}

/// A repository of the user that has submodules.
struct Parent {
    /// The work tree; `None` for a submodule that is not checked out, for example after `git submodule deinit`.
    dir: Option<PathBuf>,
    git_dir: PathBuf,
}

/// Checks out all submodules of the worktree in `dir`, which belongs to the repository of the work tree `root`.
///
/// # Errors
/// Fails if the user initialised a submodule but its clone is missing, or if a clone lacks the commit. A submodule that
/// is not initialised stays empty, with a note.
pub fn check_out(runner: &Runner<'_>, worktrees: &mut Worktrees, dir: &Path, root: &Path) -> Result<()> {
    let common = git(root, ["rev-parse", "--git-common-dir"])?;
    let parent = Parent { dir: Some(root.to_owned()), git_dir: root.join(common.trim_end()) };
    check_out_below(runner, worktrees, dir, Path::new(""), &parent)
}

/// Checks out the submodules of `dir`, and recursively their submodules. `prefix` is the path of `dir` in the outermost
/// repository; messages show it.
fn check_out_below(
    runner: &Runner<'_>,
    worktrees: &mut Worktrees,
    dir: &Path,
    prefix: &Path,
    parent: &Parent,
) -> Result<()> {
    let paths = git(dir, ["config", "-z", "--blob=HEAD:.gitmodules", "--get-regexp", r"^submodule\..*\.path$"]);
    let paths = paths.unwrap_or_default();
    for Submodule { path, commit } in gitlinks(&git(dir, ["ls-tree", "-r", "-z", "--full-tree", "HEAD"])?) {
        let shown = prefix.join(&path).display().to_string();
        let name = submodule_name(&paths, &path);
        let Some(module) = find(parent, &path, name)? else {
            if name.is_some_and(|name| is_wanted(parent, name)) {
                return Err(Failure::Message(format!(
                    "submodule {shown} is not cloned; run: git submodule update --init --recursive"
                )));
            }
            say(&format!(
                "note: submodule {shown} is empty on this side, because it is not initialised in this repository"
            ));
            continue;
        };
        // Overrides the work tree in the submodule's own configuration, because that folder may not exist.
        let work_tree = format!("--work-tree={}", worktrees.folder().display());
        let repository = vec![format!("--git-dir={}", module.git_dir.display()), work_tree];
        let object = format!("{commit}^{{commit}}");
        let exists = repository.iter().map(String::as_str).chain(["cat-file", "-e", &object]);
        if git(dir, exists).is_err() {
            let short = commit.get(..12).unwrap_or(&commit);
            return Err(Failure::Message(format!(
                "submodule {shown} lacks commit {short}, which this side needs; \
                 run: git submodule foreach --recursive git fetch"
            )));
        }
        let dest = dir.join(&path);
        worktrees.add(runner, repository, &dest, &commit)?;
        check_out_below(runner, worktrees, &dest, &prefix.join(&path), &module)?;
    }
    Ok(())
}

/// Parses the submodules in the output of `git ls-tree -z`.
fn gitlinks(tree: &str) -> Vec<Submodule> {
    let link = |entry: &str| {
        let (about, path) = entry.split_once('\t')?;
        let commit = about.strip_prefix("160000 commit ")?.trim();
        Some(Submodule { path: path.to_owned(), commit: commit.to_owned() })
    };
    tree.split('\0').filter_map(link).collect()
}

/// Finds the name of the submodule at `path` in the output of `git config -z`. Ignores a name with `..`, because it
/// would lead out of git's `modules` folder.
fn submodule_name<'a>(paths: &'a str, path: &str) -> Option<&'a str> {
    let name = paths.split('\0').find_map(|entry| {
        let (key, value) = entry.split_once('\n')?;
        (value.trim_end_matches('/') == path).then(|| key.strip_prefix("submodule.")?.strip_suffix(".path")).flatten()
    })?;
    Path::new(name).components().all(|part| matches!(part, Component::Normal(_))).then_some(name)
}

/// Finds the user's repository of a submodule: in the parent's work tree, or in git's `modules` folder.
fn find(parent: &Parent, path: &str, name: Option<&str>) -> Result<Option<Parent>> {
    if let Some(dir) = parent.dir.as_ref().map(|dir| dir.join(path)).filter(|dir| dir.join(".git").exists()) {
        let git_dir = PathBuf::from(git(&dir, ["rev-parse", "--absolute-git-dir"])?.trim_end());
        return Ok(Some(Parent { dir: Some(dir), git_dir }));
    }
    let kept = name.map(|name| parent.git_dir.join("modules").join(name)).filter(|kept| kept.join("HEAD").is_file());
    Ok(kept.map(|git_dir| Parent { dir: None, git_dir }))
}

/// Returns true if the user initialised the submodule.
fn is_wanted(parent: &Parent, name: &str) -> bool {
    let git_dir = format!("--git-dir={}", parent.git_dir.display());
    git(Path::new("."), [&git_dir, "config", "--get", &format!("submodule.{name}.url")]).is_ok()
}

#[cfg(test)]
mod tests {
    use super::{Submodule, gitlinks, submodule_name};

    #[test]
    fn submodules_and_names_are_parsed_and_names_outside_the_modules_folder_are_ignored() {
        let tree = "100644 blob 12\trun.sh\x00160000 commit 34\tlib/a b\x00";
        assert_eq!(gitlinks(tree), [Submodule { path: "lib/a b".to_owned(), commit: "34".to_owned() }]);
        let paths = "submodule.x.y.path\nlib/a b\x00submodule.../../z.path\nz\x00";
        assert_eq!(submodule_name(paths, "lib/a b"), Some("x.y"));
        assert_eq!(submodule_name(paths, "z"), None);
    }
}
