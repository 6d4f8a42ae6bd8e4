#include "agent/llm/endpoint/endpoint_url.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace tilepilot::agent {
namespace {

Error refused(std::string why) {
  return make_error(DiagnosticKind::bad_usage, {}, "`--llm-url` " + why,
                    "give an address such as `http://localhost:8000/v1` or `https://api.openai.com/v1`");
}

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char letter) { return letter > ' ' && letter < 0x7f; });
}

// "localhost", "[::1]:8000"
bool is_host(std::string_view host) {
  if (host.empty()) return false;
  const size_t end_of_name = host.front() == '[' ? host.find(']') : host.find(':');
  if (host.front() == '[' && end_of_name == std::string_view::npos) return false;
  const std::string_view name = host.substr(0, end_of_name);
  const size_t colon = host.find(':', host.front() == '[' ? end_of_name : 0);
  if (name.empty() || name.find_first_of("\"<>\\^`{|}") != std::string_view::npos) return false;
  if (colon == std::string_view::npos) return true;
  const std::string_view port = host.substr(colon + 1);
  return !port.empty() && port.size() <= 5 &&
         std::all_of(port.begin(), port.end(), [](unsigned char letter) { return std::isdigit(letter) != 0; });
}

}  // namespace

std::string EndpointUrl::with(std::string_view last) const {
  std::string url = scheme + "://" + host + path;
  if (!path.ends_with(last)) url += last;
  return query.empty() ? url : url + "?" + query;
}

std::string EndpointUrl::shown() const {
  std::string url = scheme + "://" + host + path;
  char separator = '?';
  for (std::string_view rest = query; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const bool is_version = part.starts_with("api-version=");
    const size_t value = part.find('=');
    url += separator;
    url +=
        is_version || value == std::string_view::npos ? std::string(part) : std::string(part.substr(0, value)) + "=...";
    separator = '&';
  }
  return url;
}

Result<EndpointUrl> parse_endpoint_url(std::string_view text) {
  EndpointUrl url;
  if (text.empty()) return refused("is empty");
  if (!is_plain(text)) return refused("has a space, a control character or one beyond ASCII in it");
  const size_t scheme = text.find("://");
  if (scheme == std::string_view::npos) return refused("has no scheme: it begins with `http://` or `https://`");
  url.scheme = text.substr(0, scheme);
  std::transform(url.scheme.begin(), url.scheme.end(), url.scheme.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  if (url.scheme != "http" && url.scheme != "https")
    return refused(fmt::format("has the scheme `{}`: endpoints speak http or https", url.scheme));
  text.remove_prefix(scheme + 3);
  if (text.find('#') != std::string_view::npos) return refused("has a fragment (`#`), which no endpoint gets");
  const size_t end_of_host = std::min(text.find_first_of("/?"), text.size());
  url.host = text.substr(0, end_of_host);
  if (url.host.find('@') != std::string::npos)
    return refused(
        "has a user's name or a key before its host, where it would be shown and stored: set "
        "`TILEPILOT_API_KEY` instead");
  if (!is_host(url.host)) return refused("has no host, or a host that is none");
  text.remove_prefix(end_of_host);
  const size_t question = std::min(text.find('?'), text.size());
  url.path = text.substr(0, question);
  if (question < text.size()) url.query = text.substr(question + 1);
  while (url.path.ends_with('/')) url.path.pop_back();
  return url;
}

}  // namespace tilepilot::agent
