// What a run's attempts teach (retrieval/lessons.h): a failed program followed by a verified one is a fix of that
// failure; a verified one followed by a faster one, beyond the intervals of both measurements, is a lesson.
#pragma once

#include <string>
#include <vector>

#include "agent/generate/author.h"
#include "retrieval/corpus.h"
#include "retrieval/lessons.h"

namespace tilepilot::agent {

// The lines that differ, each with "- " or "+ " before it, in the order of the programs. Empty: none differ, or more
// than `most_lines` do, which is another program and no change.
std::string line_changes(const std::string& before, const std::string& after, size_t most_lines);

// What is verified, and neither because anything trivial would be nor on inputs like the given ones alone: from
// anything else there is nothing to learn.
bool teaches(const eval::Verdict& verdict);

// What names a failure, for `retrieval::Fix::kind`: the kind of its first diagnostic, else the guard that rejected it,
// else its outcome.
std::string failure_kind(const eval::Verdict& verdict);

// What asks for fixes of an attempt's failure; the target and what is excluded are left open.
retrieval::FixQuery fix_query(const Attempt& attempt);

struct LearnFacts {
  std::string run;  // uid
  retrieval::Structure structure;
};

struct Learnt {
  std::vector<retrieval::Fix> fixes;
  std::vector<retrieval::Lesson> lessons;
};
Learnt learn(const std::vector<Attempt>& attempts, const LearnFacts& facts);

Status remember(retrieval::Lessons& memory, const Learnt& learnt);

}  // namespace tilepilot::agent
