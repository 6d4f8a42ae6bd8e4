// Where the runs of one user on one machine find each other: a folder of locks that nobody else can write to.
#pragma once

#include <filesystem>

namespace tilepilot::eval {

// Made if need be; empty where there is no folder that is the user's alone.
std::filesystem::path lock_folder();

}  // namespace tilepilot::eval
