# Homebrew formula: untested, because no macOS machine was at hand. The workflow `release` builds the program for macOS.
class Smbscope < Formula
  desc "Where the time goes on an SMB file share"
  homepage "https://github.com/smbscope/smbscope"
  license any_of: ["MIT", "Apache-2.0"]
  head "https://github.com/smbscope/smbscope.git", branch: "main"

  depends_on "cmake" => :build
  depends_on "rust" => :build

  def install
    system "cargo", "install", *std_cargo_args(path: "crates/smbscope")
    generate_completions_from_executable(bin/"smbscope", "completions")
    system bin/"smbscope", "man", "--dir", man1
  end

  test do
    assert_match "smbscope", shell_output("#{bin}/smbscope --version")
  end
end
