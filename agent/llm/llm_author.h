// The author that asks a language model: first with the task and retrieved kernels, then with what became of its last
// attempt.
#pragma once

#include <memory>

#include "agent/author.h"
#include "agent/llm/chat.h"
#include "agent/llm/prompt.h"

namespace tilepilot::agent {

// `first_message` is the task prompt. Answers without a program are asked for again a few times before the author gives
// up.
std::unique_ptr<Author> llm_author(std::unique_ptr<ChatClient> chat, std::string first_message);

}  // namespace tilepilot::agent
