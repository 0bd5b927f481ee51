# The formula for homebrew-core. release/README.md explains how to submit it. `url` and `sha256` belong to the newest
# release.
class Pprofdiff < Formula
  desc "Compares pprof profiles: what changed, with both sides of every number"
  homepage "https://github.com/pprofdiff/pprofdiff"
  url "https://github.com/pprofdiff/pprofdiff/archive/refs/tags/v0.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license any_of: ["MIT", "Apache-2.0"]
  head "https://github.com/pprofdiff/pprofdiff.git", branch: "main"

  depends_on "rust" => :build

  def install
    system "cargo", "install", *std_cargo_args(path: "crates/pprofdiff-cli")
    generate_completions_from_executable(bin/"pprofdiff", "completions")
    system bin/"pprofdiff", "man", "man"
    man1.install Dir["man/*.1"]
  end

  test do
    (testpath/"base.folded").write "main;parse 10\nmain;write 5\n"
    (testpath/"new.folded").write "main;parse 30\nmain;write 5\n"
    assert_match(/\+20.*parse/, shell_output("#{bin}/pprofdiff base.folded new.folded"))
  end
end
