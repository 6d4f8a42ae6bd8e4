#include "eval/worker/crash_marker.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace tilepilot::eval {
namespace {

void* map_page(int file) {
  void* page = mmap(nullptr, sizeof(CrashMarker), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return page == MAP_FAILED ? nullptr : page;
}

}  // namespace

CrashMarkerPage::CrashMarkerPage() : file_(memfd_create("tilepilot-marker", MFD_CLOEXEC)) {
  if (ftruncate(file_.number(), sizeof(CrashMarker)) != 0) return;
  if (void* page = map_page(file_.number())) marker_ = new (page) CrashMarker;
}

CrashMarkerPage::CrashMarkerPage(const Descriptor& handed) {
  marker_ = static_cast<CrashMarker*>(map_page(handed.number()));
}

CrashMarkerPage::~CrashMarkerPage() {
  if (marker_) munmap(marker_, sizeof(CrashMarker));
}

}  // namespace tilepilot::eval
