// What a trace read of Python: names outside of its functions, attributes and items of objects. What Python computed
// for it in a call is not followed.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "compiler/stage/tile/outer_reads.h"

namespace tilepilot::package {

namespace nb = nanobind;

class PythonReads final : public stage::OuterReads {
 public:
  enum class Kind { outer_name, attribute, item, items };
  struct Read {
    Kind kind;
    nb::object of;     // a function, for names outside of it
    nb::object key;    // a name, or what an item is asked for by; None for all items
    nb::object value;  // invalid: there was none
  };

  void begin() override;
  void end() override;
  bool are_as_noted() const override;
  void note(const Read& read);
  // What the names outside of a function are that Python runs. Dataclasses and namespaces among them count by their
  // fields; what the function calls is not followed.
  void note_outer_names(nb::handle function);

 private:
  void note_record(const Read& read);

  struct Noted {
    Read read;
    std::string content;           // of a value that may change in place
    std::vector<nb::object> kept;  // that its content names
  };
  std::vector<Noted> noted_;
};

// Tells the traces that go on.
void note_read(PythonReads::Read read);
// All items of an object that can be gone through again, and so also their number.
void note_items(const nb::object& of);

}  // namespace tilepilot::package
