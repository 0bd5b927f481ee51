# A printing press for words, for stackprof: sets lines, sorts them, and keeps a few; it rests between some jobs.
# Usage: ruby press.rb ROUNDS MODE OUT [flat]
require "json"
require "stackprof"

KEPT = []

def set_line(length, seed)
  line = +""
  length.times do |i|
    seed = (((seed ^ i) * 16_777_619) & 0xffffffff) + i
    line << (97 + seed % 26)
  end
  line
end

def sort_line(line)
  line.chars.sort.join
end

def fold(depth, length)
  return fold(depth - 1, length) if depth > 0
  sort_line(set_line(length, length))
end

class Press
  def print_sheets(rounds)
    rounds.times do |round|
      0.step(40, 20) { |depth| KEPT << { depth: depth, line: fold(depth, 2000) } }
      Marshal.load(Marshal.dump(KEPT.last(50)))
      sleep 0.005 if round % 4 == 0
    end
  end
end

rounds, mode, out = Integer(ARGV[0]), ARGV[1].to_sym, ARGV[2]
interval = mode == :object ? 100 : 1000
results = StackProf.run(mode: mode, raw: ARGV[3] != "flat", interval: interval) { Press.new.print_sheets(rounds) }
# `stackprof --json` writes the same.
File.write(out, JSON.generate(results, max_nesting: false))
